"""Avro schemas: their types as a tree, in which a name is the type that it stands for, their columns, and those of
writers by the id in Confluent's wire format: a zero byte, and the id in four bytes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Decimal, Map, Primitive, Struct

HEADER_BYTES = 5
MAGIC = b"\0"
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


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record. `default` is its JSON value."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@dataclass(slots=True, eq=False)
class AvroType:
    """A type. Records, enums and fixed have a full name; the fields of a record are set after it can be referred to."""

    kind: str  # a primitive, record, enum, fixed, array, map or union
    name: str = ""
    aliases: tuple[str, ...] = ()
    logical: str | None = None
    scale: int = 0
    precision: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    default: str | None = None  # of an enum
    inner: AvroType | None = None  # elements of an array, values of a map
    members: tuple[AvroType, ...] = ()
    fields: tuple[AvroField, ...] = field(default=(), repr=False)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    def __str__(self) -> str:
        if self.kind == "union":
            return f"[{', '.join(map(str, self.members))}]"
        return f"{self.kind} {self.name}" if self.name else self.logical or self.kind


def avro_columns(schema: Any) -> tuple[Column, ...]:
    """The columns of a record, or `AvroSchemaError`."""
    check_schema(schema)
    return columns_of(avro_type(schema), ())


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


def columns_of(record: AvroType, around: tuple[AvroType, ...]) -> tuple[Column, ...]:
    """The columns of a record within others."""
    if record in around:
        raise AvroSchemaError(f"'{record.short_name}' contains itself; recursive types are not supported")
    within = (*around, record)
    return tuple(Column(each.name, column_type(each.type, within), may_be_null(each.type)) for each in record.fields)


def may_be_null(kind: AvroType) -> bool:
    return kind.kind == "null" or any(each.kind == "null" for each in kind.members)


def column_type(kind: AvroType, around: tuple[AvroType, ...]) -> ColumnType:
    """The type of a column. A union of several types is a struct with a member for each."""
    if kind.logical == "decimal":
        return Decimal(kind.precision, kind.scale)
    if kind.logical in LOGICAL:
        return Primitive(LOGICAL[kind.logical])
    match kind.kind:
        case "union":
            members = [column_type(each, around) for each in kind.members if each.kind != "null"]
            named = tuple(Column(f"member{number}", each) for number, each in enumerate(members))
            return members[0] if len(members) == 1 else Struct(named)
        case "record":
            return Struct(columns_of(kind, around))
        case "array":
            return Array(column_type(inner(kind), around))
        case "map":
            return Map(Primitive("STRING"), column_type(inner(kind), around))
        case "enum" | "fixed":
            return Primitive("STRING" if kind.kind == "enum" else "BINARY")
    return Primitive(PRIMITIVES[kind.kind])


def avro_type(schema: Any) -> AvroType:
    """The type of a valid schema."""
    return TypeReader().read(schema, "")


class TypeReader:
    """Reads one schema; names are resolved in the namespace in which they stand."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def read(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, list):
            return AvroType("union", members=tuple(self.read(each, namespace) for each in schema))
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return AvroType(schema)
            return self._named.get(full_name(schema, namespace)) or self._named[schema]
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.read(kind, namespace)
        if kind == "array":
            return AvroType(kind, inner=self.read(schema["items"], namespace))
        if kind == "map":
            return AvroType(kind, inner=self.read(schema["values"], namespace))
        if kind in {"record", "error", "enum", "fixed"}:
            return self._read_named(schema, "record" if kind == "error" else kind, namespace)
        return AvroType(kind, **logical_of(schema)) if kind in PRIMITIVES else self.read(kind, namespace)

    def _read_named(self, schema: Any, kind: str, namespace: str) -> AvroType:
        name = full_name(schema["name"], schema.get("namespace", namespace))
        within = name.rpartition(".")[0]
        made = AvroType(
            kind, name, tuple(full_name(each, within) for each in schema.get("aliases", ())), **logical_of(schema),
            size=schema.get("size", 0), symbols=tuple(schema.get("symbols", ())),
            default=schema.get("default") if kind == "enum" else None,
        )  # fmt: skip
        self._named[name] = made
        for each in schema.get("fields", ()):
            if not isinstance(each["name"], str):
                raise AvroSchemaError(f"the name of a field must be a string, not {each['name']!r}")
        made.fields = tuple(
            AvroField(
                each["name"],
                self.read(each["type"], within),
                tuple(each.get("aliases", ())),
                "default" in each,
                each.get("default"),
            )
            for each in schema.get("fields", ())
        )
        return made


def logical_of(schema: Any) -> dict[str, Any]:
    precision, scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
    return {"logical": schema.get("logicalType"), "precision": precision, "scale": scale}


def full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def is_wrapped(union: AvroType) -> bool:
    """Whether a value of the union does not tell its member: there are several besides null."""
    return len([each for each in union.members if each.kind != "null"]) > 1


def wire_schema(kind: AvroType) -> Any:
    """A schema of the same encoding, for decoding: without logical types, and with the member of a union in its value.

    A member is a record with the single field `member0`, `member1` …: such a record is encoded as its field. Types have
    names of their own, because the names of a schema do not matter for the encoding."""
    names: dict[int, str] = {}
    members = itertools.count()

    def member(index: int, each: AvroType) -> Any:
        field_of = {"name": f"member{index}", "type": schema(each)}
        return {"type": "record", "name": f"Member{next(members)}", "fields": [field_of]}

    def schema(each: AvroType) -> Any:
        if each.kind == "union":
            return [
                member(index, one) if one.kind != "null" and is_wrapped(each) else schema(one)
                for index, one in enumerate(each.members)
            ]
        if each.kind == "array":
            return {"type": "array", "items": schema(inner(each))}
        if each.kind == "map":
            return {"type": "map", "values": schema(inner(each))}
        if not each.name:
            return each.kind
        if id(each) in names:
            return names[id(each)]
        name = names[id(each)] = f"Type{len(names)}"
        named = {"type": each.kind, "name": name}
        if each.kind == "record":
            return {**named, "fields": [{"name": one.name, "type": schema(one.type)} for one in each.fields]}
        return {**named, "size": each.size} if each.kind == "fixed" else {**named, "symbols": list(each.symbols)}

    return schema(kind)


def inner(kind: AvroType) -> AvroType:
    assert kind.inner is not None
    return kind.inner
