"""Declares messages as classes with fields from `fields`, one table for all versions of a message.

Constructors, decoders and encoders are compiled on first use, per version, to Python source for that one layout (see
`compile_decoder` and `compile_encoder`), which is several times as fast as interpreting the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from uuid import UUID

from odradek.protocol.compile_constructor import compile_constructor
from odradek.protocol.compile_decoder import compile_decoder
from odradek.protocol.compile_encoder import compile_encoder
from odradek.protocol.fields import (
    StructType,
    array,
    array_levels,
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
    topic_name,
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
    "topic_name",
    "uuid",
]

Records: TypeAlias = bytes | bytearray | memoryview | Slice


class Struct(metaclass=StructType):
    """A record with one attribute per field; the constructor takes them by keyword, with Kafka's defaults."""

    if not TYPE_CHECKING:
        fields = ()

        def __init__(self, **values):
            # Replaced on first use by the compiled constructor.
            struct_type = type(self)
            struct_type.__init__ = compile_constructor(struct_type)
            struct_type.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not (isinstance(other, type(self)) or isinstance(self, type(other))):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in type(self).fields)

    __hash__ = None  # type: ignore[assignment]  # values that change have no hash

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in type(self).fields)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A request or a response: a struct with an API key and versions, which can be encoded and decoded."""

    # Limit on the number of elements in all arrays of one message, for each level of arrays (topics, their partitions);
    # sixteen numbers count as one, unless they name partitions. An element of a byte or two becomes an object of 50 to
    # 300 bytes in about a microsecond, so that without this limit a frame of 100 MiB would take gigabytes and minutes.
    # A request for 16,000 partitions has at most 16,000 elements of each level.
    elements_per_level: ClassVar[int] = 16_000
    api_key: ClassVar[int]
    versions: ClassVar[tuple[int, int]]
    flexible_from: ClassVar[int | None]
    _decoders: ClassVar[dict[int, Callable[[memoryview, int], Any]]]
    _encoders: ClassVar[dict[int, Callable[[Any], list[Part]]]]

    def __init_subclass__(
        cls, *, api_key: int = -1, versions: tuple[int, int] = (0, 0), flexible: int | None = None
    ) -> None:
        """`versions` are the first and the last; `flexible` is the first with compact lengths and tagged fields."""
        cls.api_key = api_key
        cls.versions = versions
        cls.flexible_from = flexible
        cls._decoders = {}
        cls._encoders = {}

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.flexible_from is not None and version >= cls.flexible_from

    @classmethod
    def element_limit(cls) -> int:
        return cls.elements_per_level * max(array_levels(cls), 1)

    @classmethod
    def decode(cls, buffer: memoryview, position: int, version: int) -> Self:
        """Decodes the message at `position` of `buffer`; records are views into the buffer.

        Raises MalformedMessage, and no other exception, for invalid bytes.
        """
        decoder = cls._decoders.get(version)
        if decoder is None:
            cls._check_version(version)
            decoder = cls._decoders[version] = compile_decoder(
                cls, version, cls.is_flexible(version), cls.element_limit()
            )
        decoded: Self = decoder(buffer, position)
        return decoded

    def encode(self, version: int) -> list[Part]:
        """The encoded parts in order, without fields that this version lacks."""
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
    # Responses have no limit: a client trusts its broker, and the metadata of a large cluster is one message.
    elements_per_level = 10_000_000
