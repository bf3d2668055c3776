"""Records of committed offsets, as the group coordinator writes them."""

from odradek.coordinator.groups.group_records import CommittedOffset, offset_commit_key, offset_commit_value
from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord


def offset_commit_record(group: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    return CoordinatorRecord(offset_commit_key(group, topic, partition), offset_commit_value(committed))
