"""The partitions on this broker: opened at start, made and removed as the metadata says, closed at the end.

The table is the one owner of log directories. Hot paths only look partitions up, by topic name or id and index.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.topic_configs import log_config
from odradek.host.disk import is_refusal
from odradek.host.logs import get_logger
from odradek.log.log_directory import LogDirectoryError
from odradek.log.partition_log import PartitionLog
from odradek.replica.log_opening import Place, open_logs, survey
from odradek.replica.offset_checkpoints import OffsetCheckpoints
from odradek.replica.partition import Partition, Role

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.log.log_config import LogConfig
    from odradek.log.log_directory import LogDirectory
    from odradek.metadata.image import MetadataImage, TopicImage

log = get_logger(__name__)

CLOSED_SIDE_BY_SIDE = 4  # each waits for the disk several times, and the disk syncs several files in the time of one


class PartitionTable:
    def __init__(
        self,
        host: Host,
        directories: Sequence[LogDirectory],
        broker_config: Callable[[], BrokerConfig],
        directory_failed: Callable[[LogDirectory], None],
    ) -> None:
        self.directories = tuple(directories)
        self._directory_failed = directory_failed
        self._partition_counts = dict.fromkeys(self.directories, 0)
        self._host = host
        self._broker_config = broker_config
        self._by_name: dict[str, list[Partition]] = {}
        self._by_id: dict[UUID, list[Partition]] = {}
        self._topics: Mapping[str, TopicImage] = {}
        self._unopened: list[Place] = []
        self._stale_names: set[str] = set()  # of deleted topics that checkpoints may still tell of
        self._removals: set[asyncio.Future[None]] = set()
        self._checkpoints = OffsetCheckpoints(host.workers, self._checkpoint_failed)
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
        places, is_stale = await self._host.workers.run(
            survey, image, self.directories, lambda topic: self._log_config(image, topic)
        )
        # One job per topic and directory, side by side on the workers.
        for place in await self._open_all(places, lambda place: (place.topic.name, place.directory)):
            directory = place.directory
            if place.problem is not None:
                if directory is self.directories[0] or is_refusal(place.problem):
                    raise LogDirectoryError(f"{directory.path} cannot be used: {place.problem}")
                self.fail_directory(directory, place.problem)
            path = directory.partition_directory(place.topic.name, place.partition.index)
            self._add(place, PartitionLog.unreachable(path, place.config, self._host))
        for partitions in self._by_name.values():
            partitions.sort(key=lambda partition: partition.index)
        if is_stale:
            await self.checkpoint()

    async def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Make the table say what the new image says; the controller waits for it before it answers."""
        self._topics = after.topics
        if before.topics is not after.topics:
            for name, topic in before.topics.items():
                successor = after.topics.get(name)
                if successor is not topic and (successor is None or successor.topic_id != topic.topic_id):
                    await self._remove(topic)
                    self._stale_names.add(name)
            changed = [topic for name, topic in after.topics.items() if before.topics.get(name) is not topic]
            if any(topic.name in self._stale_names for topic in changed):
                await self._forget_offsets_of_removed()
            missing = [place for topic in changed for place in self._update(topic, after)]
            if missing:
                await self._create(self._spread(missing))
        if before.configs is not after.configs:
            self._reconfigure(before, after)

    def _update(self, topic: TopicImage, image: MetadataImage) -> list[Place]:
        """Those of its partitions that have no log yet."""
        present = self._by_name.get(topic.name, ())
        for partition in present:
            partition.update(topic.partitions[partition.index])
        missing = topic.partitions[len(present) :]
        if not missing:
            return []
        config = self._log_config(image, topic.name)
        return [Place(topic, each, self.directories[0], config) for each in missing]

    def _spread(self, places: Sequence[Place]) -> list[Place]:
        """Each new partition into the directory that has the fewest."""
        counts = {each: count for each, count in self._partition_counts.items() if each.failure is None}
        if not counts:
            return [*places]
        spread = []
        for place in places:
            directory = min(counts, key=lambda each: counts[each])
            counts[directory] += 1
            spread.append(place._replace(directory=directory))
        return spread

    async def _create(self, places: Sequence[Place]) -> None:
        """One job per topic: what cannot be made now is tried again later, and no later partition before it."""
        unopened = await self._open_all(places, lambda place: place.topic.name, is_new=True)
        self._unopened += unopened
        for place in unopened:
            if place.problem is not None and not is_refusal(place.problem):
                self.fail_directory(place.directory, place.problem)

    async def _open_all(
        self, places: Sequence[Place], job_of: Callable[[Place], object], *, is_new: bool = False
    ) -> list[Place]:
        """Those that could not be opened."""
        jobs: dict[object, list[Place]] = {}
        for place in places:
            jobs.setdefault(job_of(place), []).append(place)
        unopened: list[Place] = []
        for opened, rest in await asyncio.gather(
            *(self._host.workers.run(open_logs, job, self._host, is_new) for job in jobs.values())
        ):
            for place, partition_log in opened:
                self._add(place, partition_log)
            unopened += rest
        return unopened

    async def open_missing(self) -> None:
        """Try once more what could not be opened when it was created: the disk may have room again."""
        if self._unopened:
            places, self._unopened = self._unopened, []
            await self._create(self._spread([place for place in places if self._is_still_missing(place)]))

    def _is_still_missing(self, place: Place) -> bool:
        topic = self._topics.get(place.topic.name)
        is_same = topic is not None and topic.topic_id == place.topic.topic_id
        return is_same and place.partition.index >= len(self._by_name.get(place.topic.name, ()))

    def _add(self, place: Place, partition_log: PartitionLog) -> None:
        topic = place.topic
        partition = Partition(
            topic.name, topic.topic_id, place.partition, partition_log, place.directory, self._host,
            self.fail_directory,
        )  # fmt: skip
        self._partition_counts[place.directory] += 1
        partitions = self._by_name.setdefault(topic.name, [])
        partitions.append(partition)
        self._by_id[topic.topic_id] = partitions

    async def _remove(self, topic: TopicImage) -> None:
        partitions = self._by_name.pop(topic.name, [])
        self._by_id.pop(topic.topic_id, None)
        for partition in partitions:
            partition.retire()
            self._partition_counts[partition.directory] -= 1
        for partition in partitions:
            await partition.flusher.retire()
        if self.before_removal is not None:
            await self.before_removal(partitions)
        for partition in partitions:
            partition.log.release()
        doomed = await self._host.workers.run(self._rename_for_deletion, partitions)
        removal = asyncio.ensure_future(self._host.workers.run(self._remove_trees, doomed))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)

    async def _forget_offsets_of_removed(self) -> None:
        """Before a topic of the same name is made: after a crash it must not be cut to the old one's start. A start
        forgets them too, so a deletion need not wait for this."""
        try:
            await self.checkpoint()
        except OSError as problem:
            log.error("checkpoints could not be written", reason=str(problem))

    def _rename_for_deletion(self, partitions: Iterable[Partition]) -> list[str]:
        """Each for itself: one that cannot be renamed (or is gone already) must not keep the others."""
        renamed = []
        for each in partitions:
            if each.directory.failure is not None:
                continue  # a later start will set it aside
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

    # Directories that fail

    def fail_directory(self, directory: LogDirectory, problem: OSError) -> None:
        """Nothing in it is touched any more, until a restart: after a failed sync nobody knows what the disk has."""
        if directory.failure is not None:
            return
        directory.failure = str(problem)
        log.error(
            "log directory failed", path=directory.path, reason=str(problem),
            partitions=self._partition_counts[directory],
        )  # fmt: skip
        for partition in self:
            if partition.directory is directory:
                partition.fail()
        self._directory_failed(directory)

    @property
    def has_failures(self) -> bool:
        return any(directory.failure is not None for directory in self.directories)

    def has_failed(self, topic: str, index: int) -> bool:
        """Whether this partition lies in a directory that failed."""
        partition = self.find(topic, index)
        return partition is not None and partition.role is Role.FAILED

    # Checkpoints

    async def checkpoint(self) -> None:
        """Recovery points, log start offsets and high watermarks. OSError when a directory could not take them."""
        forgotten = frozenset(self._stale_names)
        await self._checkpoints.write(self.directories, self)
        self._stale_names -= forgotten

    async def checkpoint_log_start_offsets(self) -> None:
        await self._checkpoints.write(self.directories, self, only_starts=True)

    def _checkpoint_failed(self, directory: LogDirectory, problem: OSError) -> None:
        if not is_refusal(problem):
            self.fail_directory(directory, problem)

    # The end

    def wake_waiting_fetches(self) -> None:
        """At the end: nobody waits any more, nor begins to."""
        self.is_ending = True
        for partition in self:
            partition.wake_waiting_fetches()

    async def close(self) -> None:
        """Flush and close every log, then leave the mark that lets the next start skip recovery."""
        unclean: set[LogDirectory] = set()
        if self._removals:
            await asyncio.wait(self._removals)
        partitions = [each for each in self if each.directory.failure is None]
        for partition in partitions:
            await partition.flusher.settle()
        parts = [partitions[first::CLOSED_SIDE_BY_SIDE] for first in range(CLOSED_SIDE_BY_SIDE)]
        problems = await asyncio.gather(*(self._host.workers.run(_close_logs, part) for part in parts))
        for directory, problem in itertools.chain(*problems):
            log.error("a log could not be closed", reason=problem)
            unclean.add(directory)
        try:
            await self.checkpoint()
        except OSError as problem:
            log.error("checkpoints could not be written", reason=str(problem))
            unclean.update(self.directories)
        for directory in self.directories:
            await self._host.workers.run(_close_directory, directory, directory not in unclean)


def _close_logs(partitions: Iterable[Partition]) -> list[tuple[LogDirectory, str]]:
    problems = []
    for partition in partitions:
        try:
            partition.log.close()
        except OSError as problem:
            problems.append((partition.directory, f"{partition.topic}-{partition.index}: {problem}"))
    return problems


def _close_directory(directory: LogDirectory, is_clean: bool) -> None:
    try:
        directory.close(is_clean=is_clean)
    except OSError as problem:
        log.error("a log directory could not be closed", path=directory.path, reason=str(problem))
