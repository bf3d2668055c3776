"""What must hold in a cluster after every step, whatever has happened to its brokers and their network."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from odradek.protocol.batch import read_batch_header
from odradek.protocol.errors import ErrorCode
from odradek.replica.partition import Partition
from tests.replication.machine import Machine

Key = tuple[str, int]


class Violation(AssertionError):
    """An invariant does not hold; the text says which, where and what was found."""


class StoredBatch(NamedTuple):
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


def stored_batches(partition: Partition, start_offset: int, end_offset: int) -> Iterator[StoredBatch]:
    while start_offset < end_offset:
        found = partition.log.read(start_offset, 1 << 30, end_offset, whole_first_batch=True)
        if found is None or isinstance(found, ErrorCode):
            return
        data = memoryview(found.read())
        position = 0
        while position + 61 <= len(data):
            header = read_batch_header(data, position)
            position += header.size_bytes
            if position > len(data):
                return
            yield StoredBatch(header.base_offset, header.last_offset, header.partition_leader_epoch, header.crc)
            start_offset = header.last_offset + 1


class Invariants:
    """Of one cluster, over all its steps."""

    def __init__(self) -> None:
        self._leaders: dict[tuple[Key, int], int] = {}
        self.committed: dict[Key, list[StoredBatch]] = {}
        self._verified: dict[tuple[Key, int], int] = {}  # up to which offset a replica agrees with the committed ones
        self._visible_ends: dict[Key, int] = {}

    def check(self, machines: Sequence[Machine]) -> None:
        for machine in machines:
            for problem in machine.errors:
                raise Violation(f"broker {machine.node_id} failed: {problem!r}") from problem
            if machine.is_ready:
                for partition in machine.table:
                    self._check_partition(machine.node_id, (partition.topic, partition.index), partition)

    def _check_partition(self, node_id: int, key: Key, partition: Partition) -> None:
        log = partition.log
        if not log.log_start_offset <= partition.high_watermark <= log.log_end_offset:
            raise Violation(f"{key} on broker {node_id}: the high watermark is outside of the log")
        if partition.is_leader:
            leader = self._leaders.setdefault((key, partition.leader_epoch), node_id)
            if leader != node_id:
                raise Violation(f"{key}: brokers {leader} and {node_id} lead in epoch {partition.leader_epoch}")
        if not log.is_truncating:
            self._check_committed(node_id, key, partition)

    def _check_committed(self, node_id: int, key: Key, partition: Partition) -> None:
        """Every replica has the same records below its high watermark. The first to have them decides."""
        committed = self.committed.setdefault(key, [])
        verified = min(self._verified.get((key, node_id), 0), partition.log.log_end_offset)
        verified = max(verified, partition.log.log_start_offset)
        if verified > partition.high_watermark:
            self._verified[key, node_id] = verified
            return
        place = _place_of(committed, verified)
        for batch in stored_batches(partition, verified, partition.high_watermark):
            if place < len(committed):
                if committed[place] != batch:
                    raise Violation(
                        f"{key} on broker {node_id}: {batch} below the high watermark {partition.high_watermark}, "
                        f"where {committed[place]} is committed"
                    )
            else:
                committed.append(batch)
            place += 1
            verified = batch.last_offset + 1
        self._verified[key, node_id] = verified

    def forget(self, node_id: int) -> None:
        """The broker restarts: its log is compared again."""
        for key in [key for key in self._verified if key[1] == node_id]:
            del self._verified[key]

    def see_end(self, key: Key, end_offset: int) -> None:
        """A client has seen this latest offset; it must not be smaller than one that it has seen before."""
        before = self._visible_ends.get(key, 0)
        if end_offset < before:
            raise Violation(f"{key}: the latest offset went back from {before} to {end_offset}")
        self._visible_ends[key] = end_offset

    def check_acknowledged(self, key: Key, acknowledged: Iterable[tuple[int, int]]) -> None:
        """Each acknowledged batch, by base offset and checksum, is committed there."""
        found = {batch.base_offset: batch.crc for batch in self.committed.get(key, [])}
        for base_offset, crc in acknowledged:
            if found.get(base_offset) != crc:
                raise Violation(f"{key}: the acknowledged batch at offset {base_offset} is lost")


def _place_of(committed: Sequence[StoredBatch], offset: int) -> int:
    low, high = 0, len(committed)
    while low < high:
        middle = (low + high) // 2
        if committed[middle].last_offset < offset:
            low = middle + 1
        else:
            high = middle
    return low
