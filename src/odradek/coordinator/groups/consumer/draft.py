"""A consumer group as it will be, while a rule decides: changed by the same records that will be written.

A rule thus reads what it has just decided, while the group itself does not change until the records are in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.groups.consumer.records import (
    consumer_group_record,
    regular_expression_record,
    target_assignment_member_record,
    target_assignment_record,
    tombstone,
)
from odradek.coordinator.groups.group_records import (
    ConsumerGroupMemberKey,
    ConsumerGroupPartitionsKey,
    CurrentAssignmentKey,
    RegularExpressionKey,
    TargetAssignmentMemberKey,
    decode_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.coordinator.groups.consumer.group import ConsumerGroup, ResolvedPattern
    from odradek.coordinator.groups.consumer.members import ConsumerMember, Partitions
    from odradek.coordinator.groups.decision import Decision
    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord


class Draft:
    def __init__(self, group: ConsumerGroup, before: Iterable[CoordinatorRecord] = ()) -> None:
        """`before` are records that make room for the group, or make the group what it is here already."""
        self.group = group
        self.records: list[CoordinatorRecord] = list(before)
        self.afterwards: list[Callable[[Decision], None]] = []  # continuations for when the records are written
        self._is_copy = False

    @property
    def group_id(self) -> str:
        return self.group.group_id

    def put_metadata(self, member: ConsumerMember) -> None:
        self._write(member.metadata_record(self.group_id))

    def put_assignment(self, member: ConsumerMember) -> None:
        self._write(member.assignment_record(self.group_id))

    def remove_member(self, member_id: str) -> None:
        """The order matters to Kafka."""
        self._write(tombstone(CurrentAssignmentKey(self.group_id, member_id)))
        self._write(tombstone(TargetAssignmentMemberKey(self.group_id, member_id)))
        self._write(tombstone(ConsumerGroupMemberKey(self.group_id, member_id)))

    def bump_epoch(self, metadata_hash: int) -> None:
        self._write(consumer_group_record(self.group_id, self.group.epoch + 1, metadata_hash))
        if self.group.has_partition_metadata:
            self._write(tombstone(ConsumerGroupPartitionsKey(self.group_id)))

    def put_target(self, member_id: str, partitions: Partitions) -> None:
        self._write(target_assignment_member_record(self.group_id, member_id, partitions))

    def put_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self._write(target_assignment_record(self.group_id, epoch, timestamp_ms))

    def put_pattern(self, pattern: str, resolved: ResolvedPattern) -> None:
        self._write(regular_expression_record(self.group_id, pattern, *resolved))

    def remove_pattern(self, pattern: str) -> None:
        self._write(tombstone(RegularExpressionKey(self.group_id, pattern)))

    def _write(self, record: CoordinatorRecord) -> None:
        if not self._is_copy:
            self.group = self.group.copy()
            self._is_copy = True
        self.records.append(record)
        key = decode_key(record.key)
        assert key is not None
        self.group.replay(key, record.value)  # type: ignore[arg-type]  # all of the records above are of this kind


def records_of(group: ConsumerGroup) -> Sequence[CoordinatorRecord]:
    """The records that restore this group."""
    group_id = group.group_id
    return [
        *(member.metadata_record(group_id) for member in group.members.values()),
        consumer_group_record(group_id, group.epoch, group.metadata_hash),
        *(target_assignment_member_record(group_id, *each) for each in group.targets.items()),
        target_assignment_record(group_id, group.target_epoch, group.target_timestamp_ms),
        *(member.assignment_record(group_id) for member in group.members.values()),
    ]
