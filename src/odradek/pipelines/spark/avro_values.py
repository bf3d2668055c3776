"""Converts values from fastavro to column values; a union of several types becomes a struct with one member set."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.column_types import Array, Decimal, Map, Struct

if TYPE_CHECKING:
    from odradek.pipelines.definition.column_types import ColumnType

KINDS: dict[str, type | tuple[type, ...]] = {
    "BOOLEAN": bool,
    "INT": int,
    "BIGINT": int,
    "FLOAT": float,
    "DOUBLE": float,
    "STRING": (str, uuid.UUID),
    "BINARY": bytes,
    "DATE": datetime.date,
    "TIMESTAMP": datetime.datetime,
    "TIMESTAMP_NTZ": datetime.datetime,
}


def column_value(value: Any, kind: ColumnType) -> Any:
    if value is None:
        return None
    if isinstance(kind, Struct):
        if is_union(kind):
            chosen = next(each for each in kind.fields if is_of(value, each.type))
            return {chosen.name: column_value(value, chosen.type)}
        return {each.name: column_value(value.get(each.name), each.type) for each in kind.fields}
    if isinstance(kind, Array):
        return [column_value(each, kind.element) for each in value]
    if isinstance(kind, Map):
        return {key: column_value(each, kind.value) for key, each in value.items()}
    return str(value) if isinstance(value, uuid.UUID) else value


def is_union(kind: Struct) -> bool:
    """Whether the struct stands for a union, by the names that `avro_schema` gives to members."""
    return [each.name for each in kind.fields] == [f"member{number}" for number in range(len(kind.fields))]


def is_of(value: Any, kind: ColumnType) -> bool:
    if isinstance(kind, Array):
        return isinstance(value, list)
    if isinstance(kind, Map):
        return isinstance(value, dict)
    if isinstance(kind, Struct):
        return isinstance(value, dict) and set(value) == {each.name for each in kind.fields}
    if isinstance(kind, Decimal):
        return isinstance(value, decimal.Decimal)
    is_truth = isinstance(value, bool)
    return isinstance(value, KINDS[kind.name]) and is_truth == (kind.name == "BOOLEAN")
