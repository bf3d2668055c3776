"""One partition that this broker follows: where it fetches next, and what it does with the leader's answer."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import PartitionData
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET
from odradek.replica.fetch_request_session import FetchPosition, PartitionKey
from odradek.replica.leadership import Leadership
from odradek.replica.truncation_point import find_truncation_point

if TYPE_CHECKING:
    from odradek.replica.partition import Partition

log = get_logger(__name__)

FIRST_PAUSE_MS = 20.0  # after an error: a leader that has not applied the newest metadata has it soon


class Next(enum.Enum):
    """What follows from the leader's answer."""

    FETCH = "fetch from the log end"
    PAUSE = "fetch again after a pause"
    TRUNCATE = "truncate the log to an offset, then fetch"
    RESTART = "remove all records, continue at an offset and append the answer"
    FIND_RANGE = "ask the leader for its first and last offset"


class Step(NamedTuple):
    """`answer` has a copy of the records, because the receive buffer is used again while the log is truncated."""

    next: Next
    offset: int = NO_OFFSET
    answer: PartitionData | None = None


FETCH, PAUSE, FIND_RANGE = Step(Next.FETCH), Step(Next.PAUSE), Step(Next.FIND_RANGE)


# The metadata has reached this broker and the leader at different times; the next fetches agree.
_OTHER_METADATA = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class FollowedPartition:
    """`leader_epoch` is the one in which it was given to its fetcher."""

    __slots__ = ("_last_error", "_pause_ms", "is_busy", "key", "leader_epoch", "not_before_ms", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key = PartitionKey(partition.topic_id, partition.index)
        self.leader_epoch = partition.leader_epoch
        self.is_busy = False
        """Its log is being truncated, or the range of the leader's log is asked for."""
        self.not_before_ms = 0.0
        self._pause_ms = FIRST_PAUSE_MS
        self._last_error = ErrorCode.NONE

    @property
    def is_following(self) -> bool:
        """Whether the leadership that it was given to the fetcher for lasts, and the log can be used."""
        partition = self.partition
        return (
            partition.leadership is Leadership.FOLLOWER
            and partition.leader_epoch == self.leader_epoch
            and partition.is_online
        )

    def position(self, max_bytes: int) -> FetchPosition:
        log_ = self.partition.log
        end_offset = log_.log_end_offset
        return FetchPosition(
            end_offset,
            self.leader_epoch,
            log_.leader_epochs.epoch_at(end_offset - 1) if end_offset > log_.log_start_offset else NO_EPOCH,
            log_.log_start_offset,
            max_bytes,
        )

    def pause(self, now_ms: float, longest_ms: float) -> None:
        """Longer each time, until an answer brings no error."""
        self.not_before_ms = now_ms + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, max(longest_ms, FIRST_PAUSE_MS))

    def take(self, data: PartitionData, sent: FetchPosition) -> Step:
        """Append what the leader answered to a request from this position. The leader epoch of the request is checked
        here: an answer to a request of an earlier epoch describes another log."""
        log_ = self.partition.log
        if not self.is_following or sent.leader_epoch != self.leader_epoch or self.is_busy:
            return FETCH
        if sent.fetch_offset != log_.log_end_offset:
            return FETCH
        error = data.error_code
        if error != ErrorCode.NONE:
            return self._take_error(ErrorCode(error))
        self._last_error, self._pause_ms = ErrorCode.NONE, FIRST_PAUSE_MS
        diverging = data.diverging_epoch
        if diverging.end_offset != NO_OFFSET:
            offset = find_truncation_point(
                log_.leader_epochs, log_.log_end_offset, diverging.epoch, diverging.end_offset
            )
            return Step(Next.TRUNCATE, offset)
        return self._append(data)

    def _append(self, data: PartitionData) -> Step:
        follower_log, log_ = self.partition.follower_log, self.partition.log
        records = data.records
        if records:
            try:
                result = follower_log.append(memoryview(records))  # type: ignore[arg-type]  # no slices in a response
            except OSError as problem:
                self._report("records of the leader could not be appended", str(problem))
                return PAUSE
            if result.error is ErrorCode.OFFSET_OUT_OF_RANGE and self._begins_within(result.refused_base_offset):
                if log_.log_start_offset < log_.log_end_offset:
                    return Step(Next.TRUNCATE, result.refused_base_offset)
                return Step(Next.RESTART, result.refused_base_offset, _with_own_records(data))
            if result.error is not ErrorCode.NONE:
                self._report("records of the leader were refused", result.error.name)
                return PAUSE
        follower_log.follow_offsets(data.high_watermark, data.log_start_offset)
        if data.log_start_offset > log_.log_end_offset:  # the leader has deleted all that this log has
            return FIND_RANGE
        return FETCH

    def append_after_restart(self, answer: PartitionData) -> None:
        """It cannot be fetched again from the start of its first batch, which is before the leader's log start."""
        if self.is_following:
            self._append(answer)

    def _begins_within(self, base_offset: int) -> bool:
        """A log without batches continues in the middle of a batch, which it must have whole: the leader's log starts
        there, because records before it were deleted, or this log was truncated in a gap that compaction has left."""
        log_ = self.partition.log
        is_empty = log_.log_start_offset == log_.log_end_offset or log_.size_bytes == 0
        return is_empty and base_offset < log_.log_end_offset

    def _take_error(self, error: ErrorCode) -> Step:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return FIND_RANGE
        if error is not self._last_error:
            self._last_error = error
            if error not in _OTHER_METADATA:
                self._report("the leader refused a fetch", error.name)
        return PAUSE

    def report_truncation(self, offset: int) -> None:
        """Below the high watermark it removes records that were committed, which only an unclean election causes."""
        partition = self.partition
        report = log.warning if offset < partition.high_watermark else log.info
        report(
            "a follower truncates its log", topic=partition.topic, partition=partition.index, offset=offset,
            log_end_offset=partition.log.log_end_offset, high_watermark=partition.high_watermark,
        )  # fmt: skip

    def _report(self, event: str, reason: str) -> None:
        partition = self.partition
        log.warning(
            event, topic=partition.topic, partition=partition.index, leader_epoch=self.leader_epoch, reason=reason
        )


def _with_own_records(data: PartitionData) -> PartitionData:
    return PartitionData(
        high_watermark=data.high_watermark,
        log_start_offset=data.log_start_offset,
        records=memoryview(bytes(data.records)),  # type: ignore[arg-type]  # no slices in a response
    )
