"""What each replica of a compacted topic says about its keys. Appends and truncations change it, and compaction, moves
and the expiry of tombstones never do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.log.compaction.compacted_logs import records_of
from tests.replication.invariants import Invariants, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.protocol.records import Record
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable
    from tests.replication.invariants import Key
    from tests.replication.machine import Machine

CHECKS_PER_READING = 6  # more often than tombstones expire
Values = dict[bytes | None, "Record"]  # the newest record of each key


class _Seen(NamedTuple):
    partition: Partition
    end_offset: int
    values: Values


class KeyValues(Invariants):
    """Instead of what is committed, which unclean elections take back."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic
        self._tables: dict[int, PartitionTable] = {}
        self._seen: dict[tuple[int, Key], _Seen] = {}
        self._checks = 0
        self.truncations = 0

    def check(self, machines: Sequence[Machine]) -> None:
        for machine in machines:
            if machine.is_ready and self._tables.get(machine.node_id) is not machine.table:
                self._tables[machine.node_id] = machine.table
                machine.table.truncations.on_begin(partial(self._note_truncation, machine.node_id))
        self._checks += 1
        if self._checks % CHECKS_PER_READING == 0:
            super().check(machines)

    def forget(self, node_id: int) -> None:
        for place in [place for place in self._seen if place[0] == node_id]:
            del self._seen[place]

    def _check_committed(self, node_id: int, key: Key, partition: Partition) -> None:
        if key[0] == self._topic and partition.is_online:
            self._seen[node_id, key] = _Seen(
                partition, partition.log.log_end_offset, self._verify(node_id, key, partition)
            )

    def _verify(self, node_id: int, key: Key, partition: Partition) -> Values:
        records = list(records_of(partition.log))
        values = _newest(records)
        seen = self._seen.get((node_id, key))
        if seen is not None and seen.partition is partition:
            appended = _newest(record for record in records if record.offset >= seen.end_offset)
            expected = _shown({**seen.values, **appended})
            if _shown(values) != expected:
                raise Violation(f"{key} on broker {node_id} has {_shown(values)}, where {expected} is expected")
        return values

    def _note_truncation(self, node_id: int, partition: Partition, offset: int) -> None:
        key = (partition.topic, partition.index)
        if partition.topic != self._topic:
            return
        if offset < partition.log.log_end_offset:
            self.truncations += 1
        self._verify(node_id, key, partition)
        kept = [record for record in records_of(partition.log) if record.offset < offset]
        self._seen[node_id, key] = _Seen(partition, offset, _newest(kept))


def _newest(records: Iterable[Record]) -> Values:
    return {record.key: record for record in records}


def _shown(values: Values) -> dict[bytes | None, tuple[int, bytes]]:
    """What a consumer that reads everything has in the end."""
    return {key: (each.offset, bytes(each.value)) for key, each in values.items() if each.value is not None}
