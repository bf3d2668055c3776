"""Parses and builds the records of a batch, for look-up by time, compaction, internal topics and tools.

Inconsistent counts, lengths, deltas and trailing bytes raise MalformedMessage; the caller limits decompression.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import TypeAlias

from odradek.protocol.batch import (
    CONTROL_FLAG,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_batch_header,
    write_batch,
)
from odradek.protocol.compression import (
    Compression,
    DecompressedTooLarge,
    compress,
    decompress,
    decompress_in_place,
)
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import SINGLE_BYTE_LIMIT, SINGLE_BYTE_VARINTS, Bytes, decode_varlong, encode_varlong

# Length, attributes, timestamp delta, offset delta, key length, value length, header count: at least a byte each.
SMALLEST_RECORD_BYTES = 7
SMALLEST_HEADER_BYTES = 2
NULL = 1  # the length -1 as a varint
LARGEST_TIMESTAMP = 2**63 - 1
NO_LIMIT = 2**31

Pause: TypeAlias = Callable[[], None]
"""Lets other threads run; a loop over many records on a worker calls it. On the event loop it may end the loop, by an
exception."""
RECORDS_BETWEEN_PAUSES = 500


class Record:
    """One record; `timestamp` is in milliseconds, -1 if it has none."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = list(headers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.offset, self.timestamp, self.key, self.value, self.headers) == (
            other.offset,
            other.timestamp,
            other.key,
            other.value,
            other.headers,
        )

    __hash__ = None  # type: ignore[assignment]  # values that change have no hash

    def __repr__(self) -> str:
        return f"Record({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r}, {self.headers!r})"


Fields: TypeAlias = tuple[int, int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""Offset, timestamp, key, value and headers, as of a `Record`."""


def read_records(
    batch: Bytes,
    limit_bytes: int,
    *,
    reads_headers: bool = True,
    escapes_names: bool = False,
    most_objects: int = NO_LIMIT,
) -> Iterator[Record]:
    """Yields the records of the batch at the start of `batch`, as `read_fields`; decompresses at most `limit_bytes`.

    Does not verify the checksum. Nothing is read before the first record is requested.
    """
    header, data = decompress_records(batch, limit_bytes)
    fields = read_fields(
        data, header, reads_headers=reads_headers, escapes_names=escapes_names, most_objects=most_objects
    )
    yield from starmap(Record, fields)


def decompress_records(batch: Bytes, limit_bytes: int) -> tuple[BatchHeader, bytes]:
    """The header of the batch at the start of `batch`, and its records."""
    header, section = _split_batch(batch)
    # Compaction may leave an empty batch to preserve the producer's sequence number.
    data = decompress(header.compression, section, limit_bytes) if section or header.record_count else b""
    return header, data


def read_fields(  # noqa: C901, PLR0912, PLR0915 - unrolled: readers spend most of their time here
    data: bytes,
    header: BatchHeader,
    *,
    reads_headers: bool = True,
    escapes_names: bool = False,
    most_objects: int = NO_LIMIT,
) -> Iterator[Fields]:
    """The fields of decompressed records. Without `reads_headers`, these are skipped and not checked. With
    `escapes_names`, header names that are not UTF-8 are escaped, as in `\\xff`; otherwise they are malformed.
    DecompressedTooLarge for more records and headers than `most_objects`: each takes much more memory than its bytes.
    """
    check_record_count(header.record_count, data)
    if header.record_count > most_objects:
        raise DecompressedTooLarge(f"the batch has {header.record_count:,} records, more than {most_objects:,}")
    most_objects -= header.record_count
    limit = len(data)
    base_offset, base_timestamp, last = header.base_offset, header.base_timestamp, 2 * header.last_offset_delta
    append_time = header.max_timestamp if header.uses_log_append_time else None
    position = 0
    previous = -1
    try:
        for _ in range(header.record_count):
            # Varints of one and two bytes are decoded in place, to twice their value; odd ones are negative.
            size = data[position]
            if size < SINGLE_BYTE_LIMIT:
                position += 1
            elif (high := data[position + 1]) < SINGLE_BYTE_LIMIT:
                size += (high - 1) * SINGLE_BYTE_LIMIT
                position += 2
            else:
                size, position = decode_varlong(data, position)
                size *= 2
            end = position + (size >> 1)
            if size & 1 or end > limit:
                raise MalformedMessage(f"a record of {size >> 1} bytes with {limit - position} left")
            position += 1
            timestamp = data[position]
            if timestamp < SINGLE_BYTE_LIMIT and not timestamp & 1:
                timestamp >>= 1
                position += 1
            elif not timestamp & 1 and (high := data[position + 1]) < SINGLE_BYTE_LIMIT:
                timestamp = timestamp + (high - 1) * SINGLE_BYTE_LIMIT >> 1
                position += 2
            else:
                timestamp, position = decode_varlong(data, position)
            delta = data[position]
            if delta < SINGLE_BYTE_LIMIT:
                position += 1
            elif (high := data[position + 1]) < SINGLE_BYTE_LIMIT:
                delta += (high - 1) * SINGLE_BYTE_LIMIT
                position += 2
            else:
                delta, position = decode_varlong(data, position)
                delta *= 2
            if delta & 1 or not previous < delta <= last:
                raise MalformedMessage(
                    f"offset delta {delta >> 1} after {previous >> 1}, the last being {header.last_offset_delta}"
                )
            previous = delta
            key: bytes | None
            length = data[position]
            if length < SINGLE_BYTE_LIMIT and not length & 1:
                start = position + 1
                position = start + (length >> 1)
                key = data[start:position]
            elif length == NULL:
                key = None
                position += 1
            else:
                key, position = _read_nullable_bytes(data, position, end)
            value: bytes | None
            length = data[position]
            if length < SINGLE_BYTE_LIMIT and not length & 1:
                start = position + 1
                position = start + (length >> 1)
                value = data[start:position]
            elif not length & 1 and data[position + 1] < SINGLE_BYTE_LIMIT:
                start = position + 2
                position = start + (length + (data[position + 1] - 1) * SINGLE_BYTE_LIMIT >> 1)
                value = data[start:position]
            elif length == NULL:
                value = None
                position += 1
            else:
                value, position = _read_nullable_bytes(data, position, end)
            headers: Sequence[tuple[str, bytes | None]] = ()
            if not data[position]:
                position += 1
            elif reads_headers:
                headers, position = _read_headers(data, position, end, most_objects, escapes_names=escapes_names)
                most_objects -= len(headers)
            else:
                position = max(position, end)
            if position != end:
                raise MalformedMessage(f"a record ends {end - position} bytes before its length says")
            yield (
                base_offset + (delta >> 1),
                base_timestamp + timestamp if append_time is None else append_time,
                key,
                value,
                headers,
            )
    except IndexError:
        raise MalformedMessage(f"a record goes beyond the end of its batch at byte {limit}") from None
    if position != limit:
        raise MalformedMessage(f"{limit - position} bytes after the last record")


def read_times(batch: Bytes, limit_bytes: int, pause: Pause | None = None) -> Iterator[tuple[int, int]]:
    """Offset and timestamp of each record of a batch, as `read_records`; nothing else of a record is read, and
    no copies are made of it. DecompressedTooLarge if the records exceed `limit_bytes`. `pause`: see `Pause`."""
    header, section = _split_batch(batch)
    data = decompress_in_place(header.compression, section, limit_bytes) if section or header.record_count else b""
    return read_times_of(data, header, pause)


def read_times_of(data: Bytes, header: BatchHeader, pause: Pause | None = None) -> Iterator[tuple[int, int]]:
    """Like `read_times`, for the decompressed records of a batch."""
    check_record_count(header.record_count, data)
    position = 0
    previous_delta = -1
    for run in runs(header.record_count, pause):
        for _ in run:
            size_bytes, position = decode_varlong(data, position)
            end = position + size_bytes
            if size_bytes < SMALLEST_RECORD_BYTES - 1 or end > len(data):
                raise MalformedMessage(f"a record of {size_bytes} bytes with {len(data) - position} left")
            timestamp_delta, position = decode_varlong(data, position + 1)
            delta, position = decode_varlong(data, position)
            if not previous_delta < delta <= header.last_offset_delta:
                raise MalformedMessage(
                    f"offset delta {delta} after {previous_delta}, the last being {header.last_offset_delta}"
                )
            previous_delta, position = delta, end
            timestamp = header.max_timestamp if header.uses_log_append_time else header.base_timestamp + timestamp_delta
            if timestamp > LARGEST_TIMESTAMP:
                raise MalformedMessage(f"timestamp {timestamp} is longer than 64 bits")
            yield header.base_offset + delta, timestamp


def _split_batch(batch: Bytes) -> tuple[BatchHeader, memoryview]:
    """The header of a batch, and its records as they are stored."""
    header = read_batch_header(batch)
    if header.magic != CURRENT_MAGIC:
        raise MalformedMessage(f"the batch has magic {header.magic}, not {CURRENT_MAGIC}")
    if header.size_bytes < HEADER_SIZE_BYTES or header.size_bytes > len(batch):
        raise MalformedMessage(f"a batch of {header.size_bytes} bytes in a buffer of {len(batch)}")
    return header, memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]


def check_record_count(record_count: int, data: Bytes) -> None:
    if not 0 <= record_count <= len(data) // SMALLEST_RECORD_BYTES:
        raise MalformedMessage(f"{record_count} records in {len(data)} bytes")


def runs(count: int, pause: Pause | None) -> Iterator[range]:
    """The numbers below `count`, with a pause between two runs."""
    if pause is None:
        yield range(count)
        return
    for start in range(0, count, RECORDS_BETWEEN_PAUSES):
        if start:
            pause()
        yield range(start, min(start + RECORDS_BETWEEN_PAUSES, count))


def _read_headers(
    data: bytes, position: int, end: int, most_headers: int, *, escapes_names: bool
) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = decode_varlong(data, position)
    if not 0 <= count <= (end - position) // SMALLEST_HEADER_BYTES:
        raise MalformedMessage(f"{count} headers in {end - position} bytes")
    if count > most_headers:
        raise DecompressedTooLarge(f"a record has {count:,} headers, and the batch too many in all")
    name_errors = "backslashreplace" if escapes_names else "strict"
    headers = []
    for _ in range(count):
        name, position = _read_nullable_bytes(data, position, end)
        value, position = _read_nullable_bytes(data, position, end)
        headers.append((_decode_header_name(name, name_errors), value))
    return headers, position


def _read_nullable_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size_bytes, position = decode_varlong(data, position)
    if size_bytes == -1:
        return None, position
    value_end = position + size_bytes
    if size_bytes < 0 or value_end > end:
        raise MalformedMessage(f"a field of {size_bytes} bytes with {end - position} left in its record")
    return data[position:value_end], value_end


def _decode_header_name(name: bytes | None, errors: str) -> str:
    if name is None:
        raise MalformedMessage("a record header without a name")
    try:
        return name.decode(errors=errors)
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a record header's name is not UTF-8: {error}") from error


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = -1,
    log_append_time: int | None = None,
    level: int | None = None,
) -> bytearray:
    """Builds one batch of these records (at least one), with offsets from `base_offset` on."""
    base_timestamp = records[0].timestamp
    parts: list[bytes] = []
    for record in records:
        _append_record(parts, record, record.timestamp - base_timestamp, record.offset - base_offset)
    section = compress(compression, b"".join(parts), level)
    attributes = compression | (TRANSACTIONAL_FLAG if transactional else 0) | (CONTROL_FLAG if control else 0)
    if log_append_time is not None:
        attributes |= LOG_APPEND_TIME_FLAG
        max_timestamp = log_append_time
    else:
        max_timestamp = max(record.timestamp for record in records)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION + len(section),
        partition_leader_epoch=leader_epoch,
        magic=CURRENT_MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return write_batch(header, section)


def _append_record(parts: list[bytes], record: Record, timestamp_delta: int, offset_delta: int) -> None:
    fields = [b"\x00", encode_varlong(timestamp_delta), encode_varlong(offset_delta)]
    _append_nullable_bytes(fields, record.key)
    _append_nullable_bytes(fields, record.value)
    fields.append(encode_varlong(len(record.headers)))
    for name, value in record.headers:
        _append_nullable_bytes(fields, name.encode())
        _append_nullable_bytes(fields, value)
    body = b"".join(fields)
    parts.append(encode_varlong(len(body)))
    parts.append(body)


def _append_nullable_bytes(fields: list[bytes], value: bytes | None) -> None:
    if value is None:
        fields.append(SINGLE_BYTE_VARINTS[NULL])
    else:
        fields.append(encode_varlong(len(value)))
        fields.append(value)
