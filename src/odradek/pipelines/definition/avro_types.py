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
    return columns_of(avro_type(schema), ())


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
    """The type of a record, or `AvroSchemaError`."""
    import fastavro.schema  # noqa: PLC0415 - only definitions with Avro pay for it

    try:
        parsed: Any = fastavro.schema.parse_schema(schema)  # all names are full names
    except Exception as error:  # fastavro lets exceptions of any type escape for an invalid schema
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AvroSchemaError(f"invalid Avro schema: {reason}") from error
    if not isinstance(parsed, dict) or parsed.get("type") not in {"record", "error"}:
        raise AvroSchemaError("the schema is not a record: its type must be 'record'")
    return type_of(parsed, {})


def type_of(schema: Any, named: dict[str, AvroType]) -> AvroType:
    """The type of a parsed schema; `named` has the types that were declared before it."""
    if isinstance(schema, list):
        return AvroType("union", members=tuple(type_of(each, named) for each in schema))
    if isinstance(schema, str):
        return named.get(schema) or AvroType(schema)
    kind, name = schema["type"], schema.get("name", "")
    namespace = name.rpartition(".")[0]
    made = AvroType(
        "record" if kind == "error" else kind,
        name,
        aliases=tuple(full_name(each, namespace) for each in schema.get("aliases", ())),
        logical=schema.get("logicalType"),
        scale=int(schema.get("scale", 0)),
        precision=int(schema.get("precision", 0)),
        size=schema.get("size", 0),
        symbols=tuple(schema.get("symbols", ())),
        default=schema.get("default") if kind == "enum" else None,
        inner=type_of(schema["items" if kind == "array" else "values"], named) if kind in {"array", "map"} else None,
    )
    named[name] = made
    made.fields = tuple(field_of(each, named) for each in schema.get("fields", ()))
    return made


def field_of(schema: Any, named: dict[str, AvroType]) -> AvroField:
    name, aliases = schema["name"], tuple(schema.get("aliases", ()))
    if not isinstance(name, str):
        raise AvroSchemaError(f"the name of a field must be a string, not {name!r}")
    return AvroField(name, type_of(schema["type"], named), aliases, "default" in schema, schema.get("default"))


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
