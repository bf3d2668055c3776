"""Skips unknown tagged fields (KIP-482) and writes known ones, for the compiled code."""

from collections.abc import Callable, Sequence

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.slices import Part
from odradek.protocol.varints import Bytes, decode_unsigned_varint, encode_unsigned_varint

MOST_TAGGED_FIELDS = 1_000
"""The largest number in one section. No message of Kafka has more than a few; a frame of megabytes could declare
millions, which would occupy the event loop for as long as it takes to skip them."""


def check_tagged_field_count(count: int) -> None:
    if count > MOST_TAGGED_FIELDS:
        raise MalformedMessage(f"{count} tagged fields are too many")


def skip_tagged_fields(buffer: Bytes, position: int, count: int) -> int:
    """The position after `count` unknown fields."""
    check_tagged_field_count(count)
    for _ in range(count):
        _tag, position = decode_unsigned_varint(buffer, position)
        size_bytes, position = decode_unsigned_varint(buffer, position)
        position += size_bytes
        if position > len(buffer):
            raise MalformedMessage(f"a tagged field of {size_bytes} bytes is cut off")
    return position


def append_tagged_fields(append: Callable[[Part], None], fields: Sequence[tuple[bytes, Sequence[Part]]]) -> None:
    """Appends tagged fields: encoded tags in ascending order, with the parts of their values."""
    append(encode_unsigned_varint(len(fields)))
    for tag, parts in fields:
        append(tag)
        append(encode_unsigned_varint(sum(map(len, parts))))
        for part in parts:
            append(part)
