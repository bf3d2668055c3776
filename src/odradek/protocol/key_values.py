"""Reads only the keys and values of records, as fast as possible, because coordinators read whole logs at start.

`records` parses and validates records completely; this module checks lengths only where a wrong one would be misread.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from odradek.protocol.batch import COMPRESSION_MASK, HEADER_SIZE_BYTES, LENGTH_END_POSITION
from odradek.protocol.compression import Compression, decompress
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_PRODUCER_ID
from odradek.protocol.varints import decode_varlong

KeyValue: TypeAlias = tuple[bytes | None, bytes | None]

# Base offset, batch length, attributes, last offset delta, producer id, number of records.
_read_header = struct.Struct(">qi9xhi16xq6xi").unpack_from


class KeyValues(NamedTuple):
    """The keys and values of one batch, in order; `problem` is the reason if the batch cannot be read."""

    next_offset: int
    attributes: int
    pairs: list[KeyValue]
    producer_id: int = NO_PRODUCER_ID
    problem: str = ""


def read_key_values(data: bytes, limit_bytes: int) -> Iterator[KeyValues]:
    """Reads the complete batches at the start of `data`; decompresses at most `limit_bytes` of each."""
    position, size_bytes = 0, len(data)
    while position + HEADER_SIZE_BYTES <= size_bytes:
        base_offset, batch_length, attributes, last_offset_delta, producer_id, record_count = _read_header(
            data, position
        )
        end = position + LENGTH_END_POSITION + batch_length
        if end > size_bytes or end < position + HEADER_SIZE_BYTES:
            return
        next_offset = base_offset + last_offset_delta + 1
        try:
            if attributes & COMPRESSION_MASK and record_count:
                codec = Compression(attributes & COMPRESSION_MASK)
                section = memoryview(data)[position + HEADER_SIZE_BYTES : end]
                unpacked = bytes(decompress(codec, section, limit_bytes))
                pairs = _read_section(unpacked, 0, len(unpacked), record_count)
            else:
                pairs = _read_section(data, position + HEADER_SIZE_BYTES, end, record_count)
        except (MalformedMessage, ValueError, IndexError) as problem:
            reason = f"the batch at offset {base_offset} is invalid: {problem}"
            yield KeyValues(next_offset, attributes, [], producer_id, reason)
        else:
            yield KeyValues(next_offset, attributes, pairs, producer_id)
        position = end


def _read_section(data: bytes, position: int, limit: int, record_count: int) -> list[KeyValue]:
    pairs = []
    for _ in range(record_count):
        # Numbers below 64, which are nearly all, take one byte with twice the number.
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
        length = data[position]
        if length < 128 and not length & 1:
            start = position + 1
            position = start + (length >> 1)
            key: bytes | None = data[start:position]
        else:
            key, position = _read_bytes(data, position)
        length = data[position]
        if length < 128 and not length & 1:
            start = position + 1
            position = start + (length >> 1)
            value: bytes | None = data[start:position]
        else:
            value, position = _read_bytes(data, position)
        if position > end or end > limit:
            raise MalformedMessage(f"a record ends at {end} of {limit}, its value at {position}")
        pairs.append((key, value))
        position = end
    return pairs


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = decode_varlong(data, position)
    if length < 0:
        return None, position
    return data[position : position + length], position + length
