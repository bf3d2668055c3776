"""Sections of tagged fields (KIP-482) outside compiled code: unknown ones are skipped, known ones written."""

from collections.abc import Callable, Sequence

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.slices import Part
from odradek.protocol.varints import Bytes, decode_unsigned_varint, encode_unsigned_varint


def skip_tagged_fields(buffer: Bytes, position: int, count: int) -> int:
    """The position after `count` fields of which none is known; `count` may be a lie, the bytes run out first."""
    for _ in range(count):
        _tag, position = decode_unsigned_varint(buffer, position)
        size_bytes, position = decode_unsigned_varint(buffer, position)
        position += size_bytes
        if position > len(buffer):
            raise MalformedMessage(f"a tagged field of {size_bytes} bytes is cut off")
    return position


def append_tagged_fields(append: Callable[[Part], None], fields: Sequence[tuple[bytes, Sequence[Part]]]) -> None:
    """`fields` are the encoded tags, ascending, with the parts of their values."""
    append(encode_unsigned_varint(len(fields)))
    for tag, parts in fields:
        append(tag)
        append(encode_unsigned_varint(sum(map(len, parts))))
        for part in parts:
            append(part)
