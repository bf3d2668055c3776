"""The partitions on this broker: opened at start, made and removed as the metadata says, closed at the end.

The table is the one owner of log directories. Hot paths only look partitions up, by topic name or id and index.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.log.log_directory import LogDirectoryError
from odradek.log.partition_log import PartitionLog
from odradek.metadata.config_types import ConfigResourceType
from odradek.metadata.topic_configs import log_config
from odradek.protocol.malformed import MalformedMessage
from odradek.replica.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.host.host import Host
    from odradek.log.checkpoints import OffsetCheckpoint
    from odradek.log.log_config import LogConfig
    from odradek.log.log_directory import LogDirectory
    from odradek.metadata.broker_configs import BrokerConfig
    from odradek.metadata.image import MetadataImage, PartitionImage, TopicImage

log = get_logger(__name__)


class _Place(NamedTuple):
    """A partition whose log is to be opened, and what is known about it beforehand."""

    topic: TopicImage
    partition: PartitionImage
    directory: LogDirectory
    config: LogConfig
    recovery_point_offset: int
    log_start_offset: int
    problem: str = ""  # why it could not be opened


class PartitionTable:
    def __init__(
        self, host: Host, directories: Sequence[LogDirectory], broker_config: Callable[[], BrokerConfig]
    ) -> None:
        self.directories = tuple(directories)
        self._host = host
        self._broker_config = broker_config
        self._by_name: dict[str, list[Partition]] = {}
        self._by_id: dict[UUID, list[Partition]] = {}
        self._topics: Mapping[str, TopicImage] = {}
        self._unopened: list[_Place] = []
        self._removals: set[asyncio.Future[None]] = set()
        self._one_checkpoint = asyncio.Lock()
        self.is_ending = False
        self.before_removal: Callable[[Sequence[Partition]], Awaitable[None]] | None = None
        """Who works on partitions' files by itself lets go of these before they are renamed."""

    # Looking up

    def topic(self, name: str) -> Sequence[Partition] | None:
        return self._by_name.get(name)

    def topic_by_id(self, topic_id: UUID) -> Sequence[Partition] | None:
        return self._by_id.get(topic_id)

    def find(self, topic: str, index: int) -> Partition | None:
        partitions = self._by_name.get(topic)
        return partitions[index] if partitions is not None and 0 <= index < len(partitions) else None

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions

    # Following the metadata

    async def load(self, image: MetadataImage) -> None:
        """Open every log that the metadata knows; set aside what lies on the disk and nobody knows."""
        places, is_stale = await self._host.workers.run(self._survey, image)
        await self._open_all(places)
        if is_stale:
            await self.checkpoint()

    def _survey(self, image: MetadataImage) -> tuple[list[_Place], bool]:
        """Where everything lies, and whether the checkpoints tell of partitions that are no more: if a topic of that
        name were made anew, they would be taken for its own after the next crash."""
        known = self._find_on_disk(image)
        recovery_points = {directory: _read(directory.recovery_points) for directory in self.directories}
        start_offsets = {directory: _read(directory.log_start_offsets) for directory in self.directories}
        places = []
        for topic in image.topics.values():
            config = self._log_config(image, topic.name)
            for partition in topic.partitions:
                key = (topic.name, partition.index)
                at = known.get(key) or self.directories[0]
                offsets = (recovery_points[at].get(key, 0), start_offsets[at].get(key, 0))
                places.append(_Place(topic, partition, at, config, *offsets))
        told = {key for offsets in (recovery_points, start_offsets) for each in offsets.values() for key in each}
        return places, not told <= {(place.topic.name, place.partition.index) for place in places}

    async def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Make the table say what the new image says; the controller waits for it before it answers."""
        self._topics = after.topics
        if before.topics is not after.topics:
            are_some_gone = False
            for name, topic in before.topics.items():
                successor = after.topics.get(name)
                if successor is not topic and (successor is None or successor.topic_id != topic.topic_id):
                    await self._remove(topic)
                    are_some_gone = True
            if are_some_gone:
                await self._forget_offsets_of_removed()
            for name, topic in after.topics.items():
                if before.topics.get(name) is not topic:
                    await self._update(topic, after)
        if before.configs is not after.configs:
            self._reconfigure(before, after)

    async def _update(self, topic: TopicImage, image: MetadataImage) -> None:
        present = self._by_name.get(topic.name, ())
        for partition in present:
            partition.update(topic.partitions[partition.index])
        missing = topic.partitions[len(present) :]
        if missing:
            config = self._log_config(image, topic.name)
            directory = self._emptiest_directory()
            await self._open_all([_Place(topic, each, directory, config, 0, 0) for each in missing], is_new=True)

    async def _open_all(self, places: Sequence[_Place], *, is_new: bool = False) -> None:
        """One job per topic and directory, side by side on the workers."""
        jobs: dict[tuple[str, LogDirectory], list[_Place]] = {}
        for place in places:
            jobs.setdefault((place.topic.name, place.directory), []).append(place)
        for opened, unopened in await asyncio.gather(
            *(self._host.workers.run(self._open_logs, job, is_new) for job in jobs.values())
        ):
            for place, partition_log in opened:
                self._add(place, partition_log)
            if unopened:
                if not is_new:
                    raise LogDirectoryError(f"{unopened[0].directory.path} cannot be used: {unopened[0].problem}")
                self._unopened += unopened
        for partitions in self._by_name.values() if not is_new else ():
            partitions.sort(key=lambda partition: partition.index)

    async def open_missing(self) -> None:
        """Try once more what could not be opened when it was created: the disk may have room again."""
        if self._unopened:
            places, self._unopened = self._unopened, []
            await self._open_all([place for place in places if self._is_still_missing(place)], is_new=True)

    def _is_still_missing(self, place: _Place) -> bool:
        topic = self._topics.get(place.topic.name)
        is_same = topic is not None and topic.topic_id == place.topic.topic_id
        return is_same and place.partition.index >= len(self._by_name.get(place.topic.name, ()))

    def _open_logs(
        self, places: Sequence[_Place], is_new: bool
    ) -> tuple[list[tuple[_Place, PartitionLog]], list[_Place]]:
        """Those that could be opened, and those that could not: the first that fails and all after it, so that a
        topic's partitions are always the first ones without a gap."""
        opened: list[tuple[_Place, PartitionLog]] = []
        for number, place in enumerate(places):
            try:
                opened.append((place, self._open_log(place, is_new)))
            except OSError as problem:
                log.error(
                    "a partition cannot be opened", topic=place.topic.name, partition=place.partition.index,
                    directory=place.directory.path, reason=str(problem),
                )  # fmt: skip
                return opened, [each._replace(problem=str(problem)) for each in places[number:]]
        return opened, []

    def _open_log(self, place: _Place, is_new: bool) -> PartitionLog:
        directory, topic, index = place.directory, place.topic, place.partition.index
        path = directory.partition_directory(topic.name, index)
        is_there = self._host.disk.exists(path)
        if is_there and is_new:
            # What is left of an older topic of this name must never be served as this one's records.
            log.warning("unknown partition set aside", path=path, now=directory.set_aside(topic.name, index))
            is_there = False
        self._host.disk.make_directories(path)
        if not is_there:
            directory.write_partition_metadata(topic.name, index, topic.topic_id)
        return PartitionLog.open(
            path,
            place.config,
            self._host,
            clean_shutdown=directory.was_cleanly_shut_down or not is_there,
            recovery_point_offset=place.recovery_point_offset,
            log_start_offset=place.log_start_offset,
        )

    def _add(self, place: _Place, partition_log: PartitionLog) -> None:
        topic = place.topic
        partition = Partition(topic.name, topic.topic_id, place.partition, partition_log, place.directory, self._host)
        partitions = self._by_name.setdefault(topic.name, [])
        partitions.append(partition)
        self._by_id[topic.topic_id] = partitions

    async def _remove(self, topic: TopicImage) -> None:
        partitions = self._by_name.pop(topic.name, [])
        self._by_id.pop(topic.topic_id, None)
        for partition in partitions:
            partition.retire()
        for partition in partitions:
            await partition.flusher.retire()
        if self.before_removal is not None:
            await self.before_removal(partitions)
        doomed = await self._host.workers.run(self._rename_for_deletion, partitions)
        removal = asyncio.ensure_future(self._host.workers.run(self._remove_trees, doomed))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def _forget_offsets_of_removed(self) -> None:
        """Before anyone can make a topic of the same name: after a crash it must not be cut to the old one's start."""
        try:
            await self.checkpoint()
        except OSError as problem:
            log.error("checkpoints could not be written", reason=str(problem))

    def _rename_for_deletion(self, partitions: Iterable[Partition]) -> list[str]:
        """Each for itself: one that cannot be renamed (or is gone already) must not keep the others."""
        renamed = []
        for each in partitions:
            try:
                renamed.append(each.directory.schedule_delete(each.topic, each.index))
            except OSError as problem:
                log.error("a deleted partition stays", topic=each.topic, partition=each.index, reason=str(problem))
        return renamed

    def _remove_trees(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                self._host.disk.remove_tree(path)

    def _reconfigure(self, before: MetadataImage, after: MetadataImage) -> None:
        brokers = [
            resource for resource in {*before.configs, *after.configs} if resource.type is ConfigResourceType.BROKER
        ]
        defaults_changed = any(before.configs.get(each) != after.configs.get(each) for each in brokers)
        for name, partitions in self._by_name.items():
            old, new = (image.configs_of(ConfigResourceType.TOPIC, name) for image in (before, after))
            if defaults_changed or old != new:
                config = self._log_config(after, name)
                for partition in partitions:
                    partition.log.configure(config)

    def _log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        return log_config(image.configs_of(ConfigResourceType.TOPIC, topic), self._broker_config())

    def _emptiest_directory(self) -> LogDirectory:
        counts = dict.fromkeys(self.directories, 0)
        if len(counts) > 1:
            for partition in self:
                counts[partition.directory] += 1
        return min(counts, key=lambda directory: counts[directory])

    def _find_on_disk(self, image: MetadataImage) -> dict[tuple[str, int], LogDirectory]:
        known = {}
        for directory in self.directories:
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

    # Checkpoints

    async def checkpoint(self) -> None:
        """Recovery points, log start offsets and high watermarks, so that a start scans little and forgets nothing."""
        async with self._one_checkpoint:
            await self._host.workers.run(self._write_checkpoints, self._offsets(), True)

    async def checkpoint_log_start_offsets(self) -> None:
        async with self._one_checkpoint:
            await self._host.workers.run(self._write_checkpoints, self._offsets(), False)

    def _offsets(self) -> dict[LogDirectory, list[tuple[tuple[str, int], int, int, int]]]:
        """A snapshot taken on the event loop: key, recovery point, log start, high watermark."""
        offsets: dict[LogDirectory, list[tuple[tuple[str, int], int, int, int]]] = {
            directory: [] for directory in self.directories
        }
        for partition in self:
            key = (partition.topic, partition.index)
            each = partition.log
            offsets[partition.directory].append(
                (key, each.recovery_point_offset, each.log_start_offset, partition.high_watermark)
            )
        return offsets

    def _write_checkpoints(
        self, offsets: dict[LogDirectory, list[tuple[tuple[str, int], int, int, int]]], is_complete: bool
    ) -> None:
        for directory, rows in offsets.items():
            directory.log_start_offsets.write({key: start for key, _, start, _ in rows if start > 0})
            if is_complete:
                directory.recovery_points.write({key: recovery_point for key, recovery_point, _, _ in rows})
                directory.high_watermarks.write({key: high_watermark for key, _, _, high_watermark in rows})

    # The end

    def wake_waiting_fetches(self) -> None:
        """At the end: nobody waits any more, nor begins to."""
        self.is_ending = True
        for partition in self:
            partition.wake_waiting_fetches()

    async def close(self) -> None:
        """Flush and close every log, then leave the mark that lets the next start skip recovery."""
        if self._removals:
            await asyncio.wait(self._removals)
        partitions = list(self)
        for partition in partitions:
            await partition.flusher.settle()
        problems = await self._host.workers.run(_close_logs, partitions)
        for problem in problems:
            log.error("a log could not be closed", reason=problem)
        await self.checkpoint()
        for directory in self.directories:
            await self._host.workers.run(_close_directory, directory, not problems)


def _read(checkpoint: OffsetCheckpoint) -> dict[tuple[str, int], int]:
    """As Kafka does with one that cannot be read: it is done without, at the price of a longer recovery."""
    try:
        return checkpoint.read()
    except MalformedMessage as problem:
        log.warning("checkpoint ignored", path=checkpoint.path, reason=str(problem))
        return {}


def _close_logs(partitions: Iterable[Partition]) -> list[str]:
    problems = []
    for partition in partitions:
        try:
            partition.log.close()
        except OSError as problem:
            problems.append(f"{partition.topic}-{partition.index}: {problem}")
    return problems


def _close_directory(directory: LogDirectory, is_clean: bool) -> None:
    directory.close(is_clean=is_clean)
