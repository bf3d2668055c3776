"""The records of a batch as compaction sees them: keys, tombstones, and the bytes of those that stay.

A log is read record by record here and nowhere else, so these loops are written for speed: numbers of one or two bytes,
which nearly all are, are decoded in place, and nothing is made of a record but its key. Whatever does not add up is a
MalformedMessage.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import decode_varlong, encode_varlong

# A key of up to 63 bytes stands for itself, a longer one as the number of its digest, which is never equal to bytes.
Key: TypeAlias = bytes | int | None

_DIGEST_BYTES = 16
_NULL = 1  # -1, the length of what is not there
_ONE_BYTE = 128


class RecordKeys(NamedTuple):
    """In the order of the records; what has no key, and what has no value, by its place."""

    keys: list[Key]
    keyless: list[int]
    tombstones: list[int]


def read_keys(  # noqa: PLR0912 - unrolled: here compaction spends its time
    data: bytes, position: int, limit: int, record_count: int
) -> RecordKeys:
    """Of the records between `position` and `limit`, uncompressed."""
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
    """Where its timestamp begins, and where it ends."""
    length, start = decode_varlong(data, position)
    if length < 0:
        raise MalformedMessage(f"a record of {length} bytes")
    return start + 1, start + length


def _unusual_key(data: bytes, position: int) -> tuple[Key, int]:
    """One that is missing or long, and where it ends."""
    length, position = decode_varlong(data, position)
    if length == -1:
        return None, position
    if length < 0 or position + length > len(data):
        raise MalformedMessage(f"a key of {length} bytes")
    end = position + length
    digest = hashlib.blake2b(data[position:end], digest_size=_DIGEST_BYTES).digest()
    return int.from_bytes(digest, "big"), end


def read_offset_deltas(data: bytes, position: int, record_count: int) -> list[int]:
    """Of a batch from which records are missing; in others they count from 0."""
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
    """The same records for a batch whose base timestamp is smaller by `shift_ms`, so that their times stay."""
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
