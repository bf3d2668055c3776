"""Types of options: numbers within the protocol's ranges, UTF-8 text, bytes, pairs, points in time and durations.

They refuse values for which the Kafka client would raise an exception or crash. Times and durations are written as
`2026-01-31T12:00`, `1767225600000`, `-1h`, `500ms`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from odradek.conventions import figures

LARGEST_VALUE_BYTES = 100_000_000  # the default limit of a request, socket.request.max.bytes, is 104,857,600


class ArgumentType(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """Converts text by a function, whose ValueError has the message."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(str(value)) if isinstance(value, str | int | float) else value
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


class NumberType(ArgumentType):
    """A whole number within bounds; help does not print the bounds, unlike click's range."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__("integer", partial(_number, least, most))


def _number(least: int, most: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a number") from None
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
    return number


def _positive(text: str) -> float:
    """A finite number above zero; click's own range lets `nan` and `inf` through."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a number") from None
    if not 0 < number < math.inf:
        raise ValueError(f"{quoted(text)} is not a number above zero")
    return number


def checked_text(text: str) -> str:
    """Text that UTF-8 can hold: a shell may pass any bytes, and the protocol's strings are UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{quoted(text)} is not UTF-8") from None
    return text


def name_type(noun: str) -> ArgumentType:
    """Text that is not empty: the name of a topic, a group or a setting."""
    return ArgumentType("text", partial(_name, noun))


def _name(noun: str, text: str) -> str:
    if not checked_text(text).strip():
        raise ValueError(f"the name of a {noun} cannot be empty")
    return text


def _pair(read_value: Callable[[str], Any], text: str) -> tuple[str, Any]:
    """`key=value`; the value may be empty and may hold further `=`."""
    key, equals, rest = text.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"{quoted(text)} is not key=value")
    return checked_text(key.strip()), read_value(rest)


def _setting(text: str) -> tuple[str, str]:
    """`key=value` of a setting, whose times and sizes may have units: `retention.ms=7d`, `segment.bytes=1GiB`."""
    key, value = _pair(checked_text, text)
    match = figures.DURATION.fullmatch(value)
    if key.endswith(".ms") and match is not None and match[2]:
        return key, str(figures.parse_duration_ms(value))
    size_bytes = figures.parse_size_bytes(value) if key.endswith(".bytes") else None
    return key, value if size_bytes is None else str(size_bytes)


def argument_bytes(text: str) -> bytes:
    """The bytes of an argument, as passed by the shell, which Python has decoded with `surrogateescape`."""
    return text.encode(errors="surrogateescape")


def readable(text: str) -> str:
    r"""The text with `\xff` for every byte that is not UTF-8."""
    return argument_bytes(text).decode(errors="backslashreplace")


def quoted(value: object) -> str:
    """An argument in quotes for a message, cut to 60 characters."""
    text = readable(str(value))
    return f"'{text}'" if len(text) <= 60 else f"'{text[:59]}…'"


def _time_ms(text: str) -> int:
    try:
        return figures.parse_time_ms(text, int(time.time() * 1000))
    except ValueError:
        hint = "write 2026-01-31T12:00, epoch milliseconds, or -1h"
        raise ValueError(f"{quoted(text)} is not a time; {hint}") from None
    except OverflowError:
        raise ValueError(f"{quoted(text)} is outside of the range of timestamps") from None


def _written_time_ms(text: str) -> int:
    time_ms = _time_ms(text)
    if time_ms < 0:
        raise ValueError(f"{quoted(text)} is before 1970; timestamps begin there")
    return time_ms


def _duration_ms(text: str) -> int:
    try:
        return figures.parse_duration_ms(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a duration; write 500ms, 10s or 1h") from None
    except OverflowError:
        raise ValueError(f"{quoted(text)} is too long") from None


PARTITION = NumberType(0, figures.INT32_MAX)
PARTITION_COUNT = NumberType(1, figures.INT32_MAX)
REPLICATION_FACTOR = NumberType(1, 2**15 - 1)
OFFSET = NumberType(0, figures.INT64_MAX)
RECORD_COUNT = NumberType(1, figures.INT64_MAX)
SIZE_BYTES = NumberType(1, figures.INT32_MAX)
VALUE_SIZE_BYTES = NumberType(0, LARGEST_VALUE_BYTES)
POSITIVE = ArgumentType("number", _positive)
TEXT = ArgumentType("text", checked_text)
TOPIC_NAME = name_type("topic")
SETTING_NAME = name_type("setting")
GROUP_NAME = name_type("group")
TRANSACTIONAL_ID = name_type("transaction")
BYTES = ArgumentType("text", argument_bytes)  # keys and values need not be UTF-8
PAIR = ArgumentType("key=value", partial(_pair, checked_text))
HEADER = ArgumentType("key=value", partial(_pair, argument_bytes))
SETTING = ArgumentType("key=value", _setting)
TIME_MS = ArgumentType("time", _time_ms)
WRITTEN_TIME_MS = ArgumentType("time", _written_time_ms)
DURATION_MS = ArgumentType("duration", _duration_ms)
