"""Avro schemas as a tree of types, in which a name is the type that it stands for."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


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
        logical, scale = schema.get("logicalType"), int(schema.get("scale", 0))
        if kind in {"record", "error", "enum", "fixed"}:
            return self._read_named(schema, "record" if kind == "error" else kind, namespace, logical, scale)
        if kind not in PRIMITIVES:
            return self.read(kind, namespace)
        return AvroType(kind, logical=logical, scale=scale)

    def _read_named(self, schema: Any, kind: str, namespace: str, logical: str | None, scale: int) -> AvroType:
        name = full_name(schema["name"], schema.get("namespace", namespace))
        within = name.rpartition(".")[0]
        made = AvroType(
            kind, name, tuple(full_name(each, within) for each in schema.get("aliases", ())), logical, scale,
            schema.get("size", 0), tuple(schema.get("symbols", ())), schema.get("default") if kind == "enum" else None,
        )  # fmt: skip
        self._named[name] = made
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
