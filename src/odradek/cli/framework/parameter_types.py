"""Types of options: numbers within the protocol's ranges, UTF-8 text, bytes, pairs.

They refuse values for which the Kafka client would raise an exception or crash.
"""

from __future__ import annotations

import math
from typing import Any

import click

from odradek.conventions.figures import INT32_MAX, INT64_MAX

LARGEST_VALUE_BYTES = 100_000_000  # the default limit of a request, socket.request.max.bytes, is 104,857,600


class NumberType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A whole number within bounds; help does not print the bounds, unlike click's range."""

    name = "integer"

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{quoted(value)} is not a number", param, ctx)
        if not self.least <= number <= self.most:
            self.fail(f"{number} is not between {self.least} and {self.most}", param, ctx)
        return number


class PositiveType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A finite number above zero; click's own range lets `nan` and `inf` through."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{quoted(value)} is not a number", param, ctx)
        if not 0 < number < math.inf:
            self.fail(f"{quoted(value)} is not a number above zero", param, ctx)
        return number


class TextType(click.ParamType):  # type: ignore[type-arg]
    """Text that UTF-8 can hold: a shell may pass any bytes, and the protocol's strings are UTF-8."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{quoted(text)} is not UTF-8", param, ctx)
        return text


class NameType(TextType):
    """Text that is not empty: the name of a topic, a group or a setting."""

    def __init__(self, noun: str) -> None:
        self.noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = super().convert(value, param, ctx)
        if not text.strip():
            self.fail(f"the name of a {self.noun} cannot be empty", param, ctx)
        return text


class BytesType(click.ParamType):  # type: ignore[type-arg]
    """The bytes of an argument, as passed by the shell: keys and values need not be UTF-8."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:  # noqa: ARG002 - the signature is click's
        return value if isinstance(value, bytes) else argument_bytes(value)


class PairType(TextType):
    """`key=value`, as a pair; the value may be empty and may hold further `=`."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(f"{quoted(value)} is not key=value", param, ctx)
        return super().convert(key.strip(), param, ctx), self.convert_value(rest, param, ctx)

    def convert_value(self, rest: str, param: click.Parameter | None, ctx: click.Context | None) -> str | bytes:
        return super().convert(rest, param, ctx)


class HeaderType(PairType):
    """`name=value` of a record's header: the name is text, the value any bytes."""

    def convert_value(self, rest: str, param: click.Parameter | None, ctx: click.Context | None) -> bytes:  # noqa: ARG002 - the signature is click's
        return argument_bytes(rest)


def argument_bytes(text: str) -> bytes:
    """The bytes of an argument, which Python has decoded with `surrogateescape`."""
    return text.encode(errors="surrogateescape")


def readable(text: str) -> str:
    r"""The text with `\xff` for every byte that is not UTF-8."""
    return argument_bytes(text).decode(errors="backslashreplace")


def quoted(value: object) -> str:
    """An argument in quotes for a message, cut to 60 characters."""
    text = readable(str(value))
    return f"'{text}'" if len(text) <= 60 else f"'{text[:59]}…'"


PARTITION = NumberType(0, INT32_MAX)
PARTITION_COUNT = NumberType(1, INT32_MAX)
REPLICATION_FACTOR = NumberType(1, 2**15 - 1)
OFFSET = NumberType(0, INT64_MAX)
RECORD_COUNT = NumberType(1, INT64_MAX)
SIZE_BYTES = NumberType(1, INT32_MAX)
VALUE_SIZE_BYTES = NumberType(0, LARGEST_VALUE_BYTES)
POSITIVE = PositiveType()
TEXT = TextType()
TOPIC_NAME = NameType("topic")
SETTING_NAME = NameType("setting")
GROUP_NAME = NameType("group")
TRANSACTIONAL_ID = NameType("transaction")
BYTES = BytesType()
PAIR = PairType()
HEADER = HeaderType()
