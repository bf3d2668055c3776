"""The queries that every kind of group answers, whatever its protocol: a shard holds groups of several kinds."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.coordinator.groups.group_records import CommittedOffset
    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.protocol.errors import ErrorCode

# Whether an offset may be committed for this partition, when that differs between partitions.
PartitionCheck: TypeAlias = "Callable[[UUID, int], ErrorCode]"

NO_MEMBER_ID = ""


class GroupKind(enum.Enum):
    """The names are the protocol's (ListGroups)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """The sender of a commit: a member of a generation or an epoch, or a client that is not a member (−1 and no id)."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    version: int
    is_transactional: bool = False  # the versions are those of TxnOffsetCommit

    @property
    def is_of_any_client(self) -> bool:
        """A transaction need not name a member."""
        has_member = self.generation >= 0 or self.member_id != NO_MEMBER_ID or self.instance_id is not None
        return self.is_transactional and not has_member


class Group(Protocol):
    group_id: str

    @property
    def kind(self) -> GroupKind: ...

    @property
    def state_name(self) -> str: ...

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def is_empty(self) -> bool: ...

    def check_commit(self, committer: Committer) -> ErrorCode | PartitionCheck:
        """Whether this member, or a client that is not a member, may commit offsets."""

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether this member, or a client that is not a member, may read committed offsets."""

    def check_offset_deletion(self) -> ErrorCode: ...

    def check_deletion(self) -> ErrorCode: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def expiry_base(self) -> Callable[[CommittedOffset], int] | None:
        """The time from which an offset's retention counts; None while no offset of the group may expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group."""


def commit_time(committed: CommittedOffset) -> int:
    return committed.commit_timestamp_ms
