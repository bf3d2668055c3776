"""Opening the logs of partitions: which partition is in which log directory, and the result of opening each. Blocks."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.log import partition_log as partition_logs
from odradek.replica.moves import after_crash
from odradek.replica.offset_checkpoints import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.host.host import Host
    from odradek.log.log_config import LogConfig
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.metadata.entities import PartitionImage, TopicImage
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.topic_partition import TopicPartition

log = get_logger(__name__)


class PendingLog(NamedTuple):
    """A partition whose log is to be opened, and what the checkpoints say about it."""

    topic: TopicImage
    partition: PartitionImage
    directory: LogDirectory
    config: LogConfig
    recovery_point_offset: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    problem: OSError | None = None  # why it could not be opened

    @property
    def key(self) -> TopicPartition:
        return (self.topic.name, self.partition.index)


class DirectoryContents(NamedTuple):
    """The partitions of this broker in one log directory, and its checkpoints."""

    partitions: Sequence[TopicPartition]
    recovery_points: Mapping[TopicPartition, int]
    log_start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    futures: Mapping[TopicPartition, str] = {}  # copies that are to replace those in other log directories

    @property
    def checkpoints(self) -> Sequence[Mapping[TopicPartition, int]]:
        return (self.recovery_points, self.log_start_offsets, self.high_watermarks)


def survey(directory: LogDirectory, hosted: Mapping[TopicPartition, TopicImage]) -> DirectoryContents:
    """Find the hosted partitions in the directory. All others are set aside."""
    found = []
    for key, path in directory.partitions().items():
        topic = hosted.get(key)
        topic_id = directory.read_partition_metadata(*key)
        if topic is not None and topic_id in (None, topic.topic_id):
            found.append(key)
            if topic_id is None:
                log.warning("partition.metadata was lost and is written again", path=path)
                directory.write_partition_metadata(*key, topic.topic_id)
        else:
            log.warning("unknown partition set aside", path=path, renamed_to=directory.set_aside(*key))
    if found:
        for path in directory.missing_checkpoints():
            log.warning("a checkpoint is missing", path=path)
    return DirectoryContents(
        found,
        read_checkpoint(directory.recovery_points),
        read_checkpoint(directory.log_start_offsets),
        read_checkpoint(directory.high_watermarks),
        _survey_futures(directory, hosted),
    )


def _survey_futures(directory: LogDirectory, hosted: Mapping[TopicPartition, TopicImage]) -> dict[TopicPartition, str]:
    """The copies that moves of the last run have left; one for each hosted partition. All others are removed."""
    found: dict[TopicPartition, str] = {}
    for key, paths in directory.futures().items():
        for path in paths:
            topic = hosted.get(key)
            is_own = topic is not None and directory.read_partition_metadata(*key, path) == topic.topic_id
            if is_own and key not in found:
                found[key] = path
            else:
                log.warning("the copy of an interrupted move is removed", path=path)
                directory.scheduled_deletes.append(path)
    return found


def choose_copies(contents: Mapping[LogDirectory, DirectoryContents], host: Host) -> dict[TopicPartition, LogDirectory]:
    """The log directory of each partition. If several have it, the largest copy is kept and the others are set aside:
    they are left from attempts to create the partition that failed."""
    chosen: dict[TopicPartition, LogDirectory] = {}
    for directory, found in contents.items():
        for key in found.partitions:
            if after_crash.remove_if_moved(key, directory, contents.keys(), host):
                continue
            other = chosen.setdefault(key, directory)
            if other is directory:
                continue
            recovery_points = {each: contents[each].recovery_points.get(key, 0) for each in (directory, other)}
            if (moved := after_crash.choose_moved_copy(key, recovery_points, host)) is not None:
                chosen[key] = moved
                continue
            is_larger = _segments_size_bytes(directory, key, host) > _segments_size_bytes(other, key, host)
            chosen[key], rejected = (directory, other) if is_larger else (other, directory)
            log.warning("second copy of a partition set aside", renamed_to=rejected.set_aside(*key))
    if chosen:
        after_crash.forget_moves(chosen, contents.keys(), host)
    return chosen


def plan_openings(
    hosted: Mapping[TopicPartition, TopicImage],
    contents: Mapping[LogDirectory, DirectoryContents],
    chosen: Mapping[TopicPartition, LogDirectory],
    failed: Sequence[LogDirectory],
    config_of: Callable[[str], LogConfig],
) -> list[PendingLog]:
    """A partition that was not found may be in a log directory that failed: it must not be created elsewhere."""
    default = failed[0] if failed else next(iter(contents))
    configs = {name: config_of(name) for name in dict.fromkeys(name for name, _ in hosted)}
    pending = []
    for key, topic in hosted.items():
        directory = chosen.get(key, default)
        each = PendingLog(topic, topic.partitions[key[1]], directory, configs[topic.name])
        if directory in contents:
            recovery_point, log_start, high_watermark = (each.get(key, 0) for each in contents[directory].checkpoints)
            each = each._replace(
                recovery_point_offset=recovery_point, log_start_offset=log_start, high_watermark=high_watermark
            )
        pending.append(each)
    return pending


def spread_evenly(pending: Sequence[PendingLog], partition_counts: Mapping[LogDirectory, int]) -> list[PendingLog]:
    """Each new partition goes to the usable log directory with the fewest partitions."""
    counts = {each: count for each, count in partition_counts.items() if each.failure is None}
    if not counts:
        return [*pending]
    spread = []
    for each in pending:
        directory = min(counts, key=lambda each: counts[each])
        counts[directory] += 1
        spread.append(each._replace(directory=directory, problem=None))
    return spread


def has_stale_names(
    contents: Mapping[LogDirectory, DirectoryContents], chosen: Mapping[TopicPartition, LogDirectory]
) -> bool:
    """Whether checkpoints name partitions that are not in their log directory: a new topic of that name would take over
    their offsets after the next crash."""
    return any(
        chosen.get(key) is not directory
        for directory, found in contents.items()
        for offsets in found.checkpoints
        for key in offsets
    )


def hosted_partitions(image: MetadataImage, node_id: int) -> dict[TopicPartition, TopicImage]:
    """The partitions that have a replica on this broker."""
    return {
        (topic.name, partition.index): topic
        for topic in image.topics.values()
        for partition in topic.partitions
        if node_id in partition.replicas
    }


def open_logs(
    pending: Sequence[PendingLog], host: Host, is_new: bool, after_each: Callable[[], None] = lambda: None
) -> tuple[list[tuple[PendingLog, PartitionLog]], list[PendingLog]]:
    """Open logs in one log directory: the opened ones, and those that could not be opened. After one failure the rest
    is not tried: it would fail for the same reason."""
    opened: list[tuple[PendingLog, PartitionLog]] = []
    for number, each in enumerate(pending):
        try:
            opened.append((each, _open_log(each, host, is_new)))
            after_each()
        except OSError as problem:
            log.error(
                "a partition cannot be opened", topic=each.topic.name, partition=each.partition.index,
                directory=each.directory.path, reason=problem, others_not_tried=len(pending) - number - 1,
            )  # fmt: skip
            return opened, [rest._replace(problem=problem) for rest in pending[number:]]
    return opened, []


def _open_log(pending: PendingLog, host: Host, is_new: bool) -> PartitionLog:
    directory, topic, index = pending.directory, pending.topic, pending.partition.index
    path = directory.partition_directory(topic.name, index)
    if directory.failure is not None:
        return partition_logs.PartitionLog.unreachable(path, pending.config, host)
    is_present = host.disk.exists(path) and (not is_new or _is_own_directory(pending, path, host))
    try:
        if not is_present:
            host.disk.make_directories(path)
            directory.write_partition_metadata(topic.name, index, topic.topic_id)
        partition_log = partition_logs.PartitionLog.open(
            path,
            pending.config,
            host,
            clean_shutdown=directory.was_cleanly_shut_down or not is_present,
            recovery_point_offset=pending.recovery_point_offset,
            log_start_offset=pending.log_start_offset,
        )
    except OSError:
        if not is_present:  # a later attempt may choose another log directory
            with suppress(OSError):
                host.disk.remove_tree(path)
        raise
    # Recovered records count as unflushed, and must be durable before they are read again if the topic asks for it.
    if partition_log.log_end_offset - partition_log.recovery_point_offset >= pending.config.flush_messages:
        partition_log.flush()
    return partition_log


def _is_own_directory(pending: PendingLog, path: str, host: Host) -> bool:
    """Whether the directory that a new partition finds is its own, from an attempt to create it that failed halfway.
    The directory of an older topic of the same name is set aside: its records must never be served as the new topic's.
    The old copy of a replica that was moved from here is set aside too. A directory without topic id and without
    records is removed, so that repeated attempts leave no trace."""
    directory, (name, index) = pending.directory, pending.key
    topic_id = directory.read_partition_metadata(name, index)
    if topic_id == pending.topic.topic_id:
        return not after_crash.remove_if_moved(pending.key, directory, [], host)
    if topic_id is None and _segments_size_bytes(directory, pending.key, host) == 0:
        host.disk.remove_tree(path)
    else:
        log.warning("unknown partition set aside", path=path, renamed_to=directory.set_aside(name, index))
    return False


def _segments_size_bytes(directory: LogDirectory, key: TopicPartition, host: Host) -> int:
    path = directory.partition_directory(*key)
    names = host.disk.list_directory(path)
    return sum(host.disk.file_size(f"{path}/{name}") for name in names if name.endswith(".log"))
