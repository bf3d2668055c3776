"""The fields of a message, declared in a class body: `index: int = int32(versions="3+")`.

The functions that declare a field return Any, so that the annotation gives the field's type and mypy accepts the
right side as its default.
"""

from __future__ import annotations

from typing import Any, Final, dataclass_transform
from uuid import UUID

# The format character of the struct module for each kind of fixed size; a UUID is 16 bytes that are then looked up.
FIXED_FORMATS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "boolean": "?",
    "uuid": "16s",
}
# Kafka's names of the arrays of numbers that name partitions.
PARTITION_INDEXES = frozenset({"partition_indexes", "partitions"})
ZERO_UUID = UUID(int=0)
ALWAYS = "0+"


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


# The parameter default for fields whose default is a new list.
UNSET: Final = _Unset()


class Field:
    """One field of a message. Version ranges are parsed when a message is compiled, because most messages never are."""

    __slots__ = ("default", "element", "is_topic_name", "kind", "name", "nullable", "tag", "tagged", "versions")

    def __init__(
        self,
        kind: str,
        default: object,
        versions: str,
        *,
        nullable: str | None = None,
        tag: int | None = None,
        tagged: str | None = None,
        element: Field | StructType | None = None,
        is_topic_name: bool = False,
    ) -> None:
        self.name = ""
        self.is_topic_name = is_topic_name
        self.kind = kind
        self.default = default
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.element = element

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.kind}, versions={self.versions!r})"


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """The metaclass of structs: converts the fields of a class body to slots and a table."""

    fields: tuple[Field, ...]

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any) -> StructType:
        fields = []
        for field_name, value in namespace.items():
            if isinstance(value, Field):
                value.name = field_name
                fields.append(value)
        for field in fields:
            del namespace[field.name]
        namespace["__slots__"] = tuple(field.name for field in fields)
        created = super().__new__(cls, name, bases, namespace, **keywords)
        if fields:
            created.fields = tuple(fields)
        return created


def includes(versions: str | None, version: int) -> bool:
    """Whether a range in Kafka's notation ("3+", "0-6", "4") includes this version."""
    if versions is None:
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def int8(*, versions: str = ALWAYS, default: int = 0, tag: int | None = None, tagged: str | None = None) -> Any:
    return Field("int8", default, versions, tag=tag, tagged=tagged)


def int16(*, versions: str = ALWAYS, default: int = 0, tag: int | None = None, tagged: str | None = None) -> Any:
    return Field("int16", default, versions, tag=tag, tagged=tagged)


def int32(*, versions: str = ALWAYS, default: int = 0, tag: int | None = None, tagged: str | None = None) -> Any:
    return Field("int32", default, versions, tag=tag, tagged=tagged)


def int64(*, versions: str = ALWAYS, default: int = 0, tag: int | None = None, tagged: str | None = None) -> Any:
    return Field("int64", default, versions, tag=tag, tagged=tagged)


def float64(*, versions: str = ALWAYS, default: float = 0.0, tag: int | None = None, tagged: str | None = None) -> Any:
    return Field("float64", default, versions, tag=tag, tagged=tagged)


def boolean(*, versions: str = ALWAYS, default: bool = False, tag: int | None = None, tagged: str | None = None) -> Any:
    return Field("boolean", default, versions, tag=tag, tagged=tagged)


def uuid(
    *, versions: str = ALWAYS, default: UUID = ZERO_UUID, tag: int | None = None, tagged: str | None = None
) -> Any:
    return Field("uuid", default, versions, tag=tag, tagged=tagged)


def string(
    *,
    versions: str = ALWAYS,
    nullable: str | None = None,
    default: str | None = "",
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    return Field("string", default, versions, nullable=nullable, tag=tag, tagged=tagged)


def topic_name(*, versions: str = ALWAYS, nullable: str | None = None, default: str | None = "") -> Any:
    """The name of a topic, of which clients may use an alias."""
    return Field("string", default, versions, nullable=nullable, is_topic_name=True)


def bytes_(
    *,
    versions: str = ALWAYS,
    nullable: str | None = None,
    default: bytes | None = b"",
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    return Field("bytes", default, versions, nullable=nullable, tag=tag, tagged=tagged)


def records(
    *, versions: str = ALWAYS, nullable: str | None = None, tag: int | None = None, tagged: str | None = None
) -> Any:
    """Record batches: a view into the input when decoded, a separate part when encoded."""
    return Field("records", None, versions, nullable=nullable, tag=tag, tagged=tagged)


def array(
    element: Any,
    *,
    versions: str = ALWAYS,
    nullable: str | None = None,
    default: _Unset | None = UNSET,
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """A list of structs or of primitive values: `array(Topic)`, `array(int32())`."""
    return Field("array", default, versions, nullable=nullable, tag=tag, tagged=tagged, element=element)


def struct(
    element: StructType,
    *,
    versions: str = ALWAYS,
    nullable: str | None = None,
    default: _Unset | None = UNSET,
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """A nested struct; its default is None or a shared, immutable struct of default values."""
    return Field("struct", default, versions, nullable=nullable, tag=tag, tagged=tagged, element=element)


def is_number(element: Field | StructType | None) -> bool:
    """Whether all elements of an array of these are unpacked at once."""
    return isinstance(element, Field) and element.kind in FIXED_FORMATS and element.kind != "uuid"


def names_partitions(field: Field) -> bool:
    """Whether the field is an array of partition indexes: each of them is looked up and answered by a struct."""
    return field.kind == "array" and is_number(field.element) and field.name in PARTITION_INDEXES


def array_levels(struct_type: StructType) -> int:
    """How deep arrays are nested in a message, without arrays of numbers that do not name partitions."""
    levels = 0
    for field in struct_type.fields:
        below = 0
        element = field.element
        if isinstance(element, StructType):
            below = array_levels(element)
        if field.kind == "array" and (not is_number(element) or names_partitions(field)):
            below += 1
        levels = max(levels, below)
    return levels
