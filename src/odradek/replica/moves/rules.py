"""The rules of moving a replica to another log directory of its broker. Pure.

A copy, Kafka's future log, is brought up to the log while the log serves. Batches below the copy's end are those of the
log: every truncation of the log is repeated on the copy before more is copied. The copy replaces the log when both end
at the same offset and begin at the same offset."""

from __future__ import annotations

import enum
from typing import NamedTuple

LARGEST_LAG_RATIO = 0.9  # of a round to that of the round before, for a copy that catches up


class OffsetRange(NamedTuple):
    start_offset: int
    end_offset: int


class StepKind(enum.Enum):
    TRUNCATE = enum.auto()  # the copy ends at `offset`, or before the batch that holds it
    RESTART = enum.auto()  # the copy is empty, and continues at `offset`
    ADVANCE_START = enum.auto()  # the copy begins at `offset`
    COPY = enum.auto()  # batches from the one that holds `offset` on
    EXCHANGE = enum.auto()  # the copy replaces the log


class Step(NamedTuple):
    kind: StepKind
    offset: int


def next_step(copy: OffsetRange, log: OffsetRange, truncated_to: int | None) -> Step:
    """`truncated_to` is the lowest offset that the log was truncated to since the copy was last truncated."""
    if truncated_to is not None and truncated_to < copy.end_offset:
        return Step(StepKind.TRUNCATE, truncated_to)
    if copy.end_offset > log.end_offset:
        return Step(StepKind.TRUNCATE, log.end_offset)
    if copy.end_offset < log.start_offset == log.end_offset:
        return Step(StepKind.RESTART, log.end_offset)
    if copy.start_offset < log.start_offset <= copy.end_offset:
        return Step(StepKind.ADVANCE_START, log.start_offset)
    if copy.end_offset < log.end_offset:
        return Step(StepKind.COPY, max(copy.end_offset, log.start_offset))
    return Step(StepKind.EXCHANGE, log.end_offset)


def must_restart(copy: OffsetRange, log: OffsetRange, base_offset: int) -> bool:
    """Whether the copy must continue at the base offset of the next batch of the log, because records between were
    deleted from the log. A compacted log has gaps too, which a copy takes over as they are."""
    return copy.end_offset < log.start_offset and copy.end_offset != base_offset


class CatchUp:
    """How a copy approaches the end of its log. A round ends when the copy has what the log had at its beginning."""

    __slots__ = ("_goal_offset", "_lag", "falls_behind", "is_near")

    def __init__(self) -> None:
        self._goal_offset = 0
        self._lag = float("inf")  # of the copy, when the round began
        self.is_near = False  # one chunk was all that the copy missed
        self.falls_behind = False  # the log grows about as fast as it is copied

    def note_chunk(self, copy_end_offset: int, log_end_offset_before: int, log_end_offset: int) -> None:
        """A chunk was copied. `log_end_offset_before` is that of the time before it was read."""
        if copy_end_offset >= log_end_offset_before:
            self.is_near = True
        if copy_end_offset >= self._goal_offset:
            lag = log_end_offset - copy_end_offset
            self.falls_behind = lag > LARGEST_LAG_RATIO * self._lag
            self._goal_offset, self._lag = log_end_offset, lag


class LogEnd(NamedTuple):
    leader_epoch: int  # of the last batch
    end_offset: int


def keeps_moved_copy(moved: LogEnd, original: LogEnd) -> bool:
    """After a crash that left both copies: the moved one has replaced the original, which got no more records. If the
    crash lost its newest records, the original has them. A moved copy that ends earlier because it followed another
    leader has a later leader epoch."""
    return moved >= original
