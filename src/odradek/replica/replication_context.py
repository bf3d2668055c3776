"""What the partitions of a broker know of the rest of the cluster, and how they ask for another in-sync set. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
    from odradek.replica.replication_throttle import ReplicationThrottle


class InSyncChannel(Protocol):
    """Requests of a leader for another in-sync set (AlterPartition)."""

    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        """The results in the order of the proposals. Any exception means that the outcome is not known."""


class Proposer(Protocol):
    """The leader of one partition with a proposal."""

    def proposal(self) -> InSyncProposal | None:
        """The proposal to send; None when there is none any more."""

    def check_in_sync(self) -> None:
        """Propose what is due."""

    def resolve(self, proposal: InSyncProposal, result: InSyncResult) -> bool:
        """Carry out the controller's answer. False if the same proposal must be sent again."""


class ReplicationContext(Protocol):
    @property
    def lag_time_max_ms(self) -> float: ...

    @property
    def serves_consumers_from_followers(self) -> bool:
        """Whether followers must learn at once how far records are committed."""

    @property
    def leader_throttle(self) -> ReplicationThrottle | None: ...

    def monotonic_ms(self) -> float: ...

    def broker_epoch(self, node_id: int) -> int | None:
        """The epoch of a broker's registration; None if it is not registered, or fenced."""

    def request_in_sync(self, proposer: Proposer) -> None:
        """The leader of a partition has a proposal for the controller."""

    def check_in_sync_after(self, delay_ms: float, proposer: Proposer) -> None:
        """Let the leader of a partition look again at its in-sync set, after a refusal."""

    def count_in_sync_change(self, *, left: int, joined: int) -> None:
        """The controller has confirmed that so many replicas left and joined the in-sync set of a partition."""


class NoReplication:
    """For a broker without others: no replica is awaited longer than the metadata says, and nothing is proposed."""

    lag_time_max_ms = 0.0
    serves_consumers_from_followers = False
    leader_throttle = None

    def monotonic_ms(self) -> float:
        return 0.0

    def broker_epoch(self, node_id: int) -> int | None:  # noqa: ARG002 - the Protocol's signature
        return None

    def request_in_sync(self, proposer: Proposer) -> None: ...

    def check_in_sync_after(self, delay_ms: float, proposer: Proposer) -> None: ...

    def count_in_sync_change(self, *, left: int, joined: int) -> None: ...
