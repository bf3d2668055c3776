"""How a message is declared: a class whose fields are words of `fields`, one table for all of its versions.

What the table means is compiled on first use, per version: constructors, decoders and encoders are Python source made
for that one shape (see `compile_decoder` and `compile_encoder`), which is several times as fast as walking the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, dataclass_transform
from uuid import UUID

from odradek.protocol.compile_constructor import compile_constructor
from odradek.protocol.compile_decoder import compile_decoder
from odradek.protocol.compile_encoder import compile_encoder
from odradek.protocol.fields import (
    Field,
    array,
    boolean,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)
from odradek.protocol.slices import Part, Slice

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = [
    "UUID",
    "Message",
    "Part",
    "Records",
    "Request",
    "Response",
    "Struct",
    "array",
    "boolean",
    "bytes_",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records",
    "string",
    "struct",
    "uuid",
]

Records: TypeAlias = bytes | bytearray | memoryview | Slice


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the fields of a class body into slots and keeps them as a table."""

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


class Struct(metaclass=StructType):
    """Values under the names of a table's fields; the constructor takes them by keyword, each with Kafka's default."""

    if not TYPE_CHECKING:
        fields = ()

        def __init__(self, **values):
            # Compiled on first use, it then stands in this one's place.
            struct_type = type(self)
            struct_type.__init__ = compile_constructor(struct_type)
            struct_type.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not (isinstance(other, type(self)) or isinstance(self, type(other))):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in type(self).fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in type(self).fields)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A struct that stands at the top: it knows its API and its versions, and goes to bytes and back."""

    # Of all arrays of one message together. An element of a byte or two becomes an object of fifty to three hundred:
    # without this a frame of 100 MiB would cost gigabytes. A request for 10,000 partitions has some 20,000.
    element_limit: ClassVar[int] = 200_000
    api_key: ClassVar[int]
    versions: ClassVar[tuple[int, int]]
    flexible_from: ClassVar[int | None]
    _decoders: ClassVar[dict[int, Callable[[memoryview, int], Any]]]
    _encoders: ClassVar[dict[int, Callable[[Any], list[Part]]]]

    def __init_subclass__(
        cls, *, api_key: int = -1, versions: tuple[int, int] = (0, 0), flexible: int | None = None
    ) -> None:
        """`versions` are the first and the last, `flexible` is the first with compact lengths and tagged fields."""
        cls.api_key = api_key
        cls.versions = versions
        cls.flexible_from = flexible
        cls._decoders = {}
        cls._encoders = {}

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.flexible_from is not None and version >= cls.flexible_from

    @classmethod
    def decode(cls, buffer: memoryview, position: int, version: int) -> Self:
        """What stands in `buffer` from `position` on, in a version of the table's; records are views into it.

        Raises MalformedMessage, and nothing else, whatever the bytes are.
        """
        decoder = cls._decoders.get(version)
        if decoder is None:
            cls._check_version(version)
            decoder = cls._decoders[version] = compile_decoder(cls, version, cls.is_flexible(version))
        decoded: Self = decoder(buffer, position)
        return decoded

    def encode(self, version: int) -> list[Part]:
        """The bytes in order; fields that this version does not have are left out, whatever their value."""
        encoder = self._encoders.get(version)
        if encoder is None:
            self._check_version(version)
            encoder = self._encoders[version] = compile_encoder(type(self), version, self.is_flexible(version))
        return encoder(self)

    @classmethod
    def _check_version(cls, version: int) -> None:
        first, last = cls.versions
        if not first <= version <= last:
            raise ValueError(f"{cls.__name__} has versions {first} to {last}, not {version}")


class Request(Message):
    pass


class Response(Message):
    # From a broker that its client chose to trust; a large cluster's metadata is one message.
    element_limit = 10_000_000
