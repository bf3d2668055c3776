"""The offset of the latest record of each key in a part of a log, in bounded memory. A log with more keys than fit is
compacted in several rounds, as in Kafka."""

from odradek.log.compaction.record_keys import Key, RecordKeys
from odradek.protocol.batch import BatchHeader

# The largest cost of an entry: a key (96 bytes), a number (32), and its share of a table that has just doubled.
ENTRY_BYTES = 200
# The marks, one byte for each offset, take one eighth of the memory.
_MARKS_SHARE = 8

SURVIVES = 1
TOMBSTONE = 2
SURVIVING_TOMBSTONE = SURVIVES | TOMBSTONE


class LatestOffsets:
    """Add batches in the order of the log while `has_room`, then call `finish`, then `marks_of` and `latest_of`.

    Offsets of records are kept relative to `origin`, the first offset that was added."""

    __slots__ = ("_largest_entries", "_largest_span", "_latest", "_marks", "first_offset", "next_offset", "origin")

    def __init__(self, first_offset: int, limit_bytes: int) -> None:
        self.first_offset = first_offset
        self.next_offset = first_offset  # the end of the mapped part
        self.origin = first_offset
        self._latest: dict[Key, int] = {}
        self._marks = bytearray()
        self._largest_span = limit_bytes // _MARKS_SHARE
        self._largest_entries = (limit_bytes - self._largest_span) // ENTRY_BYTES

    def __len__(self) -> int:
        return len(self._latest)

    def has_room(self, header: BatchHeader) -> bool:
        """Whether the records of one more batch fit. The first batch always does: compaction must progress."""
        if not self._marks:
            return True
        return (
            len(self._latest) + header.record_count <= self._largest_entries
            and header.last_offset + 1 - self.origin <= self._largest_span
        )

    def add(self, header: BatchHeader, records: RecordKeys, deltas: list[int] | None) -> None:
        """`deltas` are the offset deltas of the records, None when no record is missing from the batch."""
        marks = self._marks
        if not marks:
            self.origin = max(self.first_offset, header.base_offset)
        base = header.base_offset - self.origin
        marks.extend(bytes(base + header.last_offset_delta + 1 - len(marks)))
        offsets = range(base, base + header.record_count) if deltas is None else [base + delta for delta in deltas]
        if base >= 0:
            self._latest.update(zip(records.keys, offsets, strict=True))
        else:
            pairs = zip(records.keys, offsets, strict=True)
            self._latest.update((key, offset) for key, offset in pairs if offset >= 0)
        for index in records.tombstones:
            if offsets[index] >= 0:
                marks[offsets[index]] = TOMBSTONE
        self.skip_to(header.last_offset + 1)

    def skip_to(self, offset: int) -> None:
        """No record to map lies before `next_offset`: there is a hole, a marker, or aborted data."""
        self.next_offset = max(self.next_offset, offset)

    def finish(self) -> None:
        self._latest.pop(None, None)  # records without a key
        marks = self._marks
        for offset in self._latest.values():
            marks[offset] |= SURVIVES

    def marks_of(self, header: BatchHeader) -> bytearray:
        """The mark of each offset of a batch that was added: SURVIVES, TOMBSTONE, both or none."""
        base = header.base_offset - self.origin
        return self._marks[base : base + header.last_offset_delta + 1]

    def latest_of(self, keys: list[Key]) -> list[int | None]:
        """The relative offset of the latest record of each key; None for keys that are not in the mapped part."""
        return [*map(self._latest.get, keys)]
