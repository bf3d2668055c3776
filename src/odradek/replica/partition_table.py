"""The partitions on this broker: opened at start, created and removed as the metadata says, closed at shutdown.

A broker hosts the partitions that have a replica on it, so the table is sparse: an index is a key, never a position.
The table is the one owner of the log directories. `load` and `follow`, and the jobs given to `run_in_order`,
run one after the other: so no log is opened twice, and no deletion is undone by an opening that began before it. Files
are removed in the background (`partition_removal`).
Hot paths only look partitions up, by topic name or id and index.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.topic_configs import log_config
from odradek.host.disk import is_refusal
from odradek.host.logs import get_logger
from odradek.log import partition_log as partition_logs
from odradek.log.log_directory import LogDirectoryError
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.replica import partition as partition_module
from odradek.replica.hosted_partitions import HostedPartitions
from odradek.replica.leadership import LogState
from odradek.replica.leadership_changes import LeadershipChanges
from odradek.replica.log_opening import (
    PendingLog,
    choose_copies,
    has_stale_names,
    hosted_partitions,
    plan_openings,
    spread_evenly,
    survey,
)
from odradek.replica.log_opening_jobs import LogOpeningJobs, Openings
from odradek.replica.log_removal import close_directory, close_logs
from odradek.replica.metadata_application import apply_config
from odradek.replica.moves.log_moves import LogMoves
from odradek.replica.name_releases import NameReleases
from odradek.replica.offset_checkpoints import OffsetCheckpoints
from odradek.replica.partition_removal import PartitionRemovals
from odradek.replica.truncating import Truncations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.workers import DirectoryWorkers
    from odradek.log.log_config import LogConfig
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.metadata.entities import PartitionImage, TopicImage
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition
    from odradek.replica.replication_context import ReplicationContext

log = get_logger(__name__)

CONCURRENT_CLOSES = 4  # per log directory: each waits for several fsyncs, which a disk does at the same time


class PartitionTable(HostedPartitions):
    def __init__(
        self,
        host: Host,
        node_id: int,
        directories: Sequence[LogDirectory],
        broker_config: Callable[[], BrokerConfig],
        directory_failed: Callable[[LogDirectory], None],
        run_in_order: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
        replication: ReplicationContext | None = None,
    ) -> None:
        """`run_in_order` runs a job while `follow` is not running, and keeps `follow` from running during it. A broker
        without others has no `replication`."""
        super().__init__(directories)
        self.directories = tuple(directories)
        self._node_id = node_id
        self._directory_failed = directory_failed
        self._run_in_order = run_in_order
        self._replication = replication
        self.leader_throttle = None if replication is None else replication.leader_throttle
        self._host = host
        self._broker_config = broker_config
        self._image: MetadataImage | None = None
        self.after_late_opening: Callable[[], None] = lambda: None  # a retry opened logs; the metadata did not change
        self._unopened: dict[TopicPartition, PendingLog] = {}  # in the table with a failed log, to be opened later
        self.truncations: Truncations[Partition] = Truncations()
        self.truncations.on_end(self._follow_truncation)
        self.moves = LogMoves(self, host, broker_config)
        self.removals = PartitionRemovals(host, self._end_other_work)
        self._checkpoints = OffsetCheckpoints(host.workers, self._checkpoint_failed, self.moves.rows)
        self._names = NameReleases(self.removals, self._checkpoints, self.checkpoint)
        self._openings = LogOpeningJobs(host, self._adopt_in_order)
        self._first_broker_epoch: int | None = None
        self.leadership_changes = LeadershipChanges(
            node_id, run_in_order, self._report_late_change, may_lead=replication is None
        )
        self.is_ending = False

    def absence(self, topic: str | UUID, index: int) -> ErrorCode:
        """Why the partition of a topic, by name or id, is not in the table: all its replicas are on other brokers, or
        it is unknown, which includes one that is being opened or removed."""
        assert self._image is not None
        if isinstance(topic, str):
            known, unknown = self._image.topics.get(topic), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            known, unknown = self._image.topics_by_id.get(topic), ErrorCode.UNKNOWN_TOPIC_ID
        if known is None:
            return unknown
        if not 0 <= index < len(known.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return unknown if self._node_id in known.partitions[index].replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER

    # Following the metadata

    async def load(self, image: MetadataImage) -> None:
        """Open every log that the metadata places on this broker, and set aside partitions that it does not know."""
        self._image = image
        hosted = hosted_partitions(image, self._node_id)
        usable = [each for each in self.directories if each.failure is None]
        surveys = (self._workers(each).files.run(survey, each, hosted) for each in usable)
        contents = dict(zip(usable, await asyncio.gather(*surveys), strict=True))
        chosen = await self._host.workers.run(choose_copies, contents, self._host)
        failed = [each for each in self.directories if each.failure is not None]
        pending = plan_openings(hosted, contents, chosen, failed, lambda topic: self._log_config(image, topic))
        found = await self._openings.open(pending, is_new=False, has_limit=False)
        for each, partition_log in found.opened:
            self._add(each, partition_log, LogState.ONLINE)
        for each in found.unopened:
            assert each.problem is not None
            if each.directory is self.directories[0] or is_refusal(each.problem):
                raise LogDirectoryError(f"{each.directory.path} cannot be used: {each.problem}")
            self.fail_directory(each.directory, each.problem)
            self._add_failed(each)
        if has_stale_names(contents, chosen):
            await self.checkpoint()
        for directory in usable:
            self.removals.resume(directory)
        self.moves.resume({directory: found.futures for directory, found in contents.items()})

    async def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Make the table agree with the new image."""
        self._image = after
        self._follow_registration(after)
        if before.topics is not after.topics:
            changed = [topic for name, topic in after.topics.items() if before.topics.get(name) is not topic]
            self._remove_absent(before, after, changed)
            await self.leadership_changes.apply_all(self._present(changed))
            missing = [each for topic in changed for each in self._missing_logs(topic, after)]
            if missing:
                await self._names.release(frozenset(each.key for each in missing))
                await self._create(missing)
        if before.configs is not after.configs or before.streams is not after.streams:
            self._reconfigure(before, after)

    async def lead_from(self, broker_epoch: int) -> None:
        """Call between two commits when this process has registered for the first time. Until the metadata has that
        registration, the broker leads nothing: the controller elects it as the process that it was before, which may
        have had records that this one has lost. The commit that has it takes from the broker what it led, and elects
        it again."""
        assert self._image is not None
        self._first_broker_epoch = broker_epoch
        self._follow_registration(self._image)
        if self.leadership_changes.may_lead:
            await self.leadership_changes.apply_all(self._present(self._image.topics.values()))

    def _follow_registration(self, image: MetadataImage) -> None:
        broker = image.brokers.get(self._node_id)
        if broker is not None and self._first_broker_epoch is not None:
            self.leadership_changes.may_lead |= broker.broker_epoch >= self._first_broker_epoch

    def _present(self, changed: Iterable[TopicImage]) -> Iterator[tuple[Partition, PartitionImage]]:
        """The topics' partitions in the table, with their metadata."""
        for topic in changed:
            present: Mapping[int, Partition] = self._by_name.get(topic.name) or {}
            for image in topic.partitions:
                if image.index in present:
                    yield present[image.index], image

    def _missing_logs(self, topic: TopicImage, image: MetadataImage) -> list[PendingLog]:
        """The topic's hosted partitions that are not in the table."""
        present: Mapping[int, Partition] = self._by_name.get(topic.name) or {}
        missing = [each for each in topic.partitions if each.index not in present and self._node_id in each.replicas]
        if not missing:
            return []
        config = self._log_config(image, topic.name)
        return [PendingLog(topic, each, self.directories[0], config) for each in missing]

    # Opening

    async def _create(self, pending: Sequence[PendingLog]) -> None:
        """Create partitions. One that cannot be created is in the table with a failed log, and tried again later, as is
        one whose name is in use, or whose log directory hangs."""
        ready: list[PendingLog] = []
        delayed: list[PendingLog] = []
        for each in pending:
            is_delayed = self._names.is_running(each.key) or each.key in self._openings.late_keys
            (delayed if is_delayed else ready).append(each)
        hung = self._openings.hung_directories
        counts = {each: count for each, count in self._partition_counts.items() if each not in hung}
        placed = [
            each._replace(directory=self.moves.take_chosen_directory(each.key) or each.directory)
            for each in spread_evenly(ready, counts or self._partition_counts)
        ]
        self._take(await self._openings.open(placed, is_new=True, has_limit=True), delayed)

    def _take(self, openings: Openings, delayed: Iterable[PendingLog] = ()) -> None:
        for each, partition_log in openings.opened:
            self._add(each, partition_log, LogState.ONLINE)
        for each in (*openings.unopened, *openings.late, *delayed):
            if each.key not in self._unopened:
                self._add_failed(each)
            self._unopened[each.key] = each
        for each in openings.unopened:
            if each.problem is not None and not is_refusal(each.problem):
                self.fail_directory(each.directory, each.problem)

    async def _adopt_in_order(self, openings: Openings) -> None:
        try:
            await self._run_in_order(lambda: self._adopt(openings))
        except StoreError:  # the broker is stopping
            for _, opened in openings.opened:
                opened.release()

    async def _adopt(self, openings: Openings) -> None:
        """Partitions whose logs were opened late. Those that were removed since are left to their removal."""
        opened = [(self._refreshed(each), found) for each, found in openings.opened if self._awaits(each)]
        for each, found in openings.opened:
            if not self._awaits(each):
                found.release()
        self._take(Openings(opened, [each for each in openings.unopened if self._awaits(each)], []))
        self._report_late_change()

    def _report_late_change(self) -> None:
        self.after_late_opening()

    def _awaits(self, pending: PendingLog) -> bool:
        unopened = self._unopened.get(pending.key)
        return unopened is not None and unopened.topic.topic_id == pending.topic.topic_id

    async def open_missing(self) -> None:
        """Try to open the logs that could not be created: the disk may have room again."""
        if self._unopened:
            await self._run_in_order(self._open_unopened)

    async def _open_unopened(self) -> None:
        await self._create([self._refreshed(each) for each in self._unopened.values()])
        self.after_late_opening()

    def _refreshed(self, pending: PendingLog) -> PendingLog:
        """With the metadata as it is when the log is opened."""
        assert self._image is not None
        topic = self._image.topics[pending.topic.name]
        config = self._log_config(self._image, topic.name)
        return pending._replace(topic=topic, partition=topic.partitions[pending.partition.index], config=config)

    def _add_failed(self, pending: PendingLog) -> None:
        path = pending.directory.partition_directory(*pending.key)
        self._add(pending, partition_logs.PartitionLog.unreachable(path, pending.config, self._host), LogState.FAILED)

    def _add(self, pending: PendingLog, partition_log: PartitionLog, log_state: LogState) -> None:
        topic, directory = pending.topic, pending.directory
        if pending.key in self._unopened:
            self._discard(self._by_name[topic.name][pending.partition.index])
        partition = partition_module.Partition(
            topic.name,
            topic.topic_id,
            pending.partition.index,
            partition_log,
            directory,
            self._workers(directory),
            self.fail_directory,
            self.truncations,
            log_state=log_state if directory.failure is None else LogState.FAILED,
            high_watermark=pending.high_watermark,
            replication=self._replication,
        )
        self.leadership_changes.apply(partition, pending.partition)
        self._insert(partition)

    # Removing

    def _remove_absent(self, before: MetadataImage, after: MetadataImage, changed: Iterable[TopicImage]) -> None:
        """Remove the partitions of deleted topics, and those without a replica on this broker."""
        removed: list[Partition] = []
        for name, topic in before.topics.items():
            successor, hosted = after.topics.get(name), self._by_name.get(name)
            is_deleted = successor is not topic and (successor is None or successor.topic_id != topic.topic_id)
            if is_deleted and hosted is not None and hosted.topic_id == topic.topic_id:
                removed += hosted.values()
        for topic in changed:
            present = self._by_name.get(topic.name)
            if present is not None and present.topic_id == topic.topic_id:
                left = [each.index for each in topic.partitions if self._node_id not in each.replicas]
                removed += [present[index] for index in left if index in present]
        for partition in removed:
            self._discard(partition)
            self._checkpoints.mark_stale(partition, [partition.directory, *self.moves.targets_of(partition)])
        self.removals.begin(removed)

    def _discard(self, partition: Partition) -> None:
        """Take the partition out of the table."""
        partition.retire()
        self._take_out(partition)
        self._unopened.pop((partition.topic, partition.index), None)

    async def _end_other_work(self, partitions: Sequence[Partition]) -> None:
        """Before the files of removed partitions are renamed."""
        await self._openings.settle((each.topic, each.index) for each in partitions)
        await self.moves.forget(partitions)

    # Configuration

    def _reconfigure(self, before: MetadataImage, after: MetadataImage) -> None:
        brokers = [
            resource for resource in {*before.configs, *after.configs} if resource.type is ConfigResourceType.BROKER
        ]
        defaults_changed = any(before.configs.get(each) != after.configs.get(each) for each in brokers)
        made: dict[frozenset[tuple[str, str]], LogConfig] = {}  # the topics of a stream mostly have the same settings
        for name, partitions in self._by_name.items():
            overrides = after.topic_overrides(name)
            if defaults_changed or before.topic_overrides(name) != overrides:
                key = frozenset(overrides.items())
                if key not in made:
                    made[key] = self._log_config(after, name)
                for partition in partitions.values():
                    apply_config(partition, made[key])

    def _log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        return log_config(image.topic_overrides(topic), self._broker_config())

    # Log directories

    def _workers(self, directory: LogDirectory) -> DirectoryWorkers:
        return self._host.workers.for_directory(directory.path)

    def fail_directory(self, directory: LogDirectory, problem: OSError) -> None:
        """Use nothing in the log directory until a restart: after a failed fsync the state on the disk is unknown."""
        if directory.failure is not None:
            return
        directory.failure = str(problem)
        log.error(
            "log directory failed", path=directory.path, reason=problem,
            partitions=self._partition_counts[directory],
        )  # fmt: skip
        for partition in self:
            if partition.directory is directory:
                partition.fail()
        self._directory_failed(directory)

    @property
    def has_failures(self) -> bool:
        return bool(self._unopened) or any(directory.failure is not None for directory in self.directories)

    @property
    def has_delays(self) -> bool:
        """Whether partitions wait for log directories that hang."""
        return self.leadership_changes.has_late or bool(self._openings.late_keys)

    def is_delayed(self, partition: Partition) -> bool:
        return (
            self.leadership_changes.is_late(partition) or (partition.topic, partition.index) in self._openings.late_keys
        )

    def has_failed(self, topic: str, index: int) -> bool:
        """Whether the partition is on this broker with a log that cannot be used."""
        partition = self.find(topic, index)
        return partition is not None and partition.log_state is LogState.FAILED

    # Checkpoints

    async def checkpoint(self, directories: Iterable[LogDirectory] | None = None) -> None:
        """Write recovery points, log start offsets and high watermarks of these log directories, by default of all.
        OSError when one could not be written."""
        await self._checkpoints.write(self.directories if directories is None else directories, self.__iter__)

    async def _follow_truncation(self, partition: Partition) -> None:
        """Write the recovery point before the next append: recovery does not read what lies before the checkpoint."""
        await self.checkpoint([partition.directory])

    async def checkpoint_log_start_offsets(self, directories: Iterable[LogDirectory]) -> None:
        await self._checkpoints.write(directories, self.__iter__, only_starts=True)

    def _checkpoint_failed(self, directory: LogDirectory, problem: OSError) -> None:
        if not is_refusal(problem):
            self.fail_directory(directory, problem)

    # Shutdown

    def wake_waiting_fetches(self) -> None:
        """At shutdown: no fetch waits from this on."""
        self.is_ending = True
        for partition in self:
            partition.wake_waiting_fetches()

    async def close(self) -> None:
        """Flush and close every log, then write the clean-shutdown files that let the next start skip recovery."""
        self.leadership_changes.stop()
        await self.moves.stop()
        await self.removals.stop()
        await asyncio.gather(*(self._close_directory(directory) for directory in self.directories))

    async def _close_directory(self, directory: LogDirectory) -> None:
        partitions = [each for each in self if each.directory is directory and each.is_online]
        files = self._workers(directory).files
        for partition in partitions:
            await partition.flusher.settle()
            await partition.follower_log.settle()
        parts = [partitions[first::CONCURRENT_CLOSES] for first in range(CONCURRENT_CLOSES)]
        is_clean = all(await asyncio.gather(*(files.run(close_logs, part) for part in parts)))
        try:
            await self.checkpoint([directory])
        except OSError as problem:
            log.error("checkpoints could not be written", path=directory.path, reason=problem)
            is_clean = False
        await files.run(close_directory, directory, is_clean)
