"""What an option takes: numbers as wide as the protocol's, text that is UTF-8, bytes as they are, pairs.

Everything here refuses as wrong usage what a client underneath would answer with an exception of its own, or a crash.
"""

from __future__ import annotations

import math
from typing import Any

import click

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
LARGEST_VALUE_BYTES = 100_000_000  # a broker takes no request above socket.request.max.bytes, 104,857,600

PARTITION = click.IntRange(min=0, max=INT32_MAX)
PARTITION_COUNT = click.IntRange(min=1, max=INT32_MAX)
REPLICATION_FACTOR = click.IntRange(min=1, max=2**15 - 1)
OFFSET = click.IntRange(min=0, max=INT64_MAX)
RECORD_COUNT = click.IntRange(min=1, max=INT64_MAX)
SIZE_BYTES = click.IntRange(min=1, max=INT32_MAX)
VALUE_SIZE_BYTES = click.IntRange(min=0, max=LARGEST_VALUE_BYTES)


class PositiveType(click.FloatRange):
    """A finite number above zero; click's own range lets `nan` and `inf` through."""

    def __init__(self, least: float = 0.0) -> None:
        super().__init__(min=least, min_open=not least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number to count with", param, ctx)
        return number


class TextType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """Text that UTF-8 can hold: the shell may hand over any bytes, the protocol's strings may not be any."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"'{readable(text)}' is not UTF-8", param, ctx)
        return text


class NameType(TextType):
    """Text that is not empty: the name of a topic, or of a config."""

    def __init__(self, noun: str) -> None:
        self.noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = super().convert(value, param, ctx)
        if not text.strip():
            self.fail(f"the name of a {self.noun} cannot be empty", param, ctx)
        return text


class BytesType(click.ParamType):  # type: ignore[type-arg]
    """The bytes of an argument as the shell handed them over: keys and values need not be UTF-8."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:  # noqa: ARG002
        return value if isinstance(value, bytes) else argument_bytes(value)


class PairType(TextType):
    """`key=value`, as a pair; the value may be empty and may hold further `=`."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(f"'{readable(value)}' is not key=value", param, ctx)
        return super().convert(key.strip(), param, ctx), self.convert_value(rest, param, ctx)

    def convert_value(self, rest: str, param: click.Parameter | None, ctx: click.Context | None) -> str | bytes:
        return super().convert(rest, param, ctx)


class HeaderType(PairType):
    """`name=value` of a record's header: the name is text, the value any bytes."""

    def convert_value(self, rest: str, param: click.Parameter | None, ctx: click.Context | None) -> bytes:  # noqa: ARG002
        return argument_bytes(rest)


def argument_bytes(text: str) -> bytes:
    """Python decodes arguments with `surrogateescape`; this is the way back."""
    return text.encode(errors="surrogateescape")


def readable(text: str) -> str:
    r"""The text with `\xff` for every byte that is not UTF-8."""
    return argument_bytes(text).decode(errors="backslashreplace")


TEXT = TextType()
TOPIC_NAME = NameType("topic")
CONFIG_NAME = NameType("config")
BYTES = BytesType()
PAIR = PairType()
HEADER = HeaderType()
