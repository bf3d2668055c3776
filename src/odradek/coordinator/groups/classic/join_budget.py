"""How much metadata members may bring when they join classic groups.

A join writes no record, so the limits of the topic do not apply to it: without limits of their own, members that never
complete a generation would keep any amount of memory for their session timeouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.classic.members import metadata_bytes
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.coordinator.groups.classic.join import Join

SMALL_JOIN_BYTES = 16 << 10
"""Joins that add less are not counted for all groups together, so that ordinary consumers join while peers with large
metadata occupy the memory."""

BATCHES_OF_METADATA = 5
"""Metadata of a group, and of all groups that have no assignment yet, in batches of the topic. A group's record has the
metadata of one protocol of each member, and may be compressed to a quarter."""

_UNASSIGNED = (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE)


class JoinBudget:
    """Shared by all shards of a broker. `_unassigned` are groups that large joins were added to."""

    def __init__(self) -> None:
        self._unassigned: WeakSet[ClassicGroup] = WeakSet()

    def check(self, group: ClassicGroup, attempt: Join, batch_limit_bytes: int) -> ErrorCode:
        """NONE if there is room for what a member brings; what it brought when it joined before is replaced."""
        member = group.find_member(attempt.request.member_id, attempt.request.group_instance_id)
        growth_bytes = metadata_bytes(attempt.protocols) - (0 if member is None else metadata_bytes(member.protocols))
        limit_bytes = BATCHES_OF_METADATA * batch_limit_bytes
        if growth_bytes > 0 and group.metadata_bytes + growth_bytes > limit_bytes:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if growth_bytes >= SMALL_JOIN_BYTES:
            if self._used_bytes(group) + group.metadata_bytes + growth_bytes > limit_bytes:
                return ErrorCode.COORDINATOR_NOT_AVAILABLE  # clients try again after a pause
            self._unassigned.add(group)
        return ErrorCode.NONE

    def forget(self, group: ClassicGroup) -> None:
        """The group is not coordinated here any more."""
        self._unassigned.discard(group)

    def _used_bytes(self, joined: ClassicGroup) -> int:
        """Of other groups than `joined`."""
        for group in [each for each in self._unassigned if each.state not in _UNASSIGNED]:
            self._unassigned.discard(group)
        return sum(group.metadata_bytes for group in self._unassigned if group is not joined)
