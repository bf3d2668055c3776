"""Reads metrics in the format of OpenTelemetry (MetricsData, version 1, Protocol Buffers), as clients push them.

Only what is shown is read: names, attributes and numbers of gauges, sums and histograms. The number of fields, of data
points and of characters is bounded, so that a hostile push costs about ten milliseconds. Unknown fields are skipped.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.protocol.records import Pause

MOST_FIELDS = 12_000  # a number counts as another field for each of its bytes after the second
RARE_TEXT_FIELDS = 6  # that text counts as if it is not ASCII, or cannot be shown: it takes longer
FIELDS_BETWEEN_PAUSES = 500
MOST_POINTS = 1_000
MOST_ATTRIBUTES = 16
MOST_CHARACTERS = 200
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DELTA = 1
_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")


class Kind(enum.IntEnum):
    GAUGE = 0
    SUM = 1
    HISTOGRAM = 2


class Point(NamedTuple):
    """`value` is the number, or the sum of a histogram, which has `value_count` values. `is_delta` says that the
    value counts from the last push on."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    kind: Kind
    value: float
    value_count: int
    is_delta: bool


class MalformedMetrics(MalformedMessage):
    """The bytes are not MetricsData, or exceed a limit."""


# Field number, wire type, and where the content begins and ends; instead of its begin, a varint has its value.
_Field = tuple[int, int, int, int]


class _Message:
    """The bytes of a push, and what may still be read of them: `fields` up to the next pause, then `_later_fields`."""

    __slots__ = ("_later_fields", "_pause", "data", "fields", "points")

    def __init__(self, data: bytes, pause: Pause | None) -> None:
        self.data = data
        self.fields = FIELDS_BETWEEN_PAUSES
        self._later_fields = MOST_FIELDS - FIELDS_BETWEEN_PAUSES
        self._pause = pause
        self.points = MOST_POINTS

    def allow_more(self) -> None:
        """Called when `fields` is negative."""
        if self._pause is not None:
            self._pause()
        while self.fields < 0:
            if self._later_fields == 0:
                raise MalformedMetrics(f"a push has more than {MOST_FIELDS} fields")
            more = min(self._later_fields, FIELDS_BETWEEN_PAUSES)
            self._later_fields -= more
            self.fields += more


def read_metrics(data: bytes, pause: Pause | None = None) -> list[Point]:
    """MalformedMetrics for bytes that are not valid or that exceed a limit. `pause` lets other threads run; it is
    called between runs of FIELDS_BETWEEN_PAUSES fields."""
    message = _Message(data, pause)
    points: list[Point] = []
    for resource, resource_type, begin, end in _fields(message, 0, len(data)):
        if resource == 1 and resource_type == _BYTES:  # resource_metrics
            for scope, scope_type, scope_begin, scope_end in _fields(message, begin, end):
                if scope == 2 and scope_type == _BYTES:  # scope_metrics
                    for number, wire_type, metric_begin, metric_end in _fields(message, scope_begin, scope_end):
                        if number == 2 and wire_type == _BYTES:  # metrics
                            points += _read_metric(message, metric_begin, metric_end)
    return points


def _read_metric(message: _Message, begin: int, end: int) -> Iterator[Point]:
    name, data, kind = "", (0, 0), Kind.GAUGE
    for number, wire_type, first, last in _fields(message, begin, end):
        if wire_type == _BYTES:
            if number == 1:
                name = _text(message, first, last)
            elif number in _KINDS:
                data, kind = (first, last), _KINDS[number]
    if data == (0, 0):
        return
    temporality = 0
    contents: list[tuple[int, int]] = []
    for number, wire_type, first, last in _fields(message, *data):
        if number == 1 and wire_type == _BYTES:
            contents.append((first, last))
        elif number == 2 and wire_type == _VARINT:
            temporality = first
    for first, last in contents:
        message.points -= 1
        if message.points < 0:
            raise MalformedMetrics(f"a push has more than {MOST_POINTS} data points")
        yield _read_point(name, kind, message, first, last, is_delta=temporality == _DELTA)


_KINDS = {5: Kind.GAUGE, 7: Kind.SUM, 9: Kind.HISTOGRAM}


def _read_point(name: str, kind: Kind, message: _Message, begin: int, end: int, *, is_delta: bool) -> Point:
    value, count = 0.0, 1
    attributes: list[tuple[str, str]] = []
    attribute_field = 9 if kind is Kind.HISTOGRAM else 7
    for number, wire_type, first, last in _fields(message, begin, end):
        if wire_type == _BYTES:
            if number == attribute_field and len(attributes) < MOST_ATTRIBUTES:
                attributes.append(_read_attribute(message, first, last))
        elif wire_type == _FIXED64:
            if kind is Kind.HISTOGRAM:
                if number == 4:
                    count = _INT64.unpack_from(message.data, first)[0]
                elif number == 5:
                    value = _DOUBLE.unpack_from(message.data, first)[0]
            elif number == 4:
                value = _DOUBLE.unpack_from(message.data, first)[0]
            elif number == 6:
                value = float(_INT64.unpack_from(message.data, first)[0])
    return Point(name, tuple(sorted(attributes)), kind, value, count, is_delta)


def _read_attribute(message: _Message, begin: int, end: int) -> tuple[str, str]:
    key, value = "", ""
    for number, wire_type, first, last in _fields(message, begin, end):
        if wire_type == _BYTES:
            if number == 1:
                key = _text(message, first, last)
            elif number == 2:
                value = _read_value(message, first, last)
    return key, value


def _read_value(message: _Message, begin: int, end: int) -> str:
    """AnyValue: text, boolean, integer or floating-point number. Lists and maps are left out."""
    for number, wire_type, first, last in _fields(message, begin, end):
        if number == 1 and wire_type == _BYTES:
            return _text(message, first, last)
        if number in (2, 3) and wire_type == _VARINT:
            return ("false", "true")[first & 1] if number == 2 else str(_signed(first))
        if number == 4 and wire_type == _FIXED64:
            return str(_DOUBLE.unpack_from(message.data, first)[0])
    return ""


def _fields(message: _Message, position: int, end: int) -> Iterator[_Field]:
    data = message.data
    while position < end:
        message.fields -= 1
        if message.fields < 0:
            message.allow_more()
        key = data[position]
        if key < 0x80:
            position += 1
        else:
            key, position = _varint(message, position, end)
        number, wire_type = key >> 3, key & 7
        size_bytes = 0
        if wire_type <= _BYTES and wire_type != _FIXED64:  # both begin with a number
            if position < end and data[position] < 0x80:
                size_bytes = data[position]
                position += 1
            else:
                size_bytes, position = _varint(message, position, end)
            if wire_type == _VARINT:
                yield number, wire_type, size_bytes, position
                continue
        elif wire_type in (_FIXED64, _FIXED32):
            size_bytes = 8 if wire_type == _FIXED64 else 4
        else:
            raise MalformedMetrics(f"wire type {wire_type} is not one of Protocol Buffers")
        if size_bytes > end - position or number == 0:
            raise MalformedMetrics("a field is cut off")
        begin, position = position, position + size_bytes
        yield number, wire_type, begin, position


def _varint(message: _Message, position: int, end: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise MalformedMetrics("a number is cut off")
        byte = message.data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            message.fields -= max(shift // 7 - 1, 0)
            return number & (1 << 64) - 1, position
    raise MalformedMetrics("a number has more than ten bytes")


def _text(message: _Message, begin: int, end: int) -> str:
    """At most MOST_CHARACTERS. Bytes that are not UTF-8 are replaced; characters that cannot be shown are escaped."""
    content = message.data[begin : min(end, begin + 4 * MOST_CHARACTERS)]
    text = content.decode("utf-8", "replace")[:MOST_CHARACTERS]
    if content.isascii() and text.isprintable():
        return text
    message.fields -= RARE_TEXT_FIELDS
    return text if text.isprintable() else repr(text)[1:-1][:MOST_CHARACTERS]


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
