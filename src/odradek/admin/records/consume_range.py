"""The range of offsets that `odradek consume` reads of each partition, found before the first record is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.conventions.figures import offset_range_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to start. At most one field is set; if none is, reading starts at the end."""

    from_beginning: bool = False
    from_time_ms: int | None = None
    offset: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Records from `start_offset`. `end_offset` is the end of the partition when the range was found."""

    partition: int
    start_offset: int
    end_offset: int


def find_ranges(cluster: Cluster, topic: str, partitions: Sequence[int], start: Start) -> list[PartitionRange]:
    """Range of each partition; Failure for an offset that no partition holds."""
    earliest = cluster.earliest_offsets(topic, partitions)
    latest = cluster.latest_offsets(topic, partitions)
    if start.from_time_ms is not None:
        starts = cluster.first_offsets(topic, start.from_time_ms, earliest, latest)
    elif start.offset is not None:
        starts = dict.fromkeys(partitions, start.offset)
        check_offset(topic, start.offset, earliest, latest)
    elif start.last is not None:
        starts = {partition: max(earliest[partition], latest[partition] - start.last) for partition in partitions}
    else:
        starts = earliest if start.from_beginning else latest
    return [
        PartitionRange(
            partition, min(max(starts[partition], earliest[partition]), latest[partition]), latest[partition]
        )
        for partition in partitions
    ]


def check_offset(topic: str, offset: int, earliest: dict[int, int], latest: dict[int, int]) -> None:
    """Failure unless some partition holds the offset or ends there. The others start at their nearest offset."""
    if not any(earliest[partition] <= offset <= latest[partition] for partition in earliest):
        held = "; ".join(f"partition {p}: {offset_range_text(earliest[p], latest[p])}" for p in sorted(earliest))
        raise Failure(f"topic {topic} has no offset {offset} ({held})")
