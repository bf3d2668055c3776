"""The one way in which the controller changes a partition: an intention in, the next partition out. Pure.

Whatever the intention is (an in-sync set that the leader proposes, a broker that left, a reassignment, an election),
the same steps follow: a reassignment whose target is in sync is completed, the eligible leader set is updated
(KIP-966), a leader is elected, and the epochs are raised. The steps are those of Kafka's PartitionChangeBuilder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.controller.decisions.leader_election import Candidates, ElectionKind, elect
from odradek.controller.decisions.reassignment import Reassignment, without
from odradek.conventions.dataclass import dataclass
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from odradek.metadata.entities import PartitionImage

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRules:
    """The rules of one topic in the present cluster."""

    min_in_sync: int
    allows_unclean: bool
    can_lead: Callable[[int], bool]
    keeps_eligible_leaders: bool = True
    """Whether `eligible.leader.replicas.version` is 1."""

    def may_have_eligible_leaders(self, in_sync: Replicas, replicas: Replicas) -> bool:
        return self.keeps_eligible_leaders and self.has_too_few(in_sync, replicas)

    def has_too_few(self, in_sync: Replicas, replicas: Replicas) -> bool:
        """A partition with fewer replicas than the minimum has enough when all of them are in sync."""
        return len(in_sync) < min(self.min_in_sync, len(replicas))

    @property
    def automatic_election(self) -> ElectionKind:
        """The kind of an election that no user has asked for."""
        return ElectionKind.UNCLEAN if self.allows_unclean else ElectionKind.ONLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """What a caller wants to change; None leaves a set as it is. Brokers in `unclean_shutdowns` may have lost records
    and leave the eligible set."""

    election: ElectionKind
    in_sync: Replicas | None = None
    reassignment: Reassignment | None = None
    unclean_shutdowns: Collection[int] = ()


def change_partition(partition: PartitionImage, intention: Intention, rules: PartitionRules) -> PartitionImage | None:
    """The partition with its next partition epoch; None when nothing changes."""
    reassignment = intention.reassignment or Reassignment.of(partition)
    in_sync = partition.in_sync_replicas if intention.in_sync is None else intention.in_sync
    if reassignment.is_complete(in_sync):
        in_sync = without(in_sync, reassignment.removing)
        reassignment = Reassignment(reassignment.target, (), ())
    replicas = reassignment.replicas
    eligible: Replicas = ()
    if rules.may_have_eligible_leaders(in_sync, replicas):
        kept = {*partition.in_sync_replicas, *partition.eligible_leader_replicas}.difference(
            in_sync, intention.unclean_shutdowns
        )
        eligible = tuple(replica for replica in replicas if replica in kept)
    if not rules.keeps_eligible_leaders and not in_sync and not partition.in_sync_replicas:
        # The eligible leaders of level 1, of which one may lead now.
        in_sync = _last_in_sync(partition, replicas, intention.unclean_shutdowns)
    last_known_leader = _last_known_leader(partition) if rules.keeps_eligible_leaders else None
    candidates = Candidates(replicas, in_sync, eligible, last_known_leader)
    leader, is_unclean = elect(intention.election, partition.leader, candidates, rules.can_lead)
    if is_unclean:
        in_sync, eligible = (leader,), ()
    elif leader in eligible:
        in_sync, eligible = (leader,), without(eligible, (leader,))
        if not rules.has_too_few(in_sync, replicas):
            eligible = ()  # the leader may commit alone: the others lack what it will commit
    elif not rules.keeps_eligible_leaders and partition.leader == NO_LEADER != leader:
        in_sync = (leader,)  # the others of the last members may have lost records since
    elif not rules.keeps_eligible_leaders and not in_sync:
        in_sync = _last_in_sync(partition, replicas, intention.unclean_shutdowns)
    after = replace(
        partition,
        replicas=replicas,
        in_sync_replicas=in_sync,
        leader=leader,
        adding_replicas=reassignment.adding,
        removing_replicas=reassignment.removing,
        eligible_leader_replicas=eligible,
        last_known_eligible_leader_replicas=_next_last_known(partition, leader) if rules.keeps_eligible_leaders else (),
    )
    if after == partition:
        return None
    # A replica that was removed must not be able to fetch with the current leader epoch.
    is_new_epoch = leader != partition.leader or not set(partition.replicas) <= set(replicas)
    return replace(
        after,
        leader_epoch=partition.leader_epoch + is_new_epoch,
        partition_epoch=partition.partition_epoch + 1,
    )


def _last_in_sync(partition: PartitionImage, replicas: Replicas, unclean_shutdowns: Collection[int]) -> Replicas:
    """Without eligible leaders, an in-sync set that would be empty keeps its last members: one of them will lead. They
    are the eligible leaders, or the last known leader, if the set became empty while these were kept."""
    for last in (
        partition.in_sync_replicas,
        partition.eligible_leader_replicas,
        partition.last_known_eligible_leader_replicas,
    ):
        members = tuple(each for each in last if each in replicas)
        if members:
            return without(members, unclean_shutdowns) or members
    return ()


def _last_known_leader(partition: PartitionImage) -> int | None:
    """The only member of the set, which is kept for this purpose, as in Kafka."""
    last_known = partition.last_known_eligible_leader_replicas
    return last_known[0] if len(last_known) == 1 else None


def _next_last_known(partition: PartitionImage, leader: int) -> Replicas:
    if leader != NO_LEADER:
        return ()
    if partition.leader != NO_LEADER:
        return (partition.leader,)
    return partition.last_known_eligible_leader_replicas
