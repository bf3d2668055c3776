"""The followers of one partition that this broker leads: their progress, changes of the in-sync set, and how far the
records are committed. `in_sync_replicas` has the rules; a partition with one replica has no `Followers`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from odradek.controller.decisions.in_sync_sets import InSyncProposal
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_BROKER_EPOCH
from odradek.replica.in_sync_replicas import NEVER_MS, InSyncReplicas

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.controller.decisions.in_sync_sets import InSyncResult
    from odradek.log.partition_log import PartitionLog
    from odradek.metadata.entities import PartitionImage
    from odradek.replica.replica_watch import ReplicaWatches
    from odradek.replica.replication_context import ReplicationContext

PAUSE_AFTER_REFUSAL_MS = 500.0  # the reason of a refusal lies in metadata that has not reached both sides

# The controller has not carried the proposal out, and never will.
_REFUSED = frozenset(
    {
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
# The metadata is newer than the proposal, which may have been carried out: newer metadata will arrive and decide.
_OUTDATED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class LeadingPartition(Protocol):
    """The part of a partition that is used here."""

    topic_id: UUID
    index: int
    log: PartitionLog
    high_watermark: int
    image: PartitionImage | None
    is_leader: bool
    followers: Followers | None
    replica_watches: ReplicaWatches

    def become_leader(self, image: PartitionImage) -> ErrorCode: ...

    def commit_replicated(self) -> None: ...


class Followers:
    """One leader epoch's view. `epoch_start_offset` was the log end when the epoch began."""

    __slots__ = (
        "_context",
        "_no_proposal_before_ms",
        "_partition",
        "_proposal",
        "_start_listeners",
        "epoch_start_offset",
        "in_sync",
        "leader_epoch",
        "partition_epoch",
    )

    def __init__(
        self, partition: LeadingPartition, image: PartitionImage, epoch_start_offset: int, context: ReplicationContext
    ) -> None:
        self._partition = partition
        self._context = context
        self._no_proposal_before_ms = NEVER_MS
        self._proposal: InSyncProposal | None = None
        self._start_listeners: list[Callable[[], None]] = []
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.epoch_start_offset = epoch_start_offset
        self.in_sync = InSyncReplicas(
            image.leader,
            image.replicas,
            image.in_sync_replicas,
            context.monotonic_ms(),
            image.eligible_leader_replicas,
        )

    def update(self, image: PartitionImage) -> None:
        """Newer metadata of the same leader epoch. It decides on a proposal: the controller refuses one that was made
        for older metadata. The same metadata again changes nothing."""
        assert image.leader_epoch == self.leader_epoch
        if image.partition_epoch > self.partition_epoch:
            self.partition_epoch = image.partition_epoch
            confirmed, in_sync = self.in_sync.confirmed, frozenset(image.in_sync_replicas)
            has_left = not confirmed <= in_sync
            if confirmed != in_sync:
                self._context.count_in_sync_change(left=len(confirmed - in_sync), joined=len(in_sync - confirmed))
            self.in_sync.confirm(image.in_sync_replicas, image.eligible_leader_replicas)
            self.in_sync.set_replicas(image.replicas, self._context.monotonic_ms())
            if has_left:
                self._partition.replica_watches.wake()  # fetches visit an idle partition only if it has changed
            if self.is_current and self.in_sync.proposed is None:
                self._propose_joining()  # one that caught up while another proposal was on its way

    # Progress

    def record_fetch(self, replica: int, fetch_offset: int, log_start_offset: int, broker_epoch: int) -> ErrorCode:
        """A follower has fetched in this leader epoch, so it has all records before `fetch_offset`. A fetch under an
        older registration of the broker is refused: it must not undo the progress of the newer one."""
        progress = self.in_sync.followers.get(replica)
        if progress is None or broker_epoch < progress.broker_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        log = self._partition.log
        now_ms = self._context.monotonic_ms()
        has_moved_start = log_start_offset != progress.log_start_offset
        progress.record_fetch(fetch_offset, log_start_offset, broker_epoch, log.log_end_offset, now_ms)
        if self.in_sync.proposed is None and replica not in self.in_sync.confirmed:
            self._propose_joining()
        self._partition.commit_replicated()
        if has_moved_start:
            for listener in tuple(self._start_listeners):
                listener()
        return ErrorCode.NONE

    def on_log_start(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener when a follower has reported another log start, until the returned function is called."""
        self._start_listeners.append(listener)
        return lambda: self._start_listeners.remove(listener)

    def record_append(self, base_offset: int) -> None:
        """The leader has appended a batch. Followers that had all before it were caught up until this moment: while
        nothing is appended, their fetches do not visit the partition."""
        now_ms = self._context.monotonic_ms()
        for progress in self.in_sync.followers.values():
            if progress.fetch_offset >= base_offset:
                progress.caught_up_ms = now_ms

    def committed_offset(self, own_end_offset: int) -> int:
        """How far the records are committed, or the present high watermark while too few replicas are in sync."""
        partition, context = self._partition, self._context
        if self.has_too_few:
            return partition.high_watermark
        return self.in_sync.committed_offset(
            own_end_offset,
            partition.log.log_end_offset,
            context.monotonic_ms(),
            context.lag_time_max_ms,
            context.broker_epoch,
        )

    @property
    def has_too_few(self) -> bool:
        return self.in_sync.has_too_few(self._partition.log.config.min_insync_replicas)

    def is_cut_off(self, silence_ms: float) -> bool:
        """Whether so many in-sync followers have been silent for this time, although records wait for them, that the
        others are too few. Either the controller removes them from the in-sync set, or this broker is cut off and
        another one may lead."""
        now_ms, end_offset = self._context.monotonic_ms(), self._partition.log.log_end_offset
        followers = [self.in_sync.followers[each] for each in self.in_sync.confirmed if each in self.in_sync.followers]
        reached = sum(not each.is_silent(end_offset, now_ms, silence_ms) for each in followers)
        return reached < len(followers) and reached + 1 < max(self._partition.log.config.min_insync_replicas, 2)

    @property
    def lowest_log_start_offset(self) -> int:
        """The smallest log start offset of the leader and its registered followers."""
        starts = [
            progress.log_start_offset
            for replica, progress in self.in_sync.followers.items()
            if self._context.broker_epoch(replica) is not None
        ]
        return min([self._partition.log.log_start_offset, *starts])

    # Changes of the in-sync set

    def check_in_sync(self) -> None:
        """At intervals, and after refusals: propose to remove replicas that lag or to add some, and commit records
        for which no other replica is awaited."""
        if not self.is_current:
            return
        in_sync, context = self.in_sync, self._context
        if in_sync.proposed is None:
            end_offset = self._partition.log.log_end_offset
            lagging = in_sync.lagging(end_offset, context.monotonic_ms(), context.lag_time_max_ms)
            if lagging:
                self._propose(in_sync.confirmed - lagging)
            else:
                self._propose_joining()
        self._partition.commit_replicated()

    def _propose_joining(self) -> None:
        in_sync, context = self.in_sync, self._context
        joining = frozenset(
            replica
            for replica in in_sync.followers
            if in_sync.may_join(
                replica, self._partition.high_watermark, self.epoch_start_offset, context.broker_epoch(replica)
            )
        )
        if joining:
            self._propose(in_sync.confirmed | joining)

    def _propose(self, in_sync: frozenset[int]) -> None:
        if self._context.monotonic_ms() < self._no_proposal_before_ms:
            return
        self.in_sync.propose(in_sync)
        members = tuple((replica, self._fetched_broker_epoch(replica)) for replica in sorted(in_sync))
        self._proposal = InSyncProposal(
            self._partition.topic_id, self._partition.index, self.leader_epoch, self.partition_epoch, members
        )
        self._context.request_in_sync(self)

    def _fetched_broker_epoch(self, replica: int) -> int:
        """The registration under which a member made the progress that is known of it: the present one for the leader,
        and for a follower that has not fetched in this leader epoch."""
        progress = self.in_sync.followers.get(replica)
        if progress is None or progress.broker_epoch == NO_BROKER_EPOCH:
            epoch = self._context.broker_epoch(replica)
            return NO_BROKER_EPOCH if epoch is None else epoch
        return progress.broker_epoch

    @property
    def is_current(self) -> bool:
        """Whether the leadership that this was made for lasts."""
        return self._partition.is_leader and self._partition.followers is self

    def proposal(self) -> InSyncProposal | None:
        """The proposal as it was decided, even if it is sent later or again: a member may have registered again since,
        without the records for which it was chosen. The controller detects that by its broker epoch (KIP-903)."""
        return None if self.in_sync.proposed is None or not self.is_current else self._proposal

    def resume(self) -> None:
        """The leadership was withdrawn and continues: the answer to a proposal may have been missed."""
        if self.in_sync.proposed is not None:
            self._context.request_in_sync(self)

    def resolve(self, proposal: InSyncProposal, result: InSyncResult) -> bool:
        """Carry out the controller's answer to a proposal. False if the same proposal must be sent again."""
        if not self.is_current or proposal.partition_epoch != self.partition_epoch or self.in_sync.proposed is None:
            return True
        if result.error is ErrorCode.NONE:
            self._take_confirmation(result)
        elif result.error in _REFUSED:
            self.in_sync.withdraw()
            self._no_proposal_before_ms = self._context.monotonic_ms() + PAUSE_AFTER_REFUSAL_MS
            self._context.check_in_sync_after(PAUSE_AFTER_REFUSAL_MS, self)  # fetches do not visit an idle partition
            self._partition.commit_replicated()
        elif result.error not in _OUTDATED:
            return False
        return True

    def _take_confirmation(self, result: InSyncResult) -> None:
        """The answer is applied as the metadata that follows it would be, unless replicas may be eligible after it: it
        does not name them, and nothing may be committed before they are known."""
        image = self._partition.image
        assert image is not None
        is_newer = result.leader_epoch == self.leader_epoch and result.partition_epoch > self.partition_epoch
        if is_newer and self.in_sync.leaves_eligible_set_empty(result.in_sync_replicas):
            self._partition.become_leader(
                replace(image, in_sync_replicas=result.in_sync_replicas, partition_epoch=result.partition_epoch)
            )
