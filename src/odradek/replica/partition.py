"""One partition on this broker: its log, this broker's leadership of it, and its high watermark.

Invariants, asserted here and in `leadership`:
- One leader epoch has one leader, and metadata with an older leader epoch or partition epoch is refused
  (`become_leader`, `become_follower` and `resign` are the only ways to change leadership).
- With other replicas, the high watermark needs all that `followers` waits for; with one replica there are no followers.
- log start offset <= last stable offset <= high watermark <= log end offset.
- The high watermark rises only in `advance_high_watermark`, which alone wakes waiting fetches, acknowledgements of
  acks=all and the listeners of coordinators. It never decreases on a leader; a truncation lowers it on a follower.
- No transaction that begins before the last stable offset is open, and the markers of all of them are below the high
  watermark. So the last stable offset rises only with the high watermark, or with the log start, and never decreases on
  a leader.
- A record beyond `flush.messages` unflushed ones is committed, and so readable and acknowledged, only when it is
  durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.host.disk import is_refusal
from odradek.log.append_result import AppendResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.committed_log import CommittedLog
from odradek.replica.flushing import LogFlusher
from odradek.replica.follower_log import FollowerLog
from odradek.replica.followers import Followers
from odradek.replica.leadership import Leadership, LeadershipEpochs, LogState
from odradek.replica.replication_context import NoReplication

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.host.workers import DirectoryWorkers
    from odradek.log.batch_conversion import Conversion
    from odradek.log.log_config import LogConfig
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.metadata.entities import PartitionImage
    from odradek.protocol.control_records import EndTransactionMarker
    from odradek.replica.replication_context import ReplicationContext
    from odradek.replica.truncating import Truncations

ALL_IN_SYNC = -1  # acks=all

_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes longer than comparing with it


class OngoingMove(Protocol):
    """The part of a replica's move to another log directory that the partition and requests use."""

    target: LogDirectory
    is_cancelled: bool

    @property
    def is_copying(self) -> bool: ...

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""

    @property
    def size_bytes(self) -> int: ...


class Partition(CommittedLog):
    """Owned by the partition table; changed only by its own methods, never across an await."""

    __slots__ = (
        "_commits_alone",
        "_fail_directory",
        "_has_too_few_in_sync",
        "_leadership_listeners",
        "_replication",
        "_truncations",
        "_withdrawn_followers",
        "directory",
        "epoch_start_offset",
        "epochs",
        "flusher",
        "follower_log",
        "followers",
        "image",
        "index",
        "leader_epoch",
        "leadership",
        "move",
        "topic",
        "topic_id",
        "workers",
    )

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        index: int,
        log: PartitionLog,
        directory: LogDirectory,
        workers: DirectoryWorkers,
        fail_directory: Callable[[LogDirectory, OSError], None],
        truncations: Truncations[Partition],
        *,
        log_state: LogState = LogState.ONLINE,
        high_watermark: int = 0,
        replication: ReplicationContext | None = None,
    ) -> None:
        super().__init__(log, log_state, high_watermark)
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self._fail_directory = fail_directory
        self._use_log(log, directory, workers)
        self.move: OngoingMove | None = None  # to another log directory
        self._replication = replication or NoReplication()
        self.leadership = Leadership.NONE
        self.epochs = LeadershipEpochs()
        self.leader_epoch = self.epochs.leader_epoch
        self.image: PartitionImage | None = None  # the newest metadata that was applied
        self.followers: Followers | None = None  # of this leader
        self._withdrawn_followers: Followers | None = None
        self.epoch_start_offset = 0  # the log end when this broker began to lead in the leader epoch
        self._has_too_few_in_sync = False  # for acks=all, by `min.insync.replicas`
        self._commits_alone = False  # this broker leads the only replica
        self._truncations = truncations
        self.follower_log = FollowerLog(self)
        self._leadership_listeners: list[Callable[[], None]] = []

    def _use_log(self, log: PartitionLog, directory: LogDirectory, workers: DirectoryWorkers) -> None:
        self.log, self.directory, self.workers = log, directory, workers
        self.flusher = LogFlusher(
            log, workers.flushes, lambda problem: self._fail_directory(directory, problem), self._flush_ended
        )

    def exchange_log(self, log: PartitionLog, directory: LogDirectory, workers: DirectoryWorkers) -> None:
        """Continue with a copy of the log in another log directory: the same records, producers and epochs."""
        assert log.log_end_offset == self.log.log_end_offset, "an incomplete copy replaced a log"
        assert not self.follower_log.is_truncating, "a log was replaced while it was truncated"
        self.flusher.disconnect()
        self._use_log(log, directory, workers)
        self.follower_log.follow_exchange()

    @property
    def partition_epoch(self) -> int:
        return self.epochs.partition_epoch

    # Leadership

    def become_leader(self, image: PartitionImage) -> ErrorCode:
        """Lead in the image's leader epoch, with its in-sync replicas. An epoch begins at the log end.

        FENCED_LEADER_EPOCH or INVALID_UPDATE_VERSION, and no change, when the image has an older epoch."""
        assert not self.follower_log.is_truncating, "a partition became the leader while its log was truncated"
        withdrawn, self._withdrawn_followers = self._withdrawn_followers, None
        is_resumed = withdrawn is not None and withdrawn.leader_epoch == image.leader_epoch
        is_new_epoch = image.leader_epoch > self.leader_epoch or not (self.is_leader or is_resumed)
        refusal = self._apply(image, Leadership.LEADER)
        if refusal is _NONE and self.is_leader:
            if is_new_epoch:
                self.epoch_start_offset = self.log.log_end_offset
                self.log.leader_epochs.assign(image.leader_epoch, self.epoch_start_offset)
                self.replica_watches.wake()  # fetches that wait were sent in an older epoch
            if is_resumed:
                self.followers = withdrawn
            self._update_followers(image, is_new_epoch)
            if is_resumed and self.followers is not None:
                self.followers.resume()
            self._advance_as_leader()
            self.check_acknowledgements()
        return refusal

    def _update_followers(self, image: PartitionImage, is_new_epoch: bool) -> None:
        self._commits_alone = len(image.replicas) == 1
        if self._commits_alone:
            self.followers = None
        elif self.followers is None or is_new_epoch:
            self.followers = Followers(self, image, self.epoch_start_offset, self._replication)
        else:
            self.followers.update(image)
        self._has_too_few_in_sync = self.followers is not None and self.followers.has_too_few

    def become_follower(self, image: PartitionImage) -> ErrorCode:
        """Follow the image's leader. Refusals as for `become_leader`."""
        return self._apply(image, Leadership.FOLLOWER)

    def resign(self, image: PartitionImage) -> ErrorCode:
        """Neither lead nor follow: the partition has no leader. Refusals as for `become_leader`."""
        return self._apply(image, Leadership.NONE)

    def withdraw(self) -> None:
        """Neither lead nor follow, until metadata is applied again: the newest could not be applied completely. If it
        leads in the same leader epoch then, what it has proposed to the controller may have been carried out."""
        self._withdrawn_followers = self.followers or self._withdrawn_followers
        self.leadership = Leadership.NONE
        self._update_is_leader()

    def _apply(self, image: PartitionImage, leadership: Leadership) -> ErrorCode:
        refusal = self.epochs.refusal(image)
        if refusal is _NONE:
            self.epochs.advance(image)
            self.image = image
            self.leader_epoch = image.leader_epoch
            self.leadership = leadership
            self._update_is_leader()
        return refusal

    def _update_is_leader(self) -> None:
        """Requests that wait here are answered when this broker stops leading."""
        was_leader, self.is_leader = self.is_leader, self.is_online and self.leadership is Leadership.LEADER
        if not self.is_leader and (was_leader or self.waiting_fetches):  # followers have waiting fetches too
            self.wake_waiting_fetches()
        if was_leader and not self.is_leader:
            self._commits_alone, self.followers = False, None
            self.check_acknowledgements()
        if was_leader != self.is_leader:
            for listener in tuple(self._leadership_listeners):
                listener()

    def on_leadership(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener after each change of `is_leader`, until the returned function is called."""
        self._leadership_listeners.append(listener)
        return lambda: self._leadership_listeners.remove(listener)

    def retire(self) -> None:
        """The partition is removed from this broker."""
        self.log_state = LogState.RETIRED
        self._update_is_leader()

    def fail(self) -> None:
        """The log directory failed."""
        if self.is_online:
            self.log_state = LogState.FAILED
            self._update_is_leader()

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """KIP-320: a client with older metadata is fenced, one with newer metadata must retry until it reaches us."""
        if not self.is_leader:
            return self.absence
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return _NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    # The high watermark

    def _advance_as_leader(self) -> None:
        """The leader's own part in the high watermark: its log end, or what is durable if `flush.messages` is reached.
        A flush is begun in that case, and its end leads here again. Without followers only a single replica commits."""
        if self.followers is None and not self._commits_alone:
            return
        end_offset = self.log.log_end_offset
        if self.must_flush:
            end_offset = self.log.recovery_point_offset
            self.flusher.begin()
        before, followers = self.high_watermark, self.followers
        self.advance_high_watermark(end_offset if followers is None else followers.committed_offset(end_offset))
        if self.high_watermark != before and followers is not None:
            self.replica_watches.move(wakes=self._replication.serves_consumers_from_followers)

    def commit_replicated(self) -> None:
        """A follower has made progress, or is not waited for any more."""
        if self.is_leader:
            self._advance_as_leader()

    def _flush_ended(self, problem: BaseException | None) -> None:
        if not self.is_leader:
            return
        if problem is None:
            self._advance_as_leader()
        else:  # the next append or round of housekeeping tries again
            for each in tuple(self.waiting_acknowledgements):
                each.fail(problem)

    def acknowledgement(self, required_offset: int) -> ErrorCode | None:
        """The answer to an append with acks=all; None while it must wait for the high watermark."""
        if not self.is_leader:
            return self.absence
        if self._has_too_few_in_sync:  # nothing is committed until there are enough
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return None if self.high_watermark < required_offset else _NONE

    # Appending

    def append(
        self,
        batch: memoryview,
        acks: int,
        *,
        is_built_here: bool = False,
        verification: VerificationGuard | None = None,
        conversion: Conversion | None = None,
    ) -> AppendResult:
        """Like `PartitionLog.append`. The batch is committed at once if no other replica and no flush is awaited."""
        if not self.is_leader:
            return AppendResult(self.absence)
        if acks == ALL_IN_SYNC and self._has_too_few_in_sync:
            return AppendResult(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        size_before = log.size_bytes
        try:
            result = log.append(batch, self.leader_epoch, is_built_here, verification, conversion)
        except OSError as problem:
            self.report_failure(problem)
            raise
        if result.error is _NONE:
            end_offset = log.log_end_offset
            if not self._commits_alone or end_offset - log.recovery_point_offset >= log.config.flush_messages:
                self._advance_after_append(result.base_offset, log.size_bytes - size_before)
            elif self.waiting_fetches and result.base_offset == self.high_watermark:
                # The size as it is stored, which may be in another codec.
                self.advance_high_watermark(end_offset, log.size_bytes - size_before)
            else:
                self.advance_high_watermark(end_offset)
        return result

    def append_marker(self, marker: EndTransactionMarker, *, transaction_version: int) -> AppendResult:
        """End a transaction, with acks=all. The last stable offset moves when the high watermark passes the marker."""
        if not self.is_leader:
            return AppendResult(self.absence)
        if self._has_too_few_in_sync:
            return AppendResult(ErrorCode.NOT_ENOUGH_REPLICAS)
        size_before = self.log.size_bytes
        try:
            result = self.log.append_marker(marker, self.leader_epoch, transaction_version=transaction_version)
        except OSError as problem:
            self.report_failure(problem)
            raise
        if result.error is _NONE:
            self._advance_after_append(result.base_offset, self.log.size_bytes - size_before)
        return result

    def _advance_after_append(self, base_offset: int, size_bytes: int) -> None:
        """Nothing was appended, and the size is 0, if the batch is a duplicate."""
        if self.followers is not None and size_bytes:
            self.followers.record_append(base_offset)
            self.replica_watches.append(size_bytes)
        self._advance_as_leader()

    @property
    def must_flush(self) -> bool:
        """Whether `flush.messages` asks for an fsync before the newest records may be committed."""
        log = self.log
        return log.log_end_offset - log.recovery_point_offset >= log.config.flush_messages

    def configure(self, config: LogConfig) -> None:
        self.log.configure(config)
        if self.is_leader:
            self._has_too_few_in_sync = self.followers is not None and self.followers.has_too_few
            self._advance_as_leader()  # `flush.messages` may have been raised
            self.check_acknowledgements()

    # Removing

    def report_truncation(self, offset: int) -> None:
        self._truncations.begin(self, offset)

    async def finish_truncation(self) -> None:
        await self._truncations.end(self)

    def delete_records_before(self, offset: int) -> ErrorCode:
        """Move the log start offset; records beyond the high watermark cannot be deleted."""
        if not self.is_leader:
            return self.absence
        if offset > self.high_watermark or offset < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if offset > self.log.log_start_offset:
            self.log.advance_log_start_offset(offset)
            self.replica_watches.move(wakes=False)
        return _NONE

    # Failures

    def report_failure(self, problem: OSError) -> None:
        """A write failed. A full disk can have room again later; any other failure fails the log directory."""
        if not is_refusal(problem):
            self._fail_directory(self.directory, problem)

    def fail_directory(self, problem: OSError) -> None:
        """Whatever the error is: the state on the disk is unknown until a restart reads it."""
        self._fail_directory(self.directory, problem)
