"""Which shard a group belongs to, and the life of the shards: made with their topic, loaded at start, ended at stop.

The only part of the group room that knows the event loop, the metadata and the partitions.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.controller.topic_decisions import NewTopic
from odradek.coordinator.consumer.patterns import match_new_pattern, match_patterns
from odradek.coordinator.group_journal import GroupJournal
from odradek.coordinator.group_loading import load_shard
from odradek.coordinator.group_settings import GroupSettings, group_settings
from odradek.coordinator.group_shard import GroupShard
from odradek.coordinator.group_timers import GroupTimers
from odradek.coordinator.java_strings import partition_of
from odradek.coordinator.offsets.offset_operations import expire_offsets, forget_topics
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.controller import Controller
    from odradek.coordinator.consumer.patterns import MatchedPatterns, PatternMatch
    from odradek.coordinator.decision import TimerKey
    from odradek.host.clock import Timer
    from odradek.host.host import Host
    from odradek.metadata.image import MetadataImage, TopicImage
    from odradek.replica.clock_skew_guard import ClockSkewGuard
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

T = TypeVar("T")

OFFSETS_TOPIC = "__consumer_offsets"
GROUPS_PER_SLICE = 50
OFFSETS_PER_SLICE = 2000  # a few milliseconds if all of them go


class _Place:
    """A shard with what it needs from this broker: its partition, its timers, and topics deleted while it loads."""

    def __init__(self, partition: Partition, coordinator: GroupCoordinator, host: Host) -> None:
        self.partition = partition
        self._coordinator = coordinator
        self.journal = GroupJournal(partition, host.clock)
        self.timers = GroupTimers(host.clock, self._on_timer)
        self.shard = GroupShard(
            self.journal, self.timers, host.clock.now_ms, coordinator.settings, coordinator.image, self._match
        )
        self.deleted_topics: list[TopicImage] = []

    def _on_timer(self, key: TimerKey) -> None:
        self.shard.on_timer(key)

    def _match(self, wish: PatternMatch) -> None:
        self._coordinator.run(self._match_later(wish))

    async def _match_later(self, wish: PatternMatch) -> None:
        matched = await self._coordinator.match(wish.patterns)
        if self.shard.is_loaded:
            self.shard.patterns_matched(wish, matched)

    async def forget_topics(self) -> None:
        """In slices: a shard may hold a million offsets."""
        topics, self.deleted_topics = self.deleted_topics, []
        in_slice = 0
        for group_id in self.shard.offsets.group_ids() if topics else ():
            in_slice += len(self.shard.offsets.partitions(group_id)) + 1
            forget_topics(self.shard, group_id, topics)
            if in_slice >= OFFSETS_PER_SLICE:
                in_slice = 0
                await asyncio.sleep(0)
                if not self.shard.is_loaded:
                    return

    def end(self) -> None:
        self.shard.unload()
        self.timers.stop_all()


class GroupCoordinator:
    def __init__(self, host: Host, controller: Controller, partitions: PartitionTable, time: ClockSkewGuard) -> None:
        self._host = host
        self._time = time
        self._controller = controller
        self._partitions = partitions
        self._places: dict[int, _Place] = {}
        self._background: set[asyncio.Future[Any]] = set()
        self._expiry_timer: Timer | None = None
        self._settings: tuple[BrokerConfig, GroupSettings] | None = None
        self._is_stopping = False
        self._partition_count = 1

    def settings(self) -> GroupSettings:
        """As they are now: some settings change at run time."""
        config = self._controller.broker_config
        if self._settings is None or self._settings[0] is not config:
            self._settings = config, group_settings(config)
        return self._settings[1]

    def image(self) -> MetadataImage:
        return self._controller.image

    async def match(self, patterns: Iterable[str]) -> MatchedPatterns:
        return await self._host.workers.run(match_patterns, patterns, self._controller.image)

    async def match_new(self, pattern: str) -> MatchedPatterns:
        """InvalidPattern when it is none."""
        return await self._host.workers.run(match_new_pattern, pattern, self._controller.image)

    # The life of shards

    def start(self) -> None:
        """Begin to load what the log holds; until a shard is loaded its clients are told to come again."""
        self._add_places()
        self.run(self._load_all(list(self._places.values())))
        self._schedule_expiry()
        self._controller.subscribe(self.follow)

    def stop(self) -> None:
        """Whoever waits is told to look for another coordinator."""
        self._is_stopping = True
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        for task in self._background:
            task.cancel()
        for place in self._places.values():
            place.end()
        self._places.clear()

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """The metadata changed; the partition table has followed already."""
        if before.topics is after.topics or self._is_stopping:
            return
        old, new = before.topics.get(OFFSETS_TOPIC), after.topics.get(OFFSETS_TOPIC)
        if old is not None and (new is None or new.topic_id != old.topic_id):
            for place in self._places.values():
                place.end()
            self._places.clear()
        if new is not None:
            for place in self._add_places():
                place.shard.finish_loading()  # a new partition holds nothing
        deleted = [topic for name, topic in before.topics.items() if topic.topic_id not in after.topics_by_id]
        if deleted:
            for place in self._places.values():
                place.deleted_topics += deleted
                if place.shard.is_loaded:
                    self.run(place.forget_topics())

    def _add_places(self) -> list[_Place]:
        added = []
        topic = self._controller.image.topics.get(OFFSETS_TOPIC)
        if topic is not None and not self._places:
            self._partition_count = len(topic.partitions)
        for index, partition in (self._partitions.topic(OFFSETS_TOPIC) or {}).items():
            known = self._places.get(index)
            if index < self._partition_count and (known is None or known.partition is not partition):
                if known is not None:  # its log could not be created before
                    known.end()
                place = self._places[partition.index] = _Place(partition, self, self._host)
                added.append(place)
        return added

    async def _load_all(self, places: list[_Place]) -> None:
        began_ms = self._host.clock.monotonic_ms()
        count = 0
        for place in places:
            if not self._is_current(place):
                continue
            if not place.partition.is_leader:  # an empty shard would say that nothing was committed
                log.error("groups cannot be loaded: their log directory failed", partition=place.partition.index)
                continue
            try:
                count += await load_shard(place.shard, place.partition, place.partition.workers.files)
            except OSError as problem:
                log.error("groups could not be loaded", partition=place.partition.index, reason=str(problem))
                continue
            if not self._is_current(place):
                continue
            place.shard.finish_loading()
            await place.forget_topics()
        if count:
            took_ms = round(self._host.clock.monotonic_ms() - began_ms)
            log.info("groups loaded", records=count, partitions=len(places), took_ms=took_ms)

    def _is_current(self, place: _Place) -> bool:
        """Its topic may be deleted while it waits or loads."""
        return self._places.get(place.partition.index) is place

    def run(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Finding a group's shard

    def partition_of(self, group_id: str) -> int:
        """By the partitions that the topic was found with: when it grows, groups stay where their records are, until
        the next start (as in Kafka, where it is not to be grown either)."""
        return _partition_of(group_id, self._partition_count)

    def find(self, group_id: str) -> GroupShard | ErrorCode:
        """The shard, or why there is none to ask now."""
        if self._is_stopping:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        place = self._places.get(self.partition_of(group_id))
        if place is None:
            return ErrorCode.NOT_COORDINATOR
        return place.shard if place.shard.is_loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def has_topic(self) -> bool:
        return OFFSETS_TOPIC in self._controller.image.topics

    def leader_of(self, group_id: str) -> int | None:
        """The broker that coordinates the group, if the cluster has one for it now."""
        topic = self._controller.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[self.partition_of(group_id)].leader
        return None if leader == NO_LEADER else leader

    def shards(self) -> Iterator[GroupShard]:
        for place in self._places.values():
            yield place.shard

    async def ensure_topic(self) -> None:
        """Made when somebody first looks for a coordinator, on as many brokers as there are."""
        image = self._controller.image
        if OFFSETS_TOPIC in image.topics:
            return
        values: Any = self._controller.broker_config.values
        topic = NewTopic(
            name=OFFSETS_TOPIC,
            partition_count=values["offsets.topic.num.partitions"],
            replication_factor=min(values["offsets.topic.replication.factor"], max(len(image.brokers), 1)),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(values["offsets.topic.segment.bytes"]),
            },
        )
        (result,) = await self._controller.create_topics([topic])
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.error("the topic of committed offsets could not be made", reason=result.message)

    def answer(self, group_id: str, response: T | asyncio.Future[T]) -> T | Awaitable[T]:
        """The response when it may go out: it may have to wait for others, and for the disk (`flush.messages`)."""
        if isinstance(response, asyncio.Future):
            if not response.done():
                return self._answer_later(group_id, response)
            response = response.result()
        place = self._places.get(self.partition_of(group_id))
        if place is not None and place.journal.must_flush:
            return _answer_flushed([place.journal], response)
        return response

    def answer_all(self, group_ids: Iterable[str], response: T) -> T | Awaitable[T]:
        """The same for a request that changed several groups."""
        places = {self._places.get(self.partition_of(group_id)) for group_id in group_ids}
        journals = [place.journal for place in places if place is not None and place.journal.must_flush]
        return _answer_flushed(journals, response) if journals else response

    async def _answer_later(self, group_id: str, response: asyncio.Future[T]) -> T:
        answer = await response
        place = self._places.get(self.partition_of(group_id))
        if place is not None and place.journal.must_flush:
            await place.journal.flush()
        return answer

    # Expiry

    def _schedule_expiry(self) -> None:
        delay_ms = self.settings().offsets_retention_check_interval_ms
        self._expiry_timer = self._host.clock.call_after(delay_ms, lambda: self.run(self._expire()))

    async def _expire(self) -> None:
        try:
            # A clock that leapt ahead would make every offset old.
            for place in list(self._places.values()) if not self._time.is_skewed else ():
                if not place.shard.is_loaded:
                    continue
                for number, group_id in enumerate(list(place.shard.groups)):
                    expire_offsets(place.shard, group_id)
                    if number % GROUPS_PER_SLICE == 0:
                        await asyncio.sleep(0)
        finally:
            if not self._is_stopping:
                self._schedule_expiry()


async def _answer_flushed(journals: Iterable[GroupJournal], response: T) -> T:
    for journal in journals:
        await journal.flush()
    return response


@functools.lru_cache(maxsize=16_384)
def _partition_of(group_id: str, partition_count: int) -> int:
    return partition_of(group_id, partition_count)
