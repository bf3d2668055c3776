"""Variable-length integers: unsigned for compact lengths and tags (KIP-482), zigzag for the fields of a record.

Unsigned varints have at most 32 bits and zigzag ones at most 64; longer ones are rejected, as in Kafka.
"""

from typing import TypeAlias

from odradek.protocol.malformed import MalformedMessage

Bytes: TypeAlias = bytes | bytearray | memoryview

SINGLE_BYTE_LIMIT = 128
# A table for the most frequent values: indexing is faster than a call.
SINGLE_BYTE_VARINTS = tuple(bytes((value,)) for value in range(SINGLE_BYTE_LIMIT))


def encode_unsigned_varint(value: int) -> bytes:
    if value < SINGLE_BYTE_LIMIT:
        return SINGLE_BYTE_VARINTS[value]
    encoded = bytearray()
    while value >= SINGLE_BYTE_LIMIT:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_unsigned_varint(buffer: Bytes, position: int) -> tuple[int, int]:
    """The value and the position after it."""
    try:
        first = buffer[position]
    except IndexError:
        raise MalformedMessage(f"a varint is cut off at byte {position}") from None
    if first < SINGLE_BYTE_LIMIT:
        return first, position + 1
    return finish_unsigned_varint(buffer, position + 1, first)


def finish_unsigned_varint(buffer: Bytes, position: int, first: int) -> tuple[int, int]:
    """`decode_unsigned_varint` after a first byte with the continuation bit."""
    value = first & 0x7F
    try:
        for shift in (7, 14, 21):
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < SINGLE_BYTE_LIMIT:
                return value, position
        byte = buffer[position]
    except IndexError:
        raise MalformedMessage(f"a varint is cut off at byte {position}") from None
    if byte > 0x0F:
        raise MalformedMessage(f"a varint before byte {position} is longer than 32 bits")
    return value | byte << 28, position + 1


def encode_varlong(value: int) -> bytes:
    """Encodes a zigzag integer of up to 64 bits; a varint of up to 32 bits has the same encoding."""
    return encode_unsigned_varint(value << 1 ^ value >> 63)


def decode_varlong(buffer: Bytes, position: int) -> tuple[int, int]:
    """Decodes a zigzag integer: the value and the position after it."""
    try:
        byte = buffer[position]
        position += 1
        if byte < SINGLE_BYTE_LIMIT:  # most fields of a record
            return byte >> 1 ^ -(byte & 1), position
        value = byte & 0x7F
        shift = 7
        while True:
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < SINGLE_BYTE_LIMIT:
                break
            shift += 7
            if shift > 63:
                raise MalformedMessage(f"a varint before byte {position} is longer than 64 bits")
    except IndexError:
        raise MalformedMessage(f"a varint is cut off at byte {position}") from None
    if value >> 64:
        raise MalformedMessage(f"a varint before byte {position} is longer than 64 bits")
    return value >> 1 ^ -(value & 1), position
