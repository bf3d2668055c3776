"""What a check of a broker's files has found, and what repair would do about it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array


class Remedy(enum.Enum):
    """What `odradek log repair` does about a finding, as printed."""

    NOTHING = "nothing to do: the broker handles it when it starts"
    CUT_TAIL = "cut off the incomplete batch at the end; its bytes are kept in {aside}"
    SALVAGE = "rewrite the segment with its intact batches; the damaged one is kept as {aside}"
    REBUILD = "rebuild the segment's indexes from its batches"
    SET_ASIDE = "rename it to {aside}; the broker works without it, or creates it again"
    ASK = "cannot be repaired: restore the file from a copy"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a file. `is_problem` is false for a note that needs no action."""

    path: str
    text: str
    remedy: Remedy
    is_problem: bool = True

    @property
    def aside(self) -> str:
        """The name under which a replaced file is kept. The broker ignores such names."""
        suffix = {Remedy.CUT_TAIL: ".tail", Remedy.SALVAGE: ".corrupt", Remedy.SET_ASIDE: ".aside"}[self.remedy]
        return self.path + suffix

    @property
    def remedy_text(self) -> str:
        text = self.remedy.value
        return text.format(aside=self.aside.rpartition("/")[2]) if "{aside}" in text else text


@dataclass(slots=True)
class SegmentCheck:
    """The result of reading one segment completely."""

    path: str
    base_offset: int
    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    next_offset: int = 0
    max_timestamp: int = -1
    markers: dict[int, int] = field(default_factory=dict)  # offset of an intact control batch -> its producer id
    producer_offsets: dict[int, array[int]] = field(default_factory=dict)  # last offsets of batches, by producer id
    leader_epochs: list[tuple[int, int, int]] = field(default_factory=list)
    """Each run of batches with one epoch: the epoch, its first and its last offset."""
    batch_offsets: dict[int, tuple[int, int]] = field(default_factory=dict)  # position -> first and last offset
    damaged: list[tuple[int, int]] = field(default_factory=list)  # ranges of positions without an intact batch
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class PartitionCheck:
    """The result of checking a partition, or a single segment of it."""

    path: str
    base_offsets: list[int] = field(default_factory=list)  # of all its segments, in order
    segments: list[SegmentCheck] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    snapshot_offsets: list[int] = field(default_factory=list)  # in order
    last_batches: dict[int, array[int]] = field(default_factory=dict)
    last_markers: dict[int, array[int]] = field(default_factory=dict)
    """By producer id, in order: the last offsets of its batches, and of its markers, before the end of each segment and
    before each producer snapshot. A snapshot needs no others."""

    def following_offset(self, segment: SegmentCheck) -> int | None:
        """The base offset of the segment after this one, which need not have been checked."""
        return next((offset for offset in self.base_offsets if offset > segment.base_offset), None)

    @property
    def all_findings(self) -> list[Finding]:
        return [*(each for segment in self.segments for each in segment.findings), *self.findings]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def records(self) -> int:
        return sum(segment.records for segment in self.segments)

    @property
    def end_offset(self) -> int | None:
        return self.segments[-1].next_offset if self.segments else None
