"""A change of an in-sync set that a leader asks the controller for, and the controller's answer (AlterPartition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.protocol.sentinels import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from odradek.protocol.errors import ErrorCode


class InSyncProposal(NamedTuple):
    """`partition_epoch` is that of the metadata which the proposal changes; `in_sync_replicas` are the node id and the
    broker epoch of each member, the leader included (KIP-903)."""

    topic_id: UUID
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: tuple[tuple[int, int], ...]


class InSyncResult(NamedTuple):
    """The controller's answer to one proposal, with the partition as it is after it."""

    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    in_sync_replicas: tuple[int, ...] = ()


class InSyncChannel(Protocol):
    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        """The results in the order of the proposals. Any exception means that the outcome is not known."""


class Proposer(Protocol):
    """The leader of one partition with a proposal."""

    def proposal(self) -> InSyncProposal | None:
        """What to ask the controller for; None when there is nothing any more."""

    def resolve(self, proposal: InSyncProposal, result: InSyncResult) -> bool:
        """Carry out the controller's answer. False if the same proposal must be sent again."""
