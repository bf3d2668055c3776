"""Resolves values of a writer's Avro schema with a reader's, by the rules of Avro's specification.

`converter` compiles two types to a function from a decoded value (of `wire_schema`) to a column value: fields are
matched by name and alias, missing ones take the reader's default, numbers and text are promoted. Where the reader has a
union, the member of the same type is preferred over one that needs a promotion, as in Avro's Java library. A union of
several types becomes a struct with one member set.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import TYPE_CHECKING, Any, NoReturn

from odradek.pipelines.definition.avro_types import AvroField, AvroType, inner, is_wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[Any], Any]


class Unresolvable(Exception):
    """No value of the writer's type, or not this value, can be read as the reader's type."""


def identity(value: Any) -> Any:
    return value


PROMOTIONS: dict[tuple[str, str], Convert] = {
    ("int", "long"): identity,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): identity,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): bytes.decode,
}
UTC_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of local timestamps, which have no zone
TIMESTAMPS = {
    "timestamp-millis": (UTC_EPOCH, 1000),
    "timestamp-micros": (UTC_EPOCH, 1),
    "local-timestamp-millis": (EPOCH, 1000),
    "local-timestamp-micros": (EPOCH, 1),
}
LOGICAL = frozenset({"date", "decimal", "uuid", *TIMESTAMPS})
PRECISE = decimal.Context(prec=100)  # values of bytes may have more digits than Python's default context keeps


def converter(writer: AvroType, reader: AvroType, path: str = "the record") -> Convert:
    """The function from the writer's values to column values; `Unresolvable` if no value can be read."""
    if writer.kind == "union":
        return from_union(writer, reader, path)
    if reader.kind == "union":
        return to_union(writer, reader, path)
    if writer.kind != reader.kind and (writer.kind, reader.kind) not in PROMOTIONS:
        fail(writer, reader, path)
    if reader.kind == "record":
        return to_record(writer, reader, path)
    if reader.kind == "array":
        element = converter(inner(writer), inner(reader), f"an element of {path}")
        return lambda values: [element(each) for each in values]
    if reader.kind == "map":
        entry = converter(inner(writer), inner(reader), f"a value of {path}")
        return lambda values: {key: entry(each) for key, each in values.items()}
    if reader.kind == "enum":
        return to_enum(writer, reader, path)
    if reader.kind == "fixed" and (not has_name_of(writer, reader) or writer.size != reader.size):
        fail(writer, reader, path)
    return then(PROMOTIONS.get((writer.kind, reader.kind), identity), logical(writer, reader, path))


def fail(writer: AvroType, reader: AvroType, path: str) -> NoReturn:
    raise Unresolvable(f"{path} is {writer} for its writer and {reader} for the reader")


def has_name_of(writer: AvroType, reader: AvroType) -> bool:
    return writer.short_name == reader.short_name or writer.name in reader.aliases


def then(first: Convert, second: Convert) -> Convert:
    if first is identity:
        return second
    return first if second is identity else lambda value: second(first(value))


def refusal(reason: str) -> Convert:
    def refuse(_value: Any) -> Any:
        raise Unresolvable(reason)

    return refuse


def from_union(writer: AvroType, reader: AvroType, path: str) -> Convert:
    """The member of the writer's union that a value has is resolved by itself."""
    converts: dict[str, Convert] = {}
    refused = 0
    for index, each in enumerate(writer.members):
        name = "null" if each.kind == "null" else f"member{index}" if is_wrapped(writer) else "only"
        try:
            converts[name] = converter(each, reader, path)
        except Unresolvable as error:
            converts[name] = refusal(str(error))
            refused += 1
    if refused == len(writer.members):
        fail(writer, reader, path)
    nothing = converts.get("null", identity)
    if not is_wrapped(writer):
        only = converts.get("only", identity)
        return lambda value: nothing(None) if value is None else only(value)

    def convert(value: Any) -> Any:
        if value is None:
            return nothing(None)
        ((member, content),) = value.items()
        return converts[member](content)

    return convert


def to_union(writer: AvroType, reader: AvroType, path: str) -> Convert:
    member = matching_member(writer, reader, path)
    if member is None:
        fail(writer, reader, path)
    convert = converter(writer, member, path)
    return member_value(reader, member, convert)


def member_value(union: AvroType, member: AvroType, convert: Convert) -> Convert:
    """The column value of a union: the value itself if it is the only type besides null."""
    real = [each for each in union.members if each.kind != "null"]
    if member.kind == "null" or len(real) == 1:
        return convert
    name = f"member{real.index(member)}"
    return lambda value: {name: convert(value)}


def matching_member(writer: AvroType, union: AvroType, path: str) -> AvroType | None:
    """The member of a reader's union: of the same name, of the same type, or the first that needs a promotion."""
    alike = [each for each in union.members if each.kind == writer.kind]
    named = [each for each in alike if each.name and (each.name == writer.name or writer.name in each.aliases)]
    if named:
        return named[0]
    by_short_name = [each for each in alike if each.name and has_name_of(writer, each)]
    unnamed = [each for each in alike if not each.name]
    for each in (*by_short_name, *unnamed, *alike, *union.members):
        if (each in alike or (writer.kind, each.kind) in PROMOTIONS) and can_resolve(writer, each, path):
            return each
    return None


def can_resolve(writer: AvroType, reader: AvroType, path: str) -> bool:
    try:
        converter(writer, reader, path)
    except Unresolvable:
        return False
    return True


def to_record(writer: AvroType, reader: AvroType, path: str) -> Convert:
    """Fields by name, or by an alias of the reader's; names of records may differ, as in Avro's Java library."""
    written = {each.name: each for each in writer.fields}
    taken: list[tuple[str, str, Convert]] = []
    defaults: dict[str, Any] = {}
    for each in reader.fields:
        found = next((written[name] for name in (each.name, *each.aliases) if name in written), None)
        where = f"field '{each.name}'" if path == "the record" else f"field '{each.name}' of {path}"
        if found is not None:
            taken.append((each.name, found.name, converter(found.type, each.type, where)))
        elif each.has_default:
            defaults[each.name] = default_value(each)
        else:
            raise Unresolvable(f"{where} has no default, and its writer does not write it")
    names = {each.name: None for each in reader.fields}

    def convert(value: Any) -> dict[str, Any]:
        made = {**names, **defaults}
        for name, source, field_of in taken:
            made[name] = field_of(value[source])
        return made

    return convert


def to_enum(writer: AvroType, reader: AvroType, path: str) -> Convert:
    if not has_name_of(writer, reader):
        fail(writer, reader, path)
    symbols, default = frozenset(reader.symbols), reader.default
    if symbols.issuperset(writer.symbols):
        return identity

    def convert(symbol: str) -> str:
        if symbol in symbols:
            return symbol
        if default is None:
            raise Unresolvable(f"{path} is '{symbol}', which is not a symbol of the reader's {reader}")
        return default

    return convert


def logical(writer: AvroType, reader: AvroType, path: str) -> Convert:
    """The column value of a logical type. The writer's unit is used for timestamps of both."""
    wanted = reader.logical if reader.logical in LOGICAL else None
    found = writer.logical if writer.logical in LOGICAL else None
    if wanted is None:
        return identity
    if wanted in TIMESTAMPS:
        unit = wanted if found is None else found
        if unit not in TIMESTAMPS or TIMESTAMPS[unit][0] is not TIMESTAMPS[wanted][0]:
            fail(writer, reader, path)
        return timestamp_of(*TIMESTAMPS[unit])
    if found is not None and (found != wanted or writer.scale != reader.scale):
        raise Unresolvable(
            f"{path} is {writer} of scale {writer.scale} for its writer and {reader} of scale {reader.scale} "
            "for the reader" if found == wanted else f"{path} is {found} for its writer and {wanted} for the reader"
        )  # fmt: skip
    if wanted == "date":
        return lambda days: EPOCH.date() + datetime.timedelta(days=days)
    if wanted == "decimal":
        scale = -reader.scale
        return lambda data: decimal.Decimal(int.from_bytes(data, signed=True)).scaleb(scale, PRECISE)
    return (lambda data: str(uuid.UUID(bytes=data))) if reader.kind == "fixed" else identity


def timestamp_of(epoch: datetime.datetime, micros: int) -> Convert:
    return lambda count: epoch + datetime.timedelta(microseconds=count * micros)


def default_value(field: AvroField) -> Any:
    """The column value of a field's default."""
    try:
        return from_json(field.default, field.type)
    except (Unresolvable, TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unresolvable(f"the default of field '{field.name}' is not of its type {field.type}: {error}") from None


def from_json(value: Any, kind: AvroType) -> Any:
    """The column value of a default, which is written in JSON: bytes as text of their code points."""
    if kind.kind == "union":
        for member in kind.members:
            try:
                return member_value(kind, member, lambda content, of=member: from_json(content, of))(value)  # type: ignore[misc]  # mypy does not infer a lambda with a default
            except (Unresolvable, TypeError, ValueError, KeyError, AttributeError):
                continue
        raise Unresolvable(f"{value!r} is of no type of {kind}")
    if kind.kind == "record":
        return {
            each.name: from_json(value[each.name], each.type) if each.name in value else default_value(each)
            for each in kind.fields
        }
    if kind.kind == "array":
        return [from_json(each, inner(kind)) for each in list_of(value)]
    if kind.kind == "map":
        return {key: from_json(each, inner(kind)) for key, each in value.items()}
    raw = value.encode("latin-1") if kind.kind in {"bytes", "fixed"} else value
    if not isinstance(raw, PYTHON_TYPES[kind.kind]) or (isinstance(raw, bool) and kind.kind != "boolean"):
        raise Unresolvable(f"{value!r} is not of type {kind}")
    return logical(kind, kind, "a default")(float(raw) if kind.kind in {"float", "double"} else raw)


def list_of(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Unresolvable(f"{value!r} is not an array")
    return value


PYTHON_TYPES: dict[str, Any] = {
    "null": type(None), "boolean": bool, "int": int, "long": int, "float": (int, float), "double": (int, float),
    "bytes": bytes, "fixed": bytes, "string": str, "enum": str,
}  # fmt: skip
