"""Whether values of JSON fit the types of columns, as Spark reads them; Spark is not asked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.column_types import Array, Decimal, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.pipelines.definition.column_types import Column, ColumnType

BITS = {"TINYINT": 8, "BYTE": 8, "SMALLINT": 16, "SHORT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64, "LONG": 64}
FRACTIONS = frozenset(("FLOAT", "REAL", "DOUBLE"))
NO_NUMBERS = frozenset(("NaN", "INF", "+INF", "-INF", "Infinity", "+Infinity", "-Infinity"))
TIMES = frozenset(("TIMESTAMP", "TIMESTAMP_LTZ"))  # a number is a time in seconds since 1970
DATES = frozenset(("TIMESTAMP_NTZ", "DATE"))
BEGINNING_OF_A_TIME = re.compile(r"\s*([+-]?\d{4,7}\b|T?\d?\d:)")


def mismatch(fields: dict[str, Any], columns: Iterable[Column]) -> str | None:
    """The first field that does not fit its column, as in the reason of a dead letter; fields that are missing, and
    those that no column reads, fit."""
    return next(_mismatches(fields, columns, ""), None)


def _mismatches(fields: dict[str, Any], columns: Iterable[Column], prefix: str) -> Iterator[str]:
    for column in columns:
        value, path = fields.get(column.name), f"{prefix}{column.name}"
        if isinstance(column.type, Struct) and isinstance(value, dict):
            yield from _mismatches(value, column.type.fields, f"{path}.")
        elif value is not None and not _fits(value, column.type):
            yield f"field {path}: expected {column.type.ddl}, found {json.dumps(value, ensure_ascii=False)}"


def _fits(value: Any, kind: ColumnType) -> bool:
    if value is None:
        return True
    match kind:
        case Struct():
            return isinstance(value, dict) and mismatch(value, kind.fields) is None
        case Array():
            return isinstance(value, list) and all(_fits(each, kind.element) for each in value)
        case Map():
            return isinstance(value, dict) and all(_fits(each, kind.value) for each in value.values())
        case Decimal():
            return is_number(value) or isinstance(value, str)
        case Primitive():
            return _fits_primitive(value, kind.name)


def _fits_primitive(value: Any, name: str) -> bool:
    if name in BITS:
        return type(value) is int and -(1 << BITS[name] - 1) <= value < 1 << BITS[name] - 1
    if name in FRACTIONS:
        return is_number(value) or (isinstance(value, str) and value in NO_NUMBERS)
    if name == "BOOLEAN":
        return isinstance(value, bool)
    if name in TIMES or name in DATES:
        is_text = isinstance(value, str) and BEGINNING_OF_A_TIME.match(value) is not None
        return is_text or (name in TIMES and type(value) is int)
    return name != "BINARY" or isinstance(value, str)  # text takes any value, as it is written


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
