"""Requests of a leader for another in-sync set (AlterPartition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult


class InSyncChannel(Protocol):
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
