"""Avro schemas: the columns of their records, and records as fastavro resolves them.

fastavro decodes with the schema of the writer and that of the reader. It gives the logical types of the writer, and
defaults of the reader in JSON; here both become values of the columns.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Decimal, Map, Primitive, Struct

if TYPE_CHECKING:
    import io
    from collections.abc import Callable

    Convert = Callable[[Any], Any]
    Named = dict[str, Any]  # the schemas of named types

HEADER_BYTES = 5  # of Confluent's wire format: a zero byte, and the id of the writer's schema in four bytes
MAGIC = b"\0"
UTC_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of local timestamps, which have no zone
PRECISE = decimal.Context(prec=100)  # values of bytes may have more digits than Python's default context keeps


class AvroSchemaError(Exception):
    """The schema is invalid, or does not describe a record; the message says why."""


class Type(NamedTuple):
    """A type of the reader: that of its column, and the conversion of what fastavro gives."""

    column: ColumnType
    convert: Convert
    may_be_null: bool = False


def avro_columns(schema: Any) -> tuple[Column, ...]:
    """The columns of a record, or `AvroSchemaError`."""
    named: Named = {}
    found = type_of(parsed(schema, named), named, ()).column
    assert isinstance(found, Struct)
    return found.fields


def record_reader(writer: Any, reader: Any) -> Callable[[io.BytesIO], dict[str, Any]]:
    """The function that reads a record of a writer's schema as columns of the reader's."""
    import fastavro  # noqa: PLC0415 - only definitions with Avro pay for it

    named: Named = {}
    written, read = parsed(writer, {}), parsed(reader, named)
    convert = type_of(read, named, ()).convert
    return lambda stream: convert(fastavro.schemaless_reader(stream, written, read))


def parsed(schema: Any, named: Named) -> Any:
    """The schema of a record in fastavro's form, or `AvroSchemaError`; adds the named types."""
    import fastavro  # noqa: PLC0415

    try:
        found: Any = fastavro.parse_schema(without_other_logical_types(schema), named)
        if isinstance(found, dict) and found.get("type") in {"record", "error"}:
            names = [field["name"] for each in named.values() for field in each.get("fields", ())]
            if not all(isinstance(name, str) for name in names):
                raise AvroSchemaError("the name of a field must be a string")
            return found
    except AvroSchemaError:
        raise
    except Exception as error:  # fastavro lets exceptions of any type escape for an invalid schema
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AvroSchemaError(f"invalid Avro schema: {reason}") from error
    raise AvroSchemaError("the schema is not a record: its type must be 'record'")


def without_other_logical_types(schema: Any) -> Any:
    """The schema without logical types that no column has, such as times of a day."""
    if isinstance(schema, list):
        return [without_other_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "logicalType" or value in LOGICAL}
    return {key: value if key == "default" else without_other_logical_types(value) for key, value in kept.items()}


def type_of(schema: Any, named: Named, around: tuple[str, ...]) -> Type:
    """The type of a parsed schema within records of these names."""
    if isinstance(schema, list):
        kinds = [each for each in schema if each != "null"] or ["null"]
        if len(kinds) > 1:
            raise AvroSchemaError("a union of several types has no column: a union has one type and null")
        column, convert, _ = type_of(kinds[0], named, around)
        return Type(column, lambda value: None if value is None else convert(value), len(kinds) < len(schema))
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if kind in {"record", "error"}:
        return type_of_record(schema, named, around)
    if kind == "array":
        column, convert, _ = type_of(schema["items"], named, around)
        return Type(Array(column), lambda values: [convert(each) for each in values])
    if kind == "map":
        column, convert, _ = type_of(schema["values"], named, around)
        return Type(
            Map(Primitive("STRING"), column), lambda values: {key: convert(each) for key, each in values.items()}
        )
    if logical == "decimal":
        scale = int(schema.get("scale", 0))
        return Type(Decimal(int(schema.get("precision", 0)), scale), lambda value: exact_decimal(value, scale))
    ddl, convert = LOGICAL[logical] if logical is not None else PLAIN[kind]
    return Type(Primitive(ddl), convert, may_be_null=kind == "null")


def type_of_record(schema: Any, named: Named, around: tuple[str, ...]) -> Type:
    name = schema["name"]
    if name in around:
        short = name.rpartition(".")[2]
        raise AvroSchemaError(f"'{short}' contains itself; recursive types are not supported")
    types = {each["name"]: type_of(each["type"], named, (*around, name)) for each in schema["fields"]}
    defaults = {each["name"]: each["default"] for each in schema["fields"] if "default" in each}

    def convert(value: Any) -> dict[str, Any]:
        found = {**defaults, **value}  # the default of a record may leave out fields that have defaults
        return {name: each.convert(found[name]) for name, each in types.items()}

    return Type(Struct(tuple(Column(name, each.column, each.may_be_null) for name, each in types.items())), convert)


def exact_decimal(value: Any, scale: int) -> decimal.Decimal:
    if isinstance(value, decimal.Decimal):
        if value.as_tuple().exponent != -scale:
            raise ValueError(f"a decimal of another scale than {scale}")
        return value
    return decimal.Decimal(int.from_bytes(plain_bytes(value), signed=True)).scaleb(-scale, PRECISE)


def plain_bytes(value: Any) -> bytes:
    """Bytes; those of a default are written as text of their code points."""
    return of_type(bytes)(value.encode("latin-1") if isinstance(value, str) else value)  # type: ignore[no-any-return]  # what `of_type` checks


def of_type(*kinds: type) -> Convert:
    """Refuses values of other types, such as times where the reader has a number."""

    def convert(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"{value!r} is of another type than in schema")
        return value

    return convert


def moment(epoch: datetime.datetime, micros: int) -> Convert:
    """A timestamp: of the writer's unit, or of the reader's where the writer has a number."""

    def convert(value: Any) -> datetime.datetime:
        if type(value) is int:
            return epoch + datetime.timedelta(microseconds=value * micros)
        if not isinstance(value, datetime.datetime) or (value.tzinfo is None) != (epoch.tzinfo is None):
            raise TypeError(f"{value!r} is of another type than in schema")
        return value

    return convert


def day(value: Any) -> Any:
    return EPOCH.date() + datetime.timedelta(days=value) if type(value) is int else of_type(datetime.date)(value)


NUMBER = of_type(int, float)
PLAIN: dict[str, tuple[str, Convert]] = {
    "null": ("STRING", of_type(type(None))), "boolean": ("BOOLEAN", of_type(bool)),
    "int": ("INT", of_type(int)), "long": ("BIGINT", of_type(int)),
    "float": ("FLOAT", lambda value: float(NUMBER(value))), "double": ("DOUBLE", lambda value: float(NUMBER(value))),
    "bytes": ("BINARY", plain_bytes), "fixed": ("BINARY", plain_bytes),
    "string": ("STRING", lambda value: str(of_type(str, uuid.UUID)(value))), "enum": ("STRING", of_type(str)),
}  # fmt: skip
LOGICAL: dict[str, tuple[str, Convert]] = {
    "date": ("DATE", day), "decimal": ("DECIMAL", plain_bytes),  # which `exact_decimal` converts
    "timestamp-millis": ("TIMESTAMP", moment(UTC_EPOCH, 1000)), "timestamp-micros": ("TIMESTAMP", moment(UTC_EPOCH, 1)),
    "local-timestamp-millis": ("TIMESTAMP_NTZ", moment(EPOCH, 1000)),
    "local-timestamp-micros": ("TIMESTAMP_NTZ", moment(EPOCH, 1)),
    "uuid": ("STRING", lambda value: str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value)),
}  # fmt: skip
