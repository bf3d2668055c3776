"""Builds Python source code: lines with their indentation, unique names, and the constants that the lines refer to."""

import functools
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES_OF_SYMBOLS = str.maketrans({"?": "z"})


class Source:
    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = ""
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self._indent += " "
        yield
        self._indent = self._indent[:-1]

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, prefix: str, value: object) -> str:
        """Binds a constant; returns its name."""
        name = self.fresh(prefix)
        self.namespace[name] = value
        return name

    def packer(self, format_: str) -> str:
        name = "pack_" + format_.translate(NAMES_OF_SYMBOLS)
        self.namespace[name] = compiled_format(format_).pack
        return name

    def unpacker(self, format_: str) -> str:
        name = "unpack_" + format_.translate(NAMES_OF_SYMBOLS)
        self.namespace[name] = compiled_format(format_).unpack_from
        return name

    def compile(self, function_name: str, file_name: str) -> Any:
        text = "\n".join(self._lines)
        exec(compile(text, f"<{file_name}>", "exec"), self.namespace)
        return self.namespace[function_name]


@functools.cache
def compiled_format(format_: str) -> struct.Struct:
    """A compiled big-endian format, cached; the number of formats is limited by the tables."""
    return struct.Struct(">" + format_)
