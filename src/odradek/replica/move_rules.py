"""The rules of moving a replica to another log directory of its broker. Pure.

A copy, Kafka's future log, is brought up to the log while the log serves. Batches below the copy's end are those of the
log: every truncation of the log is repeated on the copy before more is copied. The copy replaces the log when both end
at the same offset and begin at the same offset."""

from __future__ import annotations

import enum
from typing import NamedTuple


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


class LogEnd(NamedTuple):
    leader_epoch: int  # of the last batch
    end_offset: int


def keeps_moved_copy(moved: LogEnd, original: LogEnd) -> bool:
    """After a crash that left both copies: the moved one has replaced the original, which got no more records. If the
    crash lost its newest records, the original has them. A moved copy that ends earlier because it followed another
    leader has a later leader epoch."""
    return moved >= original
