"""Files of properties in the format of java.util.Properties: those of clients and of brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.conventions.failures import Failure

_NATURAL_LINE = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


class PropertiesError(ValueError):
    """An invalid setting; the message names its origin and the problem."""


class Property(NamedTuple):
    value: str
    origin: str


def read_properties_file(path: str) -> dict[str, str]:
    """Failure if the file cannot be read or parsed."""
    try:
        text = Path(path).read_text(encoding="latin-1")
        return {name: each.value for name, each in parse_properties(text, path).items()}
    except OSError as problem:
        raise Failure(f"{path}: {problem.strerror or problem}") from None
    except PropertiesError as problem:
        raise Failure(str(problem)) from None


def parse_properties(text: str, file_name: str) -> dict[str, Property]:
    """Parses the format of java.util.Properties; the last of several values for a key wins."""
    properties = {}
    for line_number, line in _logical_lines(text):
        origin = f"{file_name} line {line_number}"
        key_match = _KEY.match(line)
        key_end = key_match.end() if key_match else 0
        separator = _SEPARATOR.match(line, key_end)
        value = line[separator.end() if separator else key_end :]
        properties[_unescape(line[:key_end], origin)] = Property(_unescape(value, origin), origin)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines: continuations joined, without comments and blank lines; each with the number of its first line."""
    pending = ""
    first_number = 0
    for number, natural in enumerate(_NATURAL_LINE.split(text), 1):
        line = natural.lstrip(_BLANK)
        if not pending:
            if not line or line[0] in "#!":
                continue
            first_number = number
        if _continues(line):
            pending += line[:-1]
            continue
        yield first_number, pending + line
        pending = ""
    if pending:
        yield first_number, pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, origin: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code == "u":
            raise PropertiesError(f"{origin}: \\u must be followed by four hexadecimal digits")
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    plain = _ESCAPE.sub(replace, text)
    # Java's strings are UTF-16: two escapes may form one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
