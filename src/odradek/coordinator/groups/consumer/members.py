"""One member of a consumer group (KIP-848), as an immutable value: its subscription, its partitions and its epoch.

A change makes another value; records restore it. The partitions that a member owns are in two parts: those that it may
consume, and those that it must give back before another member gets them.
"""

from __future__ import annotations

import enum
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from odradek.conventions.dataclass import dataclass
from odradek.coordinator.groups.consumer.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    current_assignment_record,
    member_record,
    partitions_with_epochs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from odradek.coordinator.groups.classic.members import Protocols
    from odradek.coordinator.groups.consumer.records import ConsumerGroupCurrentMemberAssignmentValue
    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2  # a static member leaves and may return before its session ends

Partitions: TypeAlias = "Mapping[UUID, frozenset[int]]"
# Each partition with the epoch at which the member got it: an older commit comes from a former owner (KIP-1251).
PartitionEpochs: TypeAlias = "Mapping[UUID, Mapping[int, int]]"


class MemberState(enum.IntEnum):
    """The numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it must give partitions back, and has not confirmed that it did
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others have not given back
    UNKNOWN = 127  # a newer broker wrote it

    @classmethod
    def _missing_(cls, value: object) -> MemberState:  # noqa: ARG003 - what Enum calls
        return cls.UNKNOWN


class ClassicClient(NamedTuple):
    """What a member of the classic protocol has sent: it is served by JoinGroup, SyncGroup and Heartbeat."""

    session_timeout_ms: int
    protocols: Protocols

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_pattern: str = ""
    assignor: str | None = None
    rebalance_timeout_ms: int = -1
    classic: ClassicClient | None = None
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch since which the member has this partition; None when it does not have it."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def moved(
        self, epoch: int, state: MemberState, assigned: PartitionEpochs, pending_revocation: PartitionEpochs
    ) -> ConsumerMember:
        """The member after a step of its reconciliation. It may send its former epoch again, if this answer is lost."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def away(self) -> ConsumerMember:
        """A static member that left for a while: it keeps its partitions and need not give any back."""
        assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in self.assigned.items()}
        return replace(self, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, pending_revocation={})

    # Records

    def metadata_record(self, group_id: str) -> CoordinatorRecord:
        classic = None
        if self.classic is not None:
            timeout_ms, protocols = self.classic
            supported = [ClassicProtocol(name=name, metadata=data) for name, data in protocols]
            classic = ClassicMemberMetadata(session_timeout_ms=timeout_ms, supported_protocols=supported)
        value = ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
            subscribed_topic_regex=self.topic_pattern,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=classic,
        )
        return member_record(group_id, self.member_id, value)

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        stored = value.classic_member_metadata
        classic = None
        if stored is not None:
            protocols = tuple((each.name, bytes(each.metadata)) for each in stored.supported_protocols)
            classic = ClassicClient(stored.session_timeout_ms, protocols)
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_pattern=value.subscribed_topic_regex or "",
            assignor=value.server_assignor,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            classic=classic,
        )

    def assignment_record(self, group_id: str) -> CoordinatorRecord:
        return current_assignment_record(
            group_id,
            self.member_id,
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned=self.assigned,
            pending_revocation=self.pending_revocation,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=partitions_with_epochs(value.assigned_partitions, value.member_epoch),
            pending_revocation=partitions_with_epochs(value.partitions_pending_revocation, value.member_epoch),
        )
