"""Reads metrics in the format of OpenTelemetry (MetricsData, version 1, Protocol Buffers), as clients push them.

Only what is shown is read: names, attributes and numbers of gauges, sums and histograms. The number of fields, of data
points and of characters is bounded, so that a hostile push costs some milliseconds. Unknown fields are skipped.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FIELDS = 40_000
MOST_POINTS = 2_000
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


class _Budget:
    """Counts fields over the whole message."""

    __slots__ = ("fields", "points")

    def __init__(self) -> None:
        self.fields = MOST_FIELDS
        self.points = MOST_POINTS


def read_metrics(data: bytes) -> list[Point]:
    """MalformedMetrics for bytes that are not valid or that exceed a limit."""
    budget = _Budget()
    view = memoryview(data)
    points: list[Point] = []
    for number, resource in _messages(view, budget):
        if number == 1:  # resource_metrics
            for inner, scope in _messages(resource, budget):
                if inner == 2:  # scope_metrics
                    for field, metric in _messages(scope, budget):
                        if field == 2:  # metrics
                            points += _read_metric(metric, budget)
    return points


def _read_metric(metric: memoryview, budget: _Budget) -> Iterator[Point]:
    name, data, kind = "", None, Kind.GAUGE
    for number, content in _messages(metric, budget):
        if number == 1:
            name = _text(content)
        elif number in _KINDS:
            data, kind = content, _KINDS[number]
    if data is None:
        return
    temporality = 0
    contents: list[memoryview] = []
    for number, wire_type, value in _fields(data, budget):
        if number == 1 and isinstance(value, memoryview):
            contents.append(value)
        elif number == 2 and wire_type == _VARINT and isinstance(value, int):
            temporality = value
    for content in contents:
        budget.points -= 1
        if budget.points < 0:
            raise MalformedMetrics(f"a push has more than {MOST_POINTS} data points")
        yield _read_point(name, kind, content, budget, is_delta=temporality == _DELTA)


_KINDS = {5: Kind.GAUGE, 7: Kind.SUM, 9: Kind.HISTOGRAM}


def _read_point(name: str, kind: Kind, content: memoryview, budget: _Budget, *, is_delta: bool) -> Point:
    value, count = 0.0, 1
    attributes: list[tuple[str, str]] = []
    attribute_field = 9 if kind is Kind.HISTOGRAM else 7
    for number, wire_type, field in _fields(content, budget):
        if isinstance(field, memoryview) and number == attribute_field and wire_type == _BYTES:
            if len(attributes) < MOST_ATTRIBUTES:
                attributes.append(_read_attribute(field, budget))
        elif wire_type == _FIXED64 and isinstance(field, memoryview):
            if kind is Kind.HISTOGRAM:
                if number == 4:
                    count = _INT64.unpack(field)[0]
                elif number == 5:
                    value = _DOUBLE.unpack(field)[0]
            elif number == 4:
                value = _DOUBLE.unpack(field)[0]
            elif number == 6:
                value = float(_INT64.unpack(field)[0])
    return Point(name, tuple(sorted(attributes)), kind, value, count, is_delta)


def _read_attribute(content: memoryview, budget: _Budget) -> tuple[str, str]:
    key, value = "", ""
    for number, _, field in _fields(content, budget):
        if isinstance(field, memoryview) and number == 1:
            key = _text(field)
        elif isinstance(field, memoryview) and number == 2:
            value = _read_value(field, budget)
    return key, value


def _read_value(content: memoryview, budget: _Budget) -> str:
    """AnyValue: text, boolean, integer or floating-point number. Lists and maps are left out."""
    for number, wire_type, field in _fields(content, budget):
        if number == 1 and wire_type == _BYTES and isinstance(field, memoryview):
            return _text(field)
        if number in (2, 3) and isinstance(field, int):
            return ("false", "true")[field & 1] if number == 2 else str(_signed(field))
        if number == 4 and wire_type == _FIXED64 and isinstance(field, memoryview):
            return str(_DOUBLE.unpack(field)[0])
    return ""


def _messages(view: memoryview, budget: _Budget) -> Iterator[tuple[int, memoryview]]:
    for number, wire_type, value in _fields(view, budget):
        if wire_type == _BYTES and isinstance(value, memoryview):
            yield number, value


def _fields(view: memoryview, budget: _Budget) -> Iterator[tuple[int, int, int | memoryview]]:
    """Number, wire type and value of each field: an integer, or the bytes of the others."""
    position, end = 0, len(view)
    while position < end:
        budget.fields -= 1
        if budget.fields < 0:
            raise MalformedMetrics(f"a push has more than {MOST_FIELDS} fields")
        key, position = _varint(view, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, position = _varint(view, position)
            yield number, wire_type, value
            continue
        if wire_type == _BYTES:
            size_bytes, position = _varint(view, position)
        elif wire_type in (_FIXED64, _FIXED32):
            size_bytes = 8 if wire_type == _FIXED64 else 4
        else:
            raise MalformedMetrics(f"wire type {wire_type} is not one of Protocol Buffers")
        if size_bytes > end - position or number == 0:
            raise MalformedMetrics("a field is cut off")
        yield number, wire_type, view[position : position + size_bytes]
        position += size_bytes


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if position >= len(view):
            raise MalformedMetrics("a number is cut off")
        byte = view[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number & (1 << 64) - 1, position
    raise MalformedMetrics("a number has more than ten bytes")


def _text(view: memoryview) -> str:
    """At most MOST_CHARACTERS. Bytes that are not UTF-8 are replaced, control characters too."""
    text = bytes(view[: 4 * MOST_CHARACTERS]).decode("utf-8", "replace")[:MOST_CHARACTERS]
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
