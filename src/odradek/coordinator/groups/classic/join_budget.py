"""How much metadata members may bring when they join classic groups.

A join writes no record, so the limits of the topic do not apply to it: without limits of their own, members that never
complete a generation, or that disconnect after it, would keep any amount of memory for their session timeouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.classic.members import metadata_bytes
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.coordinator.groups.classic.join import Join

log = get_logger(__name__)

SMALL_JOIN_BYTES = 4 << 10
"""Joins that add less are not counted for all groups together, so that ordinary consumers join while peers with larger
metadata occupy the memory. The group itself takes as much."""
LARGE_JOIN_BYTES = 16 << 10
"""Joins that add as much need room among the groups without an assignment, too."""

BATCHES_OF_METADATA = 5
"""Metadata of a group, and of all groups that have no assignment yet, in batches of the topic. A group's record has the
metadata of one protocol of each member, and may be compressed to a quarter."""
BATCHES_OF_ALL_GROUPS = 256
"""Limits the metadata of all groups of a broker, with or without an assignment: 16,000 members with 16 KiB each."""
LOG_AT_MOST_EVERY = 1000
"""Refused joins for each line of the log: clients try again and again."""

GROUPS_COUNTED_PER_JOIN = 256
"""The metadata of all groups is added up again after so many joins that each counts no more than this number."""

_UNASSIGNED = (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE)


class JoinBudget:
    """Shared by all shards of a broker. `_groups` have had joins that were not small. Their metadata is added up from
    time to time, and the growth by further joins is added to the sums: memory that is free again, and groups that have
    got their assignment, are noticed at the next count."""

    def __init__(self) -> None:
        self._groups: WeakSet[ClassicGroup] = WeakSet()
        self._all_bytes = 0
        self._unassigned_bytes = 0
        self._joins_until_count = 0
        self._refused_count = 0

    def check(self, group: ClassicGroup, attempt: Join, batch_limit_bytes: int) -> ErrorCode:
        """Returns NONE if the size limits allow this member's metadata, which replaces that of its earlier join."""
        member = group.find_member(attempt.request.member_id, attempt.request.group_instance_id)
        growth_bytes = metadata_bytes(attempt.protocols) - (0 if member is None else metadata_bytes(member.protocols))
        if growth_bytes > 0 and group.metadata_bytes + growth_bytes > BATCHES_OF_METADATA * batch_limit_bytes:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if growth_bytes >= SMALL_JOIN_BYTES and not self._take(group, growth_bytes, batch_limit_bytes):
            self._log_refused(group)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE  # clients try again after a pause
        return ErrorCode.NONE

    def _log_refused(self, group: ClassicGroup) -> None:
        if self._refused_count % LOG_AT_MOST_EVERY == 0:
            log.warning(
                "a join was refused: the metadata of members takes too much memory",
                group=group.group_id, bytes=self._all_bytes, unassigned_bytes=self._unassigned_bytes,
                refused=self._refused_count + 1,
            )  # fmt: skip
        self._refused_count += 1

    def forget(self, group: ClassicGroup) -> None:
        """The group is not coordinated here any more."""
        self._groups.discard(group)

    def _take(self, group: ClassicGroup, growth_bytes: int, batch_limit_bytes: int) -> bool:
        self._joins_until_count -= 1
        if self._joins_until_count < 0:
            self._count()
        all_bytes = self._all_bytes + growth_bytes
        unassigned_bytes = self._unassigned_bytes + growth_bytes
        if group not in self._groups:
            all_bytes += group.metadata_bytes
        if group not in self._groups or group.state not in _UNASSIGNED:
            unassigned_bytes += group.metadata_bytes
        is_large = growth_bytes >= LARGE_JOIN_BYTES
        if is_large and unassigned_bytes > BATCHES_OF_METADATA * batch_limit_bytes:
            return False
        if all_bytes > BATCHES_OF_ALL_GROUPS * batch_limit_bytes:
            return False
        self._groups.add(group)
        self._all_bytes, self._unassigned_bytes = all_bytes, unassigned_bytes
        return True

    def _count(self) -> None:
        groups = [each for each in self._groups if each.metadata_bytes >= SMALL_JOIN_BYTES]
        self._groups = WeakSet(groups)
        self._all_bytes = sum(each.metadata_bytes for each in groups)
        self._unassigned_bytes = sum(each.metadata_bytes for each in groups if each.state in _UNASSIGNED)
        self._joins_until_count = len(groups) // GROUPS_COUNTED_PER_JOIN
