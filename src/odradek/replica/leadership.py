"""The two facts about a partition on this broker: whether its log can be used, and whether this broker leads it.

They are independent. Flushing, retention and compaction depend on the log; produce and fetch depend on leadership too.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH, NO_LEADER

if TYPE_CHECKING:
    from odradek.metadata.entities import PartitionImage


class LogState(enum.Enum):
    ONLINE = "online"
    FAILED = "failed"  # the log could not be opened, or its log directory failed
    RETIRED = "retired"  # the partition was removed from this broker


class Leadership(enum.Enum):
    LEADER = "leader"
    FOLLOWER = "follower"
    NONE = "none"  # the partition has no leader, or no metadata was applied to it


class LeadershipEpochs:
    """The epochs of the newest metadata that was applied to a partition.

    Invariants: neither epoch ever decreases, and one leader epoch has one leader. `refusal` is the one place that
    decides whether metadata is too old to be applied."""

    __slots__ = ("leader", "leader_epoch", "partition_epoch")

    def __init__(self) -> None:
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH

    def refusal(self, image: PartitionImage) -> ErrorCode:
        """NONE when the metadata may be applied; applying the newest metadata a second time is allowed."""
        if image.leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if image.partition_epoch < self.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        return ErrorCode.NONE

    def advance(self, image: PartitionImage) -> None:
        assert self.refusal(image) is ErrorCode.NONE, "an epoch of a partition decreased"
        assert image.leader_epoch > self.leader_epoch or image.leader == self.leader, "one leader epoch, two leaders"
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
