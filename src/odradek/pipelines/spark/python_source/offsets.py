"""Offsets of a stream in the checkpoint format of Spark's connector: `{topic: {partition: offset}}`.

Pure functions. An offset is that of the next record to read. A stream without offsets has not started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of a partition from `first` up to, but not including, `end`."""

    partition: Partition
    first: int
    end: int


def to_json(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(offsets.items()):
        found.setdefault(partition.topic, {})[str(partition.number)] = offset
    return found


def from_json(found: Mapping[str, Mapping[str, Any]]) -> dict[Partition, int]:
    return {
        Partition(topic, int(number)): int(offset) for topic, each in found.items() for number, offset in each.items()
    }


def planned_ranges(start: Mapping[Partition, int], end: Mapping[Partition, int]) -> list[OffsetRange]:
    """The ranges that a batch reads, the same each time it is planned. The first batch of a stream reads nothing.

    A partition that was added later is read from its first record.
    """
    if not start:
        return []
    spans = ((partition, start.get(partition, 0), until) for partition, until in sorted(end.items()))
    return [OffsetRange(partition, first, until) for partition, first, until in spans if until > first]


def limited_end_offsets(
    start: Mapping[Partition, int], latest: Mapping[Partition, int], most: int | None
) -> dict[Partition, int]:
    """The end offsets of the next batch, with a record limit that is shared in proportion to each partition's backlog.

    A partition that is missing in one lookup keeps its offset; otherwise it would be read from the start again.
    """
    waiting = {partition: max(until - start.get(partition, 0), 0) for partition, until in latest.items()}
    total = sum(waiting.values())
    if most is None or total <= most:
        return {**start, **latest}
    left = most
    ends = dict(start)
    for partition, count in sorted(waiting.items(), key=lambda each: (each[1], each[0])):
        share = min(count, left, -(-count * most // total))  # rounded up, so that a small partition does not starve
        left -= share
        ends[partition] = start.get(partition, 0) + share if count else latest[partition]
    return ends


def losses(start: Mapping[Partition, int], latest: Mapping[Partition, int]) -> list[str]:
    """Reasons why records are lost: a partition that is gone, or that ends before the stream's offset."""
    gone = [f"{partition} does not exist" for partition in sorted(start) if partition not in latest]
    return gone + [
        f"{partition} ends at offset {latest[partition]}, but the stream is at offset {offset}"
        for partition, offset in sorted(start.items())
        if partition in latest and latest[partition] < offset
    ]


def loss_message(reasons: Iterable[str]) -> str:
    return (
        f"records may have been lost: {'; '.join(reasons)}. A topic was recreated, or its records were deleted before "
        "they were read. Reset the checkpoint to start over, or continue with "
        "on_data_loss: skip in the source"
    )
