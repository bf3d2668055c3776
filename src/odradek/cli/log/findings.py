"""What a check of a broker's files has found, and what repair would do about it."""

from __future__ import annotations

import enum
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.dataclass import dataclass
from odradek.log.leader_epochs import LeaderEpochs, decode_leader_epochs
from odradek.log.producer_snapshot import decode_snapshot
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_PRODUCER_ID

if TYPE_CHECKING:
    from odradek.log.producer_entry import ProducerEntry
    from odradek.protocol.batch import BatchHeader

_NO_OFFSETS = array("q")


class Remedy(enum.Enum):
    """What `odradek log repair` does about a finding, as printed."""

    NOTHING = "nothing to do: the broker handles it when it starts"
    CUT_TAIL = "cut off the incomplete batch at the end; its bytes are kept in {aside}"
    SALVAGE = "rewrite the segment with its intact batches; the damaged one is kept as {aside}"
    REBUILD = "rebuild the segment's indexes from its batches"
    SET_ASIDE = "rename it to {aside}; the broker works without it, or creates it again"
    ASK = "cannot be repaired: restore the file from a copy"


class Finding(NamedTuple):
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

    def add_damage(self, position: int, end: int, problem: str) -> None:
        self.damaged.append((position, end))
        self.findings.append(Finding(self.path, f"position {position}: {problem}", Remedy.SALVAGE))


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


def note_batch(check: SegmentCheck, header: BatchHeader) -> None:
    """Remember what other files say about an intact batch."""
    epoch, last_offset = header.partition_leader_epoch, header.last_offset
    if check.leader_epochs and check.leader_epochs[-1][0] == epoch:
        check.leader_epochs[-1] = (epoch, check.leader_epochs[-1][1], last_offset)
    else:
        check.leader_epochs.append((epoch, header.base_offset, last_offset))
    if header.is_control:
        check.markers[header.base_offset] = header.producer_id
    elif header.producer_id != NO_PRODUCER_ID:
        check.producer_offsets.setdefault(header.producer_id, array("q")).append(last_offset)


def add_segment(check: PartitionCheck, segment: SegmentCheck) -> None:
    """Add the next segment in order. Of its batches, which may be millions, those are kept that snapshots need."""
    check.segments.append(segment)
    first_inside = bisect_right(check.snapshot_offsets, segment.base_offset)
    first_behind = bisect_left(check.snapshot_offsets, segment.next_offset)
    ends = [*check.snapshot_offsets[first_inside:first_behind], segment.next_offset]
    markers: dict[int, array[int]] = {}
    for offset, producer_id in segment.markers.items():
        markers.setdefault(producer_id, array("q")).append(offset)
    for found, kept in ((segment.producer_offsets, check.last_batches), (markers, check.last_markers)):
        for producer_id, offsets in found.items():
            last = (_last_before(offsets, end) for end in ends)
            kept.setdefault(producer_id, array("q")).extend(offset for offset in last if offset is not None)
    for facts in (segment.producer_offsets, segment.markers, segment.batch_offsets):
        facts.clear()


def _last_before(offsets: array[int], end_offset: int) -> int | None:
    count = bisect_left(offsets, end_offset)
    return offsets[count - 1] if count else None


def compare_leader_epochs(data: bytes, check: PartitionCheck, *, is_complete: bool) -> None:
    """Raises MalformedMessage. The file may lack the last epochs unless `is_complete`."""
    epochs = LeaderEpochs(decode_leader_epochs(data))
    first_offset = epochs.entries[0].start_offset if epochs.entries else 0
    for epoch, *offsets in (each for segment in check.segments for each in segment.leader_epochs):
        if epoch < 0 or (epoch > epochs.latest_epoch and not is_complete):
            continue
        for offset in offsets:
            if offset >= first_offset and epochs.epoch_at(offset) != epoch:
                raise MalformedMessage(f"offset {offset} is of leader epoch {epoch}, not {epochs.epoch_at(offset)}")


def compare_snapshot(data: bytes, end_offset: int, check: PartitionCheck) -> None:
    """Raises MalformedMessage. Present batches decide: others may be compacted away, and producers forgotten."""
    for producer_id, entry in decode_snapshot(data, end_offset):
        problem = _problem_of(producer_id, entry, end_offset, check)
        if problem:
            raise MalformedMessage(problem)


def _problem_of(producer_id: int, entry: ProducerEntry, end_offset: int, check: PartitionCheck) -> str | None:
    last_offset = entry.batches[-1].last_offset if entry.batches else None
    first_offset = entry.current_txn_first_offset
    batch = _last_before(check.last_batches.get(producer_id, _NO_OFFSETS), end_offset)
    if batch is not None and last_offset is not None and batch > last_offset:
        return f"it lacks offset {batch} of producer {producer_id}"
    marker = _last_before(check.last_markers.get(producer_id, _NO_OFFSETS), end_offset)
    if marker is not None and 0 <= first_offset < marker:
        return f"its transaction of producer {producer_id} from offset {first_offset} on has ended"
    return None
