"""Converts JSON objects to values of columns as Spark's lenient reader does, where there is no doubt what it does.

`Uncertain` stands for the rest: text in a column of times, quotes of another kind, a name that occurs twice.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

STRING, BIGINT, DOUBLE, VOID = (Primitive(name) for name in ("STRING", "BIGINT", "DOUBLE", "VOID"))
BITS = {"BIGINT": 63, "INT": 31, "SMALLINT": 15}
SPECIAL_NUMBERS = frozenset(("NaN", "INF", "Infinity"))  # as text
NO_OBJECT = re.compile(rb"[ \t\r\n]*(?:[^{\[\s\x80-\xff]|\{[ \t\r\n]*[^\"'}\s]|\Z)")
INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?\Z")
DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")


class Uncertain(Exception):
    """What only Spark's reader can judge."""


class Misfit(Exception):
    """A record that does not fit its schema."""


def json_object(value: bytes) -> dict[str, Any]:
    """The object that a record's value is; `Misfit` if it certainly is none."""
    if NO_OBJECT.match(value):
        raise Misfit
    try:
        found = json.loads(value.decode(), object_pairs_hook=_unique, parse_constant=_uncertain)
    except (ValueError, RecursionError):
        raise Uncertain("a record is not strict JSON") from None
    return found if isinstance(found, dict) else _uncertain(found)


def converted(value: Any, kind: ColumnType) -> Any:
    """A value as a column of a type has it; `Misfit` if it certainly has another type."""
    if value is None:
        return None
    if isinstance(kind, Struct):
        fields = value if isinstance(value, dict) else _misfit()
        return {each.name: converted(fields.get(each.name), each.type) for each in kind.fields}
    if isinstance(kind, Array):
        return [converted(each, kind.element) for each in (value if isinstance(value, list) else _misfit())]
    if isinstance(kind, Map) and kind.key == STRING:
        entries = value if isinstance(value, dict) else _misfit()
        return [(name, converted(each, kind.value)) for name, each in entries.items()]
    if kind.ddl not in _CONVERSIONS:
        raise Uncertain(f"a column has the type {kind.ddl}")
    return _CONVERSIONS[kind.ddl](value, kind.ddl)


def inferred_type(value: Any) -> ColumnType:
    """The type that Spark infers from a value; VOID from null."""
    if isinstance(value, dict):
        return Struct(tuple(Column(name, inferred_type(each)) for name, each in sorted(value.items())))
    if isinstance(value, list):
        return Array(merged_types(*map(inferred_type, value)))
    if type(value) is int:
        return BIGINT if -(1 << 63) <= value < 1 << 63 else _uncertain(value)
    plain = {bool: Primitive("BOOLEAN"), float: DOUBLE, str: STRING}
    return plain.get(type(value), VOID)


def merged_types(*types: ColumnType) -> ColumnType:
    """The type of a column that has values of all these types."""
    found: ColumnType = VOID
    for each in types:
        found = _merged(found, each)
    return found


def _merged(one: ColumnType, other: ColumnType) -> ColumnType:
    if one == other or VOID in {one, other}:
        return other if one == VOID else one
    if isinstance(one, Struct) and isinstance(other, Struct):
        found = {each.name: each.type for each in one.fields}
        found |= {each.name: _merged(found.get(each.name, VOID), each.type) for each in other.fields}
        return Struct(tuple(Column(name, kind) for name, kind in sorted(found.items())))
    if isinstance(one, Array) and isinstance(other, Array):
        return Array(_merged(one.element, other.element))
    return DOUBLE if {one, other} == {BIGINT, DOUBLE} else STRING


def settled_type(kind: ColumnType) -> ColumnType:
    """An inferred type as a column has it: what was always null is a STRING."""
    if isinstance(kind, Struct):
        fields = kind.fields or _uncertain("an object without fields")
        return Struct(tuple(Column(each.name, settled_type(each.type)) for each in fields))
    if isinstance(kind, Array):
        return Array(settled_type(kind.element))
    return STRING if kind == VOID else kind


def _uncertain(value: Any) -> Any:
    raise Uncertain(f"a record has {str(value)[:60]}, which Spark reads in a way of its own")


def _misfit() -> Any:
    raise Misfit


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _uncertain("a name twice")


def _whole(value: Any, ddl: str) -> Any:
    return value if type(value) is int and -(1 << BITS[ddl]) <= value < 1 << BITS[ddl] else _misfit()


def _fraction(value: Any, _ddl: str) -> Any:
    if type(value) not in {int, float}:
        return _uncertain(value) if str(value).lstrip("+-") in SPECIAL_NUMBERS else _misfit()
    return float(value) if abs(value) < math.inf else _uncertain(value)


def _text(value: Any, _ddl: str) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value) if type(value) is int else _uncertain(value)


def _truth(value: Any, _ddl: str) -> Any:
    return value if isinstance(value, bool) else _misfit()


def _time(value: Any, ddl: str) -> Any:
    if not isinstance(value, str) or not (DAY if ddl == "DATE" else INSTANT).match(value):
        return _uncertain(value)
    try:
        if ddl == "DATE":
            return date.fromisoformat(value)
        found = datetime.fromisoformat(value)
    except ValueError:
        return _uncertain(value)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


_CONVERSIONS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(BITS, _whole),
    **dict.fromkeys(("DATE", "TIMESTAMP"), _time),
    "DOUBLE": _fraction, "STRING": _text, "BOOLEAN": _truth,
}  # fmt: skip
