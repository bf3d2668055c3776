"""The coordinator of groups: shards of `__consumer_offsets` on the runtime, with what their rules need of the broker.

It provides settings, metadata and matching of topic patterns, and does the work that no request asks for: it expires
offsets, and removes the offsets of deleted topics.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from odradek.controller.topic_decisions import NewTopic
from odradek.coordinator.groups.consumer.patterns import match_new_pattern, match_patterns
from odradek.coordinator.groups.group_settings import GroupSettings, group_settings
from odradek.coordinator.groups.group_shard import GroupShard
from odradek.coordinator.groups.offsets.offset_operations import expire_offsets, forget_topics
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.topic_logs import TopicLogs
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.coordinator.groups.consumer.patterns import MatchedPatterns
    from odradek.coordinator.groups.decision import PatternMatch
    from odradek.coordinator.runtime.shard import Shard
    from odradek.host.clock import Timer
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.control_records import EndTransactionMarker
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.clock_skew_guard import ClockSkewGuard
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
GROUPS_PER_SLICE = 50
OFFSETS_PER_SLICE = 2000  # a few milliseconds when all of them are removed


class GroupCoordinator:
    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        controller: ControllerChannel,
        partitions: PartitionTable,
        time: ClockSkewGuard,
    ) -> None:
        self._host = host
        self._time = time
        self._metadata = metadata
        self._controller = controller
        self._logs = TopicLogs(OFFSETS_TOPIC, partitions, host.clock)
        self._expiry_timer: Timer | None = None
        self._settings: tuple[BrokerConfig, GroupSettings] | None = None
        self._is_stopping = False
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            host.clock,
            self._make_shard,
            answer_timeout_ms=lambda: self.settings().commit_timeout_ms,
            on_active=self._forget_deleted_topics,
        )
        self.find = self._runtime.find
        self.find_for_commit = self._runtime.find_for_shared_write
        self.shards = self._runtime.shards

    def _make_shard(self, shard: Shard[GroupShard]) -> GroupShard:
        return GroupShard(shard, self._host.clock.now_ms, self.settings, self.image, self._match_later)

    def settings(self) -> GroupSettings:
        """Read again for every decision, because some settings change at run time."""
        config = self._metadata.broker_config
        if self._settings is None or self._settings[0] is not config:
            self._settings = config, group_settings(config)
        return self._settings[1]

    def image(self) -> MetadataImage:
        return self._metadata.image

    # Transactions

    def partition_of(self, group_id: str) -> TopicPartition:
        """The partition of the group's offsets, which takes part in a transaction that commits them."""
        return OFFSETS_TOPIC, self._runtime.partition_of(group_id)

    def end_transaction(
        self, partition: int, marker: EndTransactionMarker, transaction_version: int
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Write a marker to a partition of the topic, and apply or forget the offsets of its transaction."""
        shard = self._runtime.find_shard(partition)
        if isinstance(shard, ErrorCode):
            return shard
        error = shard.end_transaction(marker, transaction_version)
        return shard.answer_directly(error, lambda failure: failure)

    # Topic patterns

    async def match_new(self, pattern: str) -> MatchedPatterns:
        """InvalidPattern when it is not a pattern."""
        return await self._host.workers.run(match_new_pattern, pattern, self._metadata.image)

    def _match_later(self, shard: GroupShard, match: PatternMatch) -> None:
        self._runtime.run(self._match(shard, match))

    async def _match(self, shard: GroupShard, match: PatternMatch) -> None:
        matched = await self._host.workers.run(match_patterns, match.patterns, self._metadata.image)
        if shard.is_active:
            shard.patterns_matched(match, matched)

    # Shards

    def start(self) -> None:
        """Begin to load the shards; a client whose shard is loading gets COORDINATOR_LOAD_IN_PROGRESS."""
        self._follow_leaderships(self._metadata.image)
        self._schedule_expiry()
        self._metadata.subscribe(self.follow)

    def stop(self) -> None:
        """Every request that waits gets NOT_COORDINATOR."""
        self._is_stopping = True
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        self._runtime.stop()

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Called when the metadata has changed, after the partition table."""
        if before.topics is after.topics or self._is_stopping:
            return
        self._follow_leaderships(after)
        deleted = [topic for topic in before.topics.values() if topic.topic_id not in after.topics_by_id]
        for shard in self._runtime.shards() if deleted else ():
            shard.machine.deleted_topics += deleted
            if shard.is_active:
                self._forget_deleted_topics(shard.machine)

    def follow_late_opening(self) -> None:
        """A partition of the topic, whose log could not be created before, can be led."""
        self._follow_leaderships(self._metadata.image)

    def _follow_leaderships(self, image: MetadataImage) -> None:
        topic = image.topics.get(OFFSETS_TOPIC)
        self._runtime.follow(self._logs.led(), 1 if topic is None else len(topic.partitions))

    def _forget_deleted_topics(self, shard: GroupShard) -> None:
        if shard.deleted_topics:
            self._runtime.run(self.forget_topics(shard))

    async def forget_topics(self, shard: GroupShard) -> None:
        """In slices, because a shard may hold a million offsets."""
        topics, shard.deleted_topics = shard.deleted_topics, []
        in_slice = 0
        for group_id in shard.offsets.group_ids():
            in_slice += len(shard.offsets.partitions(group_id)) + 1
            forget_topics(shard, group_id, topics)
            if in_slice >= OFFSETS_PER_SLICE:
                in_slice = 0
                await asyncio.sleep(0)
                if not shard.is_active:
                    return

    # The topic

    @property
    def has_topic(self) -> bool:
        return OFFSETS_TOPIC in self._metadata.image.topics

    def leader_of(self, group_id: str) -> int | None:
        """The broker that coordinates the group, or None while its partition has no leader."""
        topic = self._metadata.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[self._runtime.partition_of(group_id)].leader
        return None if leader == NO_LEADER else leader

    async def ensure_topic(self) -> None:
        """Create the topic when a client first looks for a coordinator, on as many brokers as there are."""
        image = self._metadata.image
        if OFFSETS_TOPIC in image.topics:
            return
        values: Any = self._metadata.broker_config.values
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
            log.error("the topic of committed offsets could not be created", reason=result.message)

    # Expiry

    def _schedule_expiry(self) -> None:
        delay_ms = self.settings().offsets_retention_check_interval_ms
        self._expiry_timer = self._host.clock.call_after(delay_ms, lambda: self._runtime.run(self._expire()))

    async def _expire(self) -> None:
        try:
            # By a clock that has jumped ahead, every offset would be old.
            for shard in self._runtime.shards() if not self._time.is_skewed else ():
                await self._expire_shard(shard.machine)
        finally:
            if not self._is_stopping:
                self._schedule_expiry()

    async def _expire_shard(self, shard: GroupShard) -> None:
        for number, group_id in enumerate(list(shard.groups)):
            if not shard.is_active:
                return
            expire_offsets(shard, group_id)
            if number % GROUPS_PER_SLICE == 0:
                await asyncio.sleep(0)
