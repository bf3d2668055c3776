"""Converts an Avro schema to columns; fastavro validates the schema."""

from __future__ import annotations

from typing import Any

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Decimal, Map, Primitive, Struct

PRIMITIVES = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bytes": "BINARY",
    "string": "STRING", "null": "STRING",
}  # fmt: skip
LOGICAL = {
    "date": "DATE", "timestamp-millis": "TIMESTAMP", "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ", "local-timestamp-micros": "TIMESTAMP_NTZ", "uuid": "STRING",
}  # fmt: skip


class AvroSchemaError(Exception):
    """The schema is invalid, or does not describe a record; the message says why."""


def avro_columns(schema: Any) -> tuple[Column, ...]:
    """The columns of a record, or `AvroSchemaError`."""
    check_schema(schema)
    return Converter().columns(schema)


def check_schema(schema: Any) -> None:
    """`AvroSchemaError` unless this is the schema of a record."""
    import fastavro.schema  # noqa: PLC0415 - only definitions with Avro pay for it

    try:
        fastavro.schema.parse_schema(schema)
    except Exception as error:  # fastavro lets exceptions of any type escape for an invalid schema
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AvroSchemaError(f"invalid Avro schema: {reason}") from error
    if not isinstance(schema, dict) or schema.get("type") not in {"record", "error"}:
        raise AvroSchemaError("the schema is not a record: its type must be 'record'")


class Converter:
    """Converts one schema; named types are resolved by their name."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: set[str] = set()

    def columns(self, schema: dict[str, Any]) -> tuple[Column, ...]:
        name = str(schema.get("name"))
        if name in self._open:
            raise AvroSchemaError(f"'{name}' contains itself; recursive types are not supported")
        self._open.add(name)
        self._named[name.rpartition(".")[2]] = schema
        columns = []
        for field in schema.get("fields", []):
            if not isinstance(field["name"], str):
                raise AvroSchemaError(f"the name of a field must be a string, not {field['name']!r}")
            kind, may_be_null = self._type(field["type"])
            columns.append(Column(field["name"], kind, may_be_null))
        self._open.discard(name)
        return tuple(columns)

    def _type(self, schema: Any) -> tuple[ColumnType, bool]:
        """The type of a value, and whether it may be null."""
        if isinstance(schema, list):
            real = [each for each in schema if each != "null"]
            if len(real) == 1:
                return self._type(real[0])[0], len(real) < len(schema)
            return Struct(tuple(Column(f"member{i}", self._type(each)[0]) for i, each in enumerate(real))), len(
                real
            ) < len(schema)
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return Primitive(PRIMITIVES[schema]), schema == "null"
            return self._type(self._named[schema.rpartition(".")[2]])
        return self._complex(schema), False

    def _complex(self, schema: dict[str, Any]) -> ColumnType:
        kind = schema["type"]
        if "name" in schema:
            self._named[str(schema["name"]).rpartition(".")[2]] = schema
        if schema.get("logicalType") == "decimal":
            return Decimal(int(schema["precision"]), int(schema.get("scale", 0)))
        if schema.get("logicalType") in LOGICAL:
            return Primitive(LOGICAL[schema["logicalType"]])
        if kind in {"record", "error"}:
            return Struct(self.columns(schema))
        if kind == "enum":
            return Primitive("STRING")
        if kind == "fixed":
            return Primitive("BINARY")
        if kind == "array":
            return Array(self._type(schema["items"])[0])
        if kind == "map":
            return Map(Primitive("STRING"), self._type(schema["values"])[0])
        return self._type(kind)[0]
