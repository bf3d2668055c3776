"""Records of a partition as a fetch returns them, and the batches that cannot be read. Pure.

Fetched bytes are not trusted, because every user with the right to write to a topic chooses them. A batch that cannot
be read is named and skipped, and costs no more than the limit of decompressed bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.batch import CURRENT_MAGIC, HEADER_SIZE_BYTES, BatchHeader, has_valid_checksum, read_batch_header
from odradek.protocol.compression import DecompressedTooLarge
from odradek.protocol.control_records import ControlRecordType, read_end_transaction_marker
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Fields, decompress_records, read_fields

if TYPE_CHECKING:
    from odradek.protocol.messages.fetch import AbortedTransaction

CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP = 1, 2, 0
LARGEST_BATCH_BYTES = 128 * 1024 * 1024
OLD_MESSAGE_BYTES = 26  # of the smallest message of format 0
OBJECT_BYTES = 128  # of the memory of a record or a header, at least, however few bytes they have
LARGEST_OFFSET = 2**63 - 1
_FRAME = struct.Struct(">qi4xb")  # base offset, length, magic: at the same positions in all formats


class FetchedRecord(tuple["Fields", tuple[str, int, int]]):
    """The fields of a record with its topic, partition and type of timestamp, and the methods of the Kafka client's
    `Message`. A tuple is the cheapest object to build: a reader makes hundreds of thousands in a second."""

    __slots__ = ()

    def topic(self) -> str:
        return self[1][0]

    def partition(self) -> int:
        return self[1][1]

    def offset(self) -> int:
        return self[0][0]

    def timestamp(self) -> tuple[int, int]:
        """The type and milliseconds."""
        timestamp_ms = self[0][1]
        return (NO_TIMESTAMP if timestamp_ms == -1 else self[1][2]), timestamp_ms

    def key(self) -> bytes | None:
        return self[0][2]

    def value(self) -> bytes | None:
        return self[0][3]

    def headers(self) -> list[tuple[str, bytes | None]]:
        """Bytes of names that are not UTF-8 are escaped, as in `\\xff`."""
        return list(self[0][4])


def values_of(records: Iterable[FetchedRecord]) -> list[bytes]:
    """The values, empty for null: without a method call for each record, which takes twice as long."""
    return [record[0][3] or b"" for record in records]


class UnreadableBatch(NamedTuple):
    """`is_last` if no batch can be found after it."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    problem: str
    is_last: bool = False

    def __str__(self) -> str:
        first, last = self.first_offset, self.last_offset
        offsets = f"offsets {first}–{last}" if last > first else f"offset {first}"
        end = ", and the partition cannot be read further" if self.is_last else ""
        return f"{self.topic}-{self.partition}, {offsets}: {self.problem}{end}"


class BatchRead(NamedTuple):
    """What follows the batch, and its records with their decompressed size, or why it has none."""

    next_offset: int
    records: list[FetchedRecord]
    size_bytes: int = 0
    unreadable: UnreadableBatch | None = None


class PartitionReader:
    """Reads the batches of a partition in one response, one by one: one is in memory decompressed at a time."""

    def __init__(
        self, topic: str, partition: int, data: memoryview, aborted: Iterable[AbortedTransaction], limit_bytes: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self._data = data
        self._limit_bytes = limit_bytes
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborting: set[int] = set()  # producers in an aborted transaction

    def batches(self, offset: int) -> Iterator[BatchRead]:
        """Their next offsets never decrease. An incomplete batch at the end is left out."""
        position = 0
        while len(self._data) - position >= _FRAME.size:
            base_offset, length, magic = _FRAME.unpack_from(self._data, position)
            size_bytes = length + 12
            smallest = OLD_MESSAGE_BYTES if magic in (0, 1) else HEADER_SIZE_BYTES
            if not smallest <= size_bytes <= LARGEST_BATCH_BYTES or not 0 <= base_offset <= LARGEST_OFFSET - 2**32:
                problem = f"a batch has base offset {base_offset} and a length of {length} bytes"
                yield BatchRead(offset, [], unreadable=self._unreadable(offset, offset, problem, is_last=True))
                return
            batch = self._data[position : position + size_bytes]
            position += size_bytes
            if len(batch) < size_bytes:
                return
            last_offset = base_offset
            try:
                if magic != CURRENT_MAGIC:
                    raise MalformedMessage(f"message format {magic} is not supported")
                header = read_batch_header(batch)
                last_offset = max(header.last_offset, base_offset)
                records, size_bytes = self._read(batch, header)
                if base_offset < offset:
                    records = [each for each in records if each.offset() >= offset]
            except MalformedMessage as problem:
                next_offset = self._offset_after(position, base_offset, max(last_offset, offset) + 1)
                text = f"too large to show: {problem}" if isinstance(problem, DecompressedTooLarge) else str(problem)
                unreadable = self._unreadable(base_offset, max(next_offset - 1, base_offset), text)
                yield BatchRead(max(offset, next_offset), [], unreadable=unreadable)
                offset = max(offset, next_offset)
            else:
                offset = max(offset, last_offset + 1)
                yield BatchRead(offset, records, size_bytes)

    def _offset_after(self, position: int, base_offset: int, default: int) -> int:
        """The base offset of the next batch, if it is there: the header of an unreadable one may be wrong."""
        if len(self._data) - position < _FRAME.size:
            return default
        following: int = _FRAME.unpack_from(self._data, position)[0]
        return following if base_offset < following < default else default

    def _unreadable(self, first: int, last: int, problem: str, *, is_last: bool = False) -> UnreadableBatch:
        return UnreadableBatch(self.topic, self.partition, first, last, problem, is_last)

    def _read(self, batch: memoryview, header: BatchHeader) -> tuple[list[FetchedRecord], int]:
        """The records with their decompressed size. No records of control batches and aborted transactions."""
        if not has_valid_checksum(batch, 0, header):
            raise MalformedMessage("the batch does not match its checksum")
        while self._aborted and self._aborted[-1].first_offset <= header.last_offset:
            self._aborting.add(self._aborted.pop().producer_id)
        if header.is_control:
            marker = read_end_transaction_marker(batch, header)
            if marker is not None and marker.type is ControlRecordType.ABORT:
                self._aborting.discard(header.producer_id)
            return [], 0
        if header.is_transactional and header.producer_id in self._aborting:
            return [], 0
        _, data = decompress_records(batch, self._limit_bytes)
        fields = read_fields(data, header, escapes_names=True, most_objects=self._limit_bytes // OBJECT_BYTES)
        kind = LOG_APPEND_TIME if header.uses_log_append_time else CREATE_TIME
        origin = (self.topic, self.partition, kind)
        return list(map(FetchedRecord, zip(fields, repeat(origin), strict=False))), len(data)
