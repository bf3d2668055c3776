"""From places on the disk to open logs: which partition lies in which directory, and what became of it. Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.log.partition_log import PartitionLog
from odradek.replica.offset_checkpoints import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.host.host import Host
    from odradek.log.log_config import LogConfig
    from odradek.log.log_directory import LogDirectory
    from odradek.metadata.image import MetadataImage, PartitionImage, TopicImage
    from odradek.protocol.topic_partition import TopicPartition

log = get_logger(__name__)


class Place(NamedTuple):
    """A partition whose log is to be opened, and what is known about it beforehand."""

    topic: TopicImage
    partition: PartitionImage
    directory: LogDirectory
    config: LogConfig
    recovery_point_offset: int = 0
    log_start_offset: int = 0
    problem: OSError | None = None  # why it could not be opened


def survey(
    image: MetadataImage, directories: Sequence[LogDirectory], config_of: Callable[[str], LogConfig]
) -> tuple[list[Place], bool]:
    """Where everything lies, and whether the checkpoints tell of partitions that are no more: if a topic of that name
    were made anew, they would be taken for its own after the next crash."""
    usable = [directory for directory in directories if directory.failure is None]
    failed = [directory for directory in directories if directory.failure is not None]
    known = _find_on_disk(image, usable)
    recovery_points = {directory: read_checkpoint(directory.recovery_points) for directory in usable}
    start_offsets = {directory: read_checkpoint(directory.log_start_offsets) for directory in usable}
    places = []
    for topic in image.topics.values():
        config = config_of(topic.name)
        for partition in topic.partitions:
            key = (topic.name, partition.index)
            # What is not found may lie in a directory that failed: it must not be begun anew elsewhere.
            at = known.get(key) or (failed or usable)[0]
            recovery_point_offset = recovery_points.get(at, {}).get(key, 0)
            log_start_offset = start_offsets.get(at, {}).get(key, 0)
            places.append(Place(topic, partition, at, config, recovery_point_offset, log_start_offset))
    told = {key for offsets_of in (recovery_points, start_offsets) for each in offsets_of.values() for key in each}
    return places, not told <= {(place.topic.name, place.partition.index) for place in places}


def _find_on_disk(image: MetadataImage, directories: Sequence[LogDirectory]) -> dict[TopicPartition, LogDirectory]:
    known = {}
    for directory in directories:
        for (name, index), path in directory.partitions().items():
            topic = image.topics.get(name)
            topic_id = directory.read_partition_metadata(name, index)
            is_known = topic is not None and index < len(topic.partitions) and topic_id in (None, topic.topic_id)
            if is_known:
                known[name, index] = directory
            else:
                aside = directory.set_aside(name, index)
                log.warning("unknown partition set aside", path=path, now=aside)
    return known


def open_logs(
    places: Sequence[Place], host: Host, is_new: bool
) -> tuple[list[tuple[Place, PartitionLog]], list[Place]]:
    """Those that could be opened, and those that could not: the first that fails and all after it, so that a topic's
    partitions are always the first ones without a gap."""
    opened: list[tuple[Place, PartitionLog]] = []
    for number, place in enumerate(places):
        try:
            opened.append((place, _open_log(place, host, is_new)))
        except OSError as problem:
            log.error(
                "a partition cannot be opened", topic=place.topic.name, partition=place.partition.index,
                directory=place.directory.path, reason=str(problem),
            )  # fmt: skip
            return opened, [place._replace(problem=problem), *places[number + 1 :]]
    return opened, []


def _open_log(place: Place, host: Host, is_new: bool) -> PartitionLog:
    directory, topic, index = place.directory, place.topic, place.partition.index
    path = directory.partition_directory(topic.name, index)
    if directory.failure is not None:
        return PartitionLog.unreachable(path, place.config, host)
    is_there = host.disk.exists(path)
    if is_there and is_new:
        # What is left of an older topic of this name must never be served as this one's records.
        log.warning("unknown partition set aside", path=path, now=directory.set_aside(topic.name, index))
        is_there = False
    host.disk.make_directories(path)
    if not is_there:
        directory.write_partition_metadata(topic.name, index, topic.topic_id)
    return PartitionLog.open(
        path,
        place.config,
        host,
        clean_shutdown=directory.was_cleanly_shut_down or not is_there,
        recovery_point_offset=place.recovery_point_offset,
        log_start_offset=place.log_start_offset,
    )
