"""Which replicas of a partition are in sync, and how far its records are committed: the rules of the leader. Pure.

Invariants:
- The high watermark needs every replica of the union of the confirmed and the proposed set (KIP-497).
- A replica is proposed for the set only if it has all that is committed, has reached the start of the leader's epoch,
  and fetched under its current registration (KIP-903).
- Nothing is committed while the confirmed set is smaller than `min.insync.replicas`, or while the metadata has eligible
  leader replicas (KIP-966): one of them may be elected. Both are needed: the controller decides about eligible replicas
  by its own value of `min.insync.replicas`, and the leader may have another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.sentinels import NO_BROKER_EPOCH, NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NEVER_MS = float("-inf")


class FollowerProgress:
    """What the leader knows of one follower, from its fetches in the current leader epoch."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "fetch_offset",
        "last_fetch_ms",
        "leader_end_offset_at_last_fetch",
        "log_start_offset",
    )

    def __init__(self, caught_up_ms: float) -> None:
        """`caught_up_ms` is the present for a member of the in-sync set: it gets the whole lag time to fetch."""
        self.fetch_offset = NO_OFFSET
        """The follower has all records before it."""
        self.log_start_offset = NO_OFFSET
        self.broker_epoch = NO_BROKER_EPOCH
        self.caught_up_ms = caught_up_ms
        """The last time at which the follower had all that the leader had."""
        self.last_fetch_ms = NEVER_MS
        self.leader_end_offset_at_last_fetch = NO_OFFSET

    def record_fetch(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: float
    ) -> None:
        """A follower that has what the leader had at its previous fetch was caught up at that time: under load it is
        never at the end of the log."""
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif fetch_offset >= self.leader_end_offset_at_last_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.last_fetch_ms)
        self.fetch_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.last_fetch_ms = now_ms
        self.leader_end_offset_at_last_fetch = leader_end_offset

    def of_removed_replica(self) -> FollowerProgress:
        """The progress of a replica that has left the in-sync set: it joins again only by a later fetch. A replica on a
        failed log directory never fetches."""
        progress = FollowerProgress(NEVER_MS)
        progress.log_start_offset = self.log_start_offset
        return progress

    def is_silent(self, leader_end_offset: int, now_ms: float, silence_ms: float) -> bool:
        """Whether it has fetched nothing for this time, although records wait for it."""
        waits_since_ms = max(self.caught_up_ms, self.last_fetch_ms)
        return self.fetch_offset < leader_end_offset and now_ms - waits_since_ms > silence_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_time_max_ms: float) -> bool:
        return self.fetch_offset >= leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms


class InSyncReplicas:
    """The in-sync set of a partition as its leader sees it. `proposed` is None when no change is on its way."""

    __slots__ = ("confirmed", "eligible", "followers", "leader", "proposed")

    def __init__(
        self,
        leader: int,
        replicas: Iterable[int],
        confirmed: Iterable[int],
        now_ms: float,
        eligible: Iterable[int] = (),
    ) -> None:
        self.leader = leader
        self.confirmed = frozenset(confirmed)
        self.eligible = frozenset(eligible)
        self.proposed: frozenset[int] | None = None
        self.followers: dict[int, FollowerProgress] = {}
        self.set_replicas(replicas, now_ms)

    def set_replicas(self, replicas: Iterable[int], now_ms: float) -> None:
        """Progress that is known is kept; call it after `confirmed` was set."""
        known = self.followers
        self.followers = {
            each: known.get(each) or FollowerProgress(now_ms if each in self.confirmed else NEVER_MS)
            for each in replicas
            if each != self.leader
        }

    def confirm(self, in_sync: Iterable[int], eligible: Iterable[int] = ()) -> None:
        """The controller's decision, by its answer or by newer metadata. It ends a proposal. Replicas that have left
        the set must fetch again before they join."""
        left = self.confirmed.difference(in_sync)
        self.confirmed = frozenset(in_sync)
        self.eligible = frozenset(eligible)
        self.proposed = None
        for replica in left & self.followers.keys():
            self.followers[replica] = self.followers[replica].of_removed_replica()

    def propose(self, in_sync: frozenset[int]) -> None:
        assert self.proposed is None, "two changes of an in-sync set at the same time"
        assert self.leader in in_sync, "a leader proposed to leave the in-sync set"
        self.proposed = in_sync

    def withdraw(self) -> None:
        """The controller has not carried the proposal out, and never will."""
        self.proposed = None

    @property
    def maximal(self) -> frozenset[int]:
        """Every replica that may be in the set as the controller knows it."""
        return self.confirmed if self.proposed is None else self.confirmed | self.proposed

    def may_join(
        self, replica: int, high_watermark: int, epoch_start_offset: int, current_broker_epoch: int | None
    ) -> bool:
        """`current_broker_epoch` is that of the metadata; None for a broker that is not registered, or is fenced."""
        progress = self.followers.get(replica)
        return (
            progress is not None
            and replica not in self.maximal
            and progress.fetch_offset >= high_watermark
            and progress.fetch_offset >= epoch_start_offset
            and current_broker_epoch is not None
            and progress.broker_epoch == current_broker_epoch
        )

    def lagging(self, leader_end_offset: int, now_ms: float, lag_time_max_ms: float) -> frozenset[int]:
        """The confirmed members that have fallen behind for too long."""
        return frozenset(
            each
            for each, progress in self.followers.items()
            if each in self.confirmed and not progress.is_caught_up(leader_end_offset, now_ms, lag_time_max_ms)
        )

    def committed_offset(
        self,
        own_end_offset: int,
        leader_end_offset: int,
        now_ms: float,
        lag_time_max_ms: float,
        current_broker_epoch: Callable[[int], int | None],
    ) -> int:
        """How far every replica that is waited for has the log. `own_end_offset` is the leader's own part.

        The members of the maximal set are waited for, and replicas that are about to join it because they are caught
        up: without the latter a leader that commits alone would stay ahead of every fetch, and none could join."""
        maximal = self.maximal
        offset = own_end_offset
        for replica, progress in self.followers.items():
            if progress.fetch_offset >= offset:
                continue
            if replica in maximal or (
                progress.broker_epoch != NO_BROKER_EPOCH
                and progress.is_caught_up(leader_end_offset, now_ms, lag_time_max_ms)
                and progress.broker_epoch == current_broker_epoch(replica)
            ):
                offset = progress.fetch_offset
        return offset

    def leaves_eligible_set_empty(self, in_sync: Iterable[int]) -> bool:
        """Whether no replica is eligible after this set has replaced the confirmed one, because none has left it."""
        return not self.eligible and self.confirmed.issubset(in_sync)

    def has_too_few(self, min_in_sync: int) -> bool:
        """No more members are required than the partition has replicas: a topic with one replica on a broker with
        `min.insync.replicas=2` accepts records, as in Kafka."""
        return bool(self.eligible) or len(self.confirmed) < min(min_in_sync, len(self.followers) + 1)
