"""What a table says about one field, and the words it says it with: `index: int = int32(versions="3+")`.

The words return Any, so that the annotation types the field and mypy takes the right side for its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from odradek.protocol.schema import Struct

# struct's letter for each kind of fixed size; a UUID is 16 bytes that are then looked up.
FIXED_FORMATS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "boolean": "?",
    "uuid": "16s",
}
ZERO_UUID = UUID(int=0)
ALWAYS = "0+"


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


# The default of a parameter whose own default is a fresh list.
UNSET: Final = _Unset()


class Field:
    """One line of a table. Versions stay text until a message is compiled: most never are."""

    __slots__ = ("default", "element", "kind", "name", "nullable", "tag", "tagged", "versions")

    def __init__(
        self,
        kind: str,
        default: object,
        versions: str,
        *,
        nullable: str | None = None,
        tag: int | None = None,
        tagged: str | None = None,
        element: Field | type[Struct] | None = None,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.default = default
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.element = element

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.kind}, versions={self.versions!r})"


def includes(versions: str | None, version: int) -> bool:
    """Whether a range in Kafka's notation ("3+", "0-6", "4") holds this version."""
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
    """Batches: a view into the input when decoded, a part of its own when encoded."""
    return Field("records", None, versions, nullable=nullable, tag=tag, tagged=tagged)


def array(
    element: type[Struct] | Any,
    *,
    versions: str = ALWAYS,
    nullable: str | None = None,
    default: _Unset | None = UNSET,
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """A list of a struct, or of what a word without arguments says: `array(Topic)`, `array(int32())`."""
    return Field("array", default, versions, nullable=nullable, tag=tag, tagged=tagged, element=element)


def struct(
    element: type[Struct],
    *,
    versions: str = ALWAYS,
    nullable: str | None = None,
    default: _Unset | None = UNSET,
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """A struct; its default is one of defaults, shared and therefore unchangeable, or None."""
    return Field("struct", default, versions, nullable=nullable, tag=tag, tagged=tagged, element=element)
