"""What each replica of a compacted topic says about its keys. Appends and truncations change it, and compaction, moves
and the expiry of tombstones never do."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from odradek.log.segment import Segment
from odradek.protocol.records import Record, read_records
from odradek.replica.partition import Partition
from odradek.replica.partition_table import PartitionTable
from tests.log.batches import split
from tests.log.compaction.compacted_logs import records_of
from tests.replication.invariants import Invariants, Key, Violation
from tests.replication.machine import Machine

LARGEST_BATCH_BYTES = 1 << 20
Values = dict[bytes | None, "Record"]  # the newest record of each key
Contents = dict["Segment", tuple[int, list["Record"]]]  # of each segment: its size, and its records


class _Seen(NamedTuple):
    partition: Partition
    segments: Sequence[Segment]  # another list after each change but a new segment
    end_offset: int
    contents: Contents
    values: Values


class KeyValues(Invariants):
    """Instead of what is committed, which unclean elections take back."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._tables: dict[int, PartitionTable] = {}
        self._seen: dict[tuple[int, Key], _Seen] = {}
        self.truncations = 0

    def check(self, machines: Sequence[Machine]) -> None:
        for machine in machines:
            if machine.is_ready and self._tables.get(machine.node_id) is not machine.table:
                self._tables[machine.node_id] = machine.table
                machine.table.truncations.on_begin(partial(self._note_truncation, machine.node_id))
        super().check(machines)

    def forget(self, node_id: int) -> None:
        for place in [place for place in self._seen if place[0] == node_id]:
            del self._seen[place]

    def compare_with_readers(self) -> None:
        """What was found in the segments is what consumers read."""
        for (node_id, key), seen in self._seen.items():
            if (found := _newest(records_of(seen.partition.log))) != _newest(_records(_contents(seen.partition, {}))):
                raise Violation(f"readers of {key} on broker {node_id} get {_shown(found)}")

    def _check_committed(self, node_id: int, key: Key, partition: Partition) -> None:
        if key[0] != self._topic or not partition.is_online:
            return
        seen = self._seen.get((node_id, key))
        log = partition.log
        if seen is None or seen.end_offset != log.log_end_offset or seen.segments is not log.segments:
            self._seen[node_id, key] = self._verify(node_id, key, partition)

    def _verify(self, node_id: int, key: Key, partition: Partition) -> _Seen:
        seen = self._seen.get((node_id, key))
        if seen is not None and seen.partition is not partition:
            seen = None
        contents = _contents(partition, seen.contents if seen else {})
        values = _newest(_records(contents))
        if seen is not None:
            appended = _newest(record for record in _records(contents) if record.offset >= seen.end_offset)
            expected = _shown({**seen.values, **appended})
            if _shown(values) != expected:
                raise Violation(f"{key} on broker {node_id} has {_shown(values)}, where {expected} is expected")
        return _Seen(partition, partition.log.segments, partition.log.log_end_offset, contents, values)

    def _note_truncation(self, node_id: int, partition: Partition, offset: int) -> None:
        key = (partition.topic, partition.index)
        if partition.topic != self._topic:
            return
        if offset < partition.log.log_end_offset:
            self.truncations += 1
        seen = self._verify(node_id, key, partition)
        kept = [record for record in _records(seen.contents) if record.offset < offset]
        self._seen[node_id, key] = _Seen(partition, (), offset, seen.contents, _newest(kept))


def _contents(partition: Partition, known: Contents) -> Contents:
    """Of the segments as they are. Each byte of a segment is read once: what replaces one has other segments."""
    contents: Contents = {}
    for segment in partition.log.segments:
        position, records = known.get(segment, (0, []))
        size_bytes = segment.size_bytes
        if position < size_bytes:
            records = [*records, *_read(segment, position, size_bytes)]
        contents[segment] = size_bytes, records
    return contents


def _read(segment: Segment, position: int, end_position: int) -> Iterable[Record]:
    """Of data; what markers hold is not for readers."""
    for header, batch in split(segment.file.read_at(end_position - position, position)):
        if not header.is_control:
            yield from read_records(batch, LARGEST_BATCH_BYTES)


def _records(contents: Contents) -> Iterable[Record]:
    for _, records in contents.values():
        yield from records


def _newest(records: Iterable[Record]) -> Values:
    return {record.key: record for record in records}


def _shown(values: Values) -> dict[bytes | None, tuple[int, bytes]]:
    """What a consumer that reads everything has in the end."""
    return {key: (each.offset, bytes(each.value)) for key, each in values.items() if each.value is not None}
