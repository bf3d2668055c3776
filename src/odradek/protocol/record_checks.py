"""Checks the decompressed records of a batch without making objects of them. MalformedMessage if they are invalid."""

import functools

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import (
    NO_LIMIT,
    RECORDS_BETWEEN_PAUSES,
    SMALLEST_HEADER_BYTES,
    SMALLEST_RECORD_BYTES,
    Pause,
    check_record_count,
    runs,
)
from odradek.protocol.varints import SINGLE_BYTE_LIMIT, Bytes, decode_varlong, encode_varlong

_NO_KEY = b"\0\0\0\1"  # attributes, time delta, offset delta, a length of -1
MOST_HEADERS_CHECKED = 100  # of an only record: the event loop reads them


def check_records(  # noqa: C901, PLR0912, PLR0915 - unrolled: a worker spends most of its time here
    data: Bytes, record_count: int, pause: Pause | None = None, most_headers: int = NO_LIMIT
) -> int:
    """The number of records and of their headers. MalformedMessage unless these decompressed bytes are so many records,
    with offset deltas from 0 as a producer assigns them. All lengths are read, as in Kafka when it compresses a batch
    again; no objects are made of them. `pause` is called between runs of RECORDS_BETWEEN_PAUSES records and headers. Of
    a record with more headers than `most_headers`, only their number is checked."""
    check_record_count(record_count, data)
    limit = len(data)
    position = 0
    count = 0
    next_pause = RECORDS_BETWEEN_PAUSES
    try:
        for expected_delta in range(record_count):
            if count >= next_pause:
                next_pause = count + RECORDS_BETWEEN_PAUSES
                if pause is not None:
                    pause()
            count += 1
            length = data[position]
            if length < SINGLE_BYTE_LIMIT and not length & 1:
                position += 1
                size_bytes = length >> 1
            elif not length & 1 and data[position + 1] < SINGLE_BYTE_LIMIT:
                size_bytes = length + (data[position + 1] - 1) * SINGLE_BYTE_LIMIT >> 1
                position += 2
            else:
                size_bytes, position = decode_varlong(data, position)
            end = position + size_bytes
            if size_bytes < SMALLEST_RECORD_BYTES - 1 or end > limit:
                raise MalformedMessage(f"a record of {size_bytes} bytes with {limit - position} left")
            position += 1
            if data[position] < SINGLE_BYTE_LIMIT:  # the timestamp, after the attributes
                position += 1
            else:
                _, position = decode_varlong(data, position)
            offset_delta = data[position]
            if offset_delta < SINGLE_BYTE_LIMIT and not offset_delta & 1:
                offset_delta >>= 1
                position += 1
            else:
                offset_delta, position = decode_varlong(data, position)
            if offset_delta != expected_delta:
                raise MalformedMessage(f"offset delta {offset_delta} in place of {expected_delta}")
            length = data[position]  # of the key
            if length < SINGLE_BYTE_LIMIT and not length & 1:
                position += 1 + (length >> 1)
            else:
                position = _skip_nullable_bytes(data, position, end)
            length = data[position]  # of the value
            if length < SINGLE_BYTE_LIMIT and not length & 1:
                position += 1 + (length >> 1)
            elif not length & 1 and data[position + 1] < SINGLE_BYTE_LIMIT:
                position += 2 + (length + (data[position + 1] - 1) * SINGLE_BYTE_LIMIT >> 1)
            else:
                position = _skip_nullable_bytes(data, position, end)
            if data[position]:
                header_count, position = decode_varlong(data, position)
                is_counted_only = header_count > most_headers
                position = _skip_headers(data, position, end, header_count, pause, is_counted_only=is_counted_only)
                count += header_count
            else:
                position += 1
            if position != end:
                raise MalformedMessage(f"a record ends {end - position} bytes before its length says")
    except IndexError:
        raise MalformedMessage(f"record {expected_delta} goes beyond the end of its batch") from None
    if position != limit:
        raise MalformedMessage(f"{limit - position} bytes after the last record")
    return count


@functools.lru_cache(maxsize=4096)
def _plain_record_start(size_bytes: int) -> bytes | None:
    """The bytes before the value of a record of this size that has no key, and neither a time nor an offset after those
    of its batch. One byte follows the value: the number of headers, 0. None if no such record has this size."""
    length = _length_of_rest(size_bytes)
    if length is None:
        return None
    value_length = _length_of_rest(size_bytes - len(length) - len(_NO_KEY) - 1)
    return None if value_length is None else length + _NO_KEY + value_length


def _length_of_rest(size_bytes: int) -> bytes | None:
    """The varint with which so many bytes begin if it is the length of those after it."""
    for length_bytes in range(1, 6):
        length = encode_varlong(size_bytes - length_bytes)
        if size_bytes >= length_bytes == len(length):
            return length
    return None


def begins_with_record(data: Bytes, position: int, record_count: int) -> bool:
    """Whether these decompressed records begin with one that has offset delta 0, and that leaves as many bytes as the
    others need. An only record is checked as a whole, if it has few headers. Usual varints are decoded in place: this
    runs for every produced batch."""
    try:
        if record_count == 1:
            plain = _plain_record_start(len(data) - position)
            if plain is not None and data[position : position + len(plain)] == plain and not data[-1]:
                return True
            return check_records(data[position:], 1, most_headers=MOST_HEADERS_CHECKED) > 0
        length = data[position]
        start = position + 1
        if length >= SINGLE_BYTE_LIMIT:
            high = data[start]
            start += 1
            length += (high - 1) * SINGLE_BYTE_LIMIT
            if high >= SINGLE_BYTE_LIMIT:
                length, start = decode_varlong(data, position)
                length <<= 1
        end = start + (length >> 1)
        rest_bytes = len(data) - end
        if length & 1 or rest_bytes < SMALLEST_RECORD_BYTES * (record_count - 1):
            return False
        offset_delta = data[start + 2]
        if data[start + 1]:  # the timestamp, after the attributes
            offset_delta, _ = decode_varlong(data, decode_varlong(data, start + 1)[1])
    except (IndexError, MalformedMessage):
        return False
    return offset_delta == 0 and end - start >= SMALLEST_RECORD_BYTES - 1


def every_record_has_a_key(data: Bytes, record_count: int, pause: Pause | None = None) -> bool:
    """Whether every decompressed record has a key, with offset deltas from 0 as a producer assigns them.

    Reads only lengths, offset deltas and key lengths and creates no objects, because this runs at append. `pause`: see
    `check_records`."""
    check_record_count(record_count, data)
    limit = len(data)
    position = 0
    for run in runs(record_count, pause):
        for expected_delta in run:
            size_bytes, position = decode_varlong(data, position)
            end = position + size_bytes
            if size_bytes < SMALLEST_RECORD_BYTES - 1 or end > limit:
                raise MalformedMessage(f"a record of {size_bytes} bytes with {limit - position} left")
            position += 1
            while data[position] >= SINGLE_BYTE_LIMIT and position < end - 1:  # skips the timestamp
                position += 1
            offset_delta, position = decode_varlong(data, position + 1)
            if offset_delta != expected_delta:
                raise MalformedMessage(f"offset delta {offset_delta} in place of {expected_delta}")
            key_bytes, position = decode_varlong(data, position)
            if key_bytes < 0:
                return False
            if position + key_bytes > end:
                raise MalformedMessage(f"a key of {key_bytes} bytes with {end - position} left in its record")
            position = end
    if position != limit:
        raise MalformedMessage(f"{limit - position} bytes after the last record")
    return True


def _skip_headers(
    data: Bytes, position: int, end: int, count: int, pause: Pause | None, *, is_counted_only: bool
) -> int:
    if not 0 <= count <= (end - position) // SMALLEST_HEADER_BYTES:
        raise MalformedMessage(f"{count} headers in {end - position} bytes")
    if is_counted_only:
        return end
    for run in runs(count, pause):
        for _ in run:
            name_bytes, _ = decode_varlong(data, position)
            if name_bytes < 0:
                raise MalformedMessage("a record header without a name")
            position = _skip_nullable_bytes(data, position, end)
            position = _skip_nullable_bytes(data, position, end)
    return position


def _skip_nullable_bytes(data: Bytes, position: int, end: int) -> int:
    size_bytes, position = decode_varlong(data, position)
    if size_bytes < -1 or position + size_bytes > end:
        raise MalformedMessage(f"a field of {size_bytes} bytes with {end - position} left in its record")
    return position + max(size_bytes, 0)
