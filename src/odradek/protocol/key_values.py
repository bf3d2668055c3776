"""Keys and values of a batch's records and nothing else, as fast as Python can: coordinators read whole logs at start.

`records` reads everything and checks everything; here lengths are checked only where a wrong one would mislead.
"""

from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader
from odradek.protocol.compression import decompress
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import Bytes, decode_varlong


def read_key_values(batch: Bytes, header: BatchHeader, limit_bytes: int) -> list[tuple[bytes | None, bytes | None]]:
    """In order. Not more than `limit_bytes` are decompressed; MalformedMessage for what is not a batch of records."""
    section = memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]
    if not section and not header.record_count:
        return []
    data = bytes(decompress(header.compression, section, limit_bytes))
    pairs = []
    position = 0
    try:
        for _ in range(header.record_count):
            # Numbers below 64 take one byte, which is twice the number; that is nearly all of them.
            length = data[position]
            if length < 128 and not length & 1:
                position += 1
                length >>= 1
            else:
                length, position = decode_varlong(data, position)
            end = position + length
            position += 1  # attributes
            while data[position] > 127:  # timestamp delta
                position += 1
            position += 1
            while data[position] > 127:  # offset delta
                position += 1
            position += 1
            key, position = _read_bytes(data, position, end)
            value, position = _read_bytes(data, position, end)
            pairs.append((key, value))
            if end < position or end > len(data):
                raise MalformedMessage(f"a record ends at {end} of {len(data)}, its value at {position}")
            position = end
    except IndexError:
        raise MalformedMessage("a record is cut off") from None
    return pairs


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length = data[position]
    if length < 128 and not length & 1:
        position += 1
        length >>= 1
    else:
        length, position = decode_varlong(data, position)
        if length < 0:
            return None, position
    if position + length > end:
        raise MalformedMessage(f"{length} bytes at {position} of a record that ends at {end}")
    return data[position : position + length], position + length
