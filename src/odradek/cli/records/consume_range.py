"""Where `odradek consume` starts in each partition and where it stops, worked out before the first record is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.cli.framework.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.cli.client.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to start: exactly one of these is set; none of them means the end."""

    from_beginning: bool = False
    from_time_ms: int | None = None
    offset: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Records from `start_offset`; `end_offset` is where the partition ended when we looked."""

    partition: int
    start_offset: int
    end_offset: int


def chosen_partitions(cluster: Cluster, topic: str, wanted: Sequence[int]) -> list[int]:
    """The partitions to read: those asked for, or all; Failure for one that does not exist."""
    existing = sorted(partition.id for partition in cluster.describe_topic(topic).partitions)
    missing = sorted(set(wanted) - set(existing))
    if missing:
        raise Failure(f"topic {topic} has no partition {missing[0]}; it has 0 to {existing[-1]}")
    return sorted(set(wanted)) or existing


def find_ranges(cluster: Cluster, topic: str, partitions: Sequence[int], start: Start) -> list[PartitionRange]:
    """Where each partition starts and ends; Failure for an offset that no partition holds."""
    earliest = cluster.earliest_offsets(topic, partitions)
    latest = cluster.latest_offsets(topic, partitions)
    if start.from_time_ms is not None and start.from_time_ms < 0:
        starts = earliest  # before 1970 nothing was written; the protocol gives negative times meanings of their own
    elif start.from_time_ms is not None:
        by_time = cluster.offsets_at(topic, partitions, start.from_time_ms)
        starts = {partition: latest[partition] if at < 0 else at for partition, at in by_time.items()}
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
    """Some partition must hold the offset, or end there; the others start at their nearest one."""
    if not any(earliest[partition] <= offset <= latest[partition] for partition in earliest):
        held = ", ".join(f"partition {p} holds {earliest[p]} to {latest[p]}" for p in sorted(earliest))
        raise Failure(f"topic {topic} has no offset {offset}: {held}")
