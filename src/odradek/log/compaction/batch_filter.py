"""What compaction keeps of one batch: all of it, some of its records, its header alone, or nothing. Pure; the rules are
Kafka's (Cleaner.cleanInto, MemoryRecords.filterTo). Offsets, order and the producer's sequence numbers do not change.

When records are removed, the base timestamp and the bytes of the other records do not change. Only the first compaction
that keeps a tombstone rewrites the records, because it sets the base timestamp to the tombstone's delete horizon."""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.log.compaction.latest_offsets import SURVIVES, SURVIVING_TOMBSTONE, LatestOffsets
from odradek.log.compaction.record_keys import cut_records, read_keys, read_offset_deltas, rebase_timestamps
from odradek.log.compaction.transactions import TransactionTracker
from odradek.protocol.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    write_batch,
)
from odradek.protocol.compression import Compression, compress, decompress
from odradek.protocol.sentinels import NO_TIMESTAMP
from odradek.protocol.varints import Bytes

# Compaction runs in a process of its own, and stored batches may decompress to more than the topic's limit.
DECOMPRESSED_LIMIT_BYTES = 128 << 20

# The attributes that a batch without records keeps.
_LASTING_FLAGS = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


class LastRecord(NamedTuple):
    """The batch that holds a producer's state: the one that ends at `last_data_offset`, or with None a marker of
    `producer_epoch`."""

    last_data_offset: int | None
    producer_epoch: int


class Survivors(NamedTuple):
    """`is_kept` has one value for each record of the batch."""

    kept_count: int
    is_kept: bytes | bytearray | list[bool]
    has_tombstones: bool


def read_section(data: bytes, position: int, header: BatchHeader) -> tuple[bytes, int, int]:
    """The decompressed records of the batch at `position`: the bytes that hold them, and their start and end."""
    start, end = position + HEADER_SIZE_BYTES, position + header.size_bytes
    if not header.attributes & COMPRESSION_MASK or not header.record_count:
        return data, start, end
    records = decompress(header.compression, memoryview(data)[start:end], DECOMPRESSED_LIMIT_BYTES)
    return records, 0, len(records)


class BatchFilter:
    __slots__ = ("_delete_horizon_ms", "_last_records", "_latest", "_now_ms", "_transactions")

    def __init__(
        self,
        latest: LatestOffsets,
        transactions: TransactionTracker,
        last_records: Mapping[int, LastRecord],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._latest = latest
        self._transactions = transactions
        self._last_records = last_records
        self._now_ms = now_ms
        self._delete_horizon_ms = now_ms + delete_retention_ms

    def filter(self, data: bytes, position: int, header: BatchHeader, *, is_last: bool) -> Bytes | None:
        """The batch to write, or None. `is_last` when it is the last one of the new segment: its header must stay,
        because it has the last offset."""
        keeps_header = is_last or self._is_last_of_producer(header)
        if not header.record_count and not keeps_header:
            return None
        is_control = header.is_control
        if is_control:
            key = marker_key(data, position, header)
            is_discardable = self._transactions.is_marker_discardable(header, key)
            is_discarded = is_discardable and self._is_past(header.delete_horizon_ms)
        else:
            is_discardable = is_discarded = self._transactions.is_aborted(header)
        if is_discarded or not header.record_count:
            return _empty_batch(header) if keeps_header else None
        section = read_section(data, position, header)
        if is_control:
            survivors = Survivors(header.record_count, b"\x01" * header.record_count, is_discardable)
        else:
            survivors = self._choose(header, *section)
        if not survivors.kept_count:
            return _empty_batch(header) if keeps_header else None
        sets_horizon = survivors.has_tombstones and header.delete_horizon_ms is None
        if survivors.kept_count == header.record_count and not sets_horizon:
            return memoryview(data)[position : position + header.size_bytes]
        return self._rewrite(header, section[0], section[1], survivors, sets_horizon)

    def _choose(self, header: BatchHeader, records: bytes, start: int, end: int) -> Survivors:
        if header.base_offset >= self._latest.next_offset:  # compacted in a later round
            return Survivors(header.record_count, b"", has_tombstones=False)
        if header.base_offset < self._latest.first_offset:
            return self._choose_by_keys(header, records, start, end)
        marks = self._latest.marks_of(header)
        if header.record_count <= header.last_offset_delta:
            marks = bytearray(marks[delta] for delta in read_offset_deltas(records, start, header.record_count))
        tombstone_count = marks.count(SURVIVING_TOMBSTONE)
        if tombstone_count and self._is_past(header.delete_horizon_ms):
            marks = marks.replace(bytes((SURVIVING_TOMBSTONE,)), b"\x00")
            tombstone_count = 0
        is_kept = marks.translate(_SURVIVES)
        return Survivors(is_kept.count(SURVIVES), is_kept, tombstone_count > 0)

    def _choose_by_keys(self, header: BatchHeader, records: bytes, start: int, end: int) -> Survivors:
        """For a batch that begins in the clean part of the log: a record stays unless its key has a later one."""
        found = read_keys(records, start, end, header.record_count)
        latest_offsets = self._latest.latest_of(found.keys)
        if header.last_offset < self._latest.first_offset:
            is_kept = [latest is None for latest in latest_offsets]
        else:
            base = header.base_offset - self._latest.origin
            if header.record_count <= header.last_offset_delta:
                offsets = [base + delta for delta in read_offset_deltas(records, start, header.record_count)]
            else:
                offsets = [*range(base, base + header.record_count)]
            pairs = zip(latest_offsets, offsets, strict=True)
            is_kept = [latest is None or latest <= offset for latest, offset in pairs]
        for index in found.keyless:
            is_kept[index] = False
        has_tombstones = False
        for index in found.tombstones:
            if self._is_past(header.delete_horizon_ms):
                is_kept[index] = False
            has_tombstones = has_tombstones or is_kept[index]
        return Survivors(sum(is_kept), is_kept, has_tombstones)

    def _rewrite(
        self, header: BatchHeader, records: bytes, start: int, survivors: Survivors, sets_horizon: bool
    ) -> bytearray:
        section, largest_delta = cut_records(records, start, survivors.is_kept)
        attributes, base_timestamp = header.attributes, header.base_timestamp
        max_timestamp = header.max_timestamp if header.uses_log_append_time else base_timestamp + largest_delta
        if sets_horizon:
            section = rebase_timestamps(section, survivors.kept_count, base_timestamp - self._delete_horizon_ms)
            base_timestamp = self._delete_horizon_ms
            attributes |= DELETE_HORIZON_FLAG
        section = compress(header.compression, section)
        return write_batch(
            header._replace(
                attributes=attributes,
                batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION + len(section),
                base_timestamp=base_timestamp,
                max_timestamp=max_timestamp,
                record_count=survivors.kept_count,
            ),
            section,
        )

    def _is_past(self, delete_horizon_ms: int | None) -> bool:
        return delete_horizon_ms is not None and delete_horizon_ms <= self._now_ms

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether the header holds the last sequence number of its producer, or the epoch that fences older ones."""
        last = self._last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


# The lowest bit of a mark.
_SURVIVES = bytes(mark & SURVIVES for mark in range(256))


def marker_key(data: bytes, position: int, header: BatchHeader) -> bytes | None:
    """The key of the one record of a control batch; None when the batch has no record."""
    if not header.record_count:
        return None
    key = read_keys(*read_section(data, position, header), header.record_count).keys[0]
    return key if isinstance(key, bytes) else b""


def _empty_batch(header: BatchHeader) -> bytearray:
    """A batch without records, which keeps the offsets and sequence numbers that were assigned to it."""
    return write_batch(
        header._replace(
            attributes=header.attributes & _LASTING_FLAGS | Compression.NONE,
            batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION,
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )
