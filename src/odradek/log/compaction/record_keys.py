"""The records of a batch as compaction reads them: keys, tombstones, and the bytes of the records that stay.

Only compaction reads whole logs record by record, so these loops are written for speed: varints of one or two bytes,
which nearly all are, are decoded in place, and no object is created for a record but its key. Inconsistent lengths and
counts raise MalformedMessage.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import decode_varlong, encode_varlong

# A key of up to 63 bytes is kept as it is, a longer one as the number of its digest, which never equals bytes.
Key: TypeAlias = bytes | int | None

_DIGEST_BYTES = 16
_NULL = 1  # the varint of -1, the length of a missing field
_ONE_BYTE = 128


class RecordKeys(NamedTuple):
    """`keys` in the order of the records; `keyless` and `tombstones` are indexes of records."""

    keys: list[Key]
    keyless: list[int]
    tombstones: list[int]


def read_keys(  # noqa: PLR0912 - unrolled: compaction spends most of its time here
    data: bytes, position: int, limit: int, record_count: int
) -> RecordKeys:
    """The keys of the records, decompressed, between `position` and `limit`."""
    keys: list[Key] = []
    keyless: list[int] = []
    tombstones: list[int] = []
    append = keys.append
    try:
        for index in range(record_count):
            length = data[position]
            if length < 128:
                start = position + 2
                position += 1 + (length >> 1)
            else:
                high = data[position + 1]
                if high < 128:
                    start = position + 3
                    position += 2 + (length - 128 + (high << 7) >> 1)
                else:
                    start, position = _long_record(data, position)
            while data[start] > 127:  # timestamp delta
                start += 1
            start += 1
            while data[start] > 127:  # offset delta
                start += 1
            key_length = data[start + 1]
            if key_length < 128 and not key_length & 1:
                start += 2
                end = start + (key_length >> 1)
                append(data[start:end])
            else:
                key, end = _unusual_key(data, start + 1)
                append(key)
                if key is None:
                    keyless.append(index)
            if data[end] == _NULL:
                tombstones.append(index)
    except IndexError:
        raise MalformedMessage(f"record {len(keys)} goes beyond the end of its batch") from None
    if position != limit:
        raise MalformedMessage(f"{record_count} records end at {position} and not at {limit}")
    return RecordKeys(keys, keyless, tombstones)


def _long_record(data: bytes, position: int) -> tuple[int, int]:
    """The positions of the timestamp and of the end of a record whose length takes more than two bytes."""
    length, start = decode_varlong(data, position)
    if length < 0:
        raise MalformedMessage(f"a record of {length} bytes")
    return start + 1, start + length


def _unusual_key(data: bytes, position: int) -> tuple[Key, int]:
    """A key that is missing or long, and the position after it."""
    length, position = decode_varlong(data, position)
    if length == -1:
        return None, position
    if length < 0 or position + length > len(data):
        raise MalformedMessage(f"a key of {length} bytes")
    end = position + length
    digest = hashlib.blake2b(data[position:end], digest_size=_DIGEST_BYTES).digest()
    return int.from_bytes(digest, "big"), end


def read_offset_deltas(data: bytes, position: int, record_count: int) -> list[int]:
    """The offset deltas of a batch from which records are missing; in other batches they count from 0."""
    deltas = []
    try:
        for _ in range(record_count):
            length, start = decode_varlong(data, position)
            position = start + length
            start += 1
            while data[start] >= _ONE_BYTE:
                start += 1
            delta, _ = decode_varlong(data, start + 1)
            deltas.append(delta)
    except IndexError:
        raise MalformedMessage(f"record {len(deltas)} goes beyond the end of its batch") from None
    return deltas


def cut_records(data: bytes, position: int, is_kept: Iterable[int]) -> tuple[bytes, int]:
    """The bytes of the records that stay, and the largest timestamp delta among them."""
    parts: list[bytes] = []
    largest_delta: int | None = None
    run_start = -1
    for keep in is_kept:
        start = position
        length = data[position]
        if length < 128:
            position += 1 + (length >> 1)
            timestamp = start + 2
        else:
            high = data[position + 1]
            if high < 128:
                position += 2 + (length - 128 + (high << 7) >> 1)
                timestamp = start + 3
            else:
                timestamp, position = _long_record(data, position)
        if keep:
            if run_start < 0:
                run_start = start
            delta = data[timestamp]
            delta = decode_varlong(data, timestamp)[0] if delta > 127 else delta >> 1 ^ -(delta & 1)
            if largest_delta is None or delta > largest_delta:
                largest_delta = delta
        elif run_start >= 0:
            parts.append(data[run_start:start])
            run_start = -1
    if run_start >= 0:
        parts.append(data[run_start:position])
    return b"".join(parts), largest_delta or 0


def rebase_timestamps(records: bytes, record_count: int, shift_ms: int) -> bytes:
    """The same records for a batch whose base timestamp is smaller by `shift_ms`: their timestamps do not change."""
    parts = []
    position = 0
    for _ in range(record_count):
        length, start = decode_varlong(records, position)
        position = start + length
        delta, after = decode_varlong(records, start + 1)
        body = records[start : start + 1] + encode_varlong(delta + shift_ms) + records[after:position]
        parts.append(encode_varlong(len(body)))
        parts.append(body)
    return b"".join(parts)
