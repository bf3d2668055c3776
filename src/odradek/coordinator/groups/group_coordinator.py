"""The coordinator of groups: shards of `__consumer_offsets` on the runtime, with what their rules need of the broker.

It provides settings, metadata and matching of topic patterns, and does the work that no request asks for: it expires
offsets, and removes the offsets of deleted topics.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from odradek.controller.decisions.topics import NewTopic
from odradek.coordinator.groups.classic.join_budget import JoinBudget
from odradek.coordinator.groups.consumer.patterns import match_new_pattern, match_patterns
from odradek.coordinator.groups.group_settings import GroupSettings, group_settings
from odradek.coordinator.groups.group_shard import GroupShard
from odradek.coordinator.groups.offset_operations import (
    expire_offsets,
    forget_pending_offsets,
    forget_topics,
)
from odradek.coordinator.pattern_matching import PatternMatching
from odradek.coordinator.runtime.expiry import Expiry
from odradek.coordinator.runtime.internal_topic import InternalTopic, replication_factor
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.coordinator.groups.consumer.patterns import MatchedPatterns
    from odradek.coordinator.groups.decision import PatternMatch
    from odradek.coordinator.runtime.shard import Shard
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
FORGET_AGAIN_MS = 30_000
SHOWN_TOPICS = 10


def offsets_topic(config: BrokerConfig, broker_count: int) -> NewTopic:
    values: Mapping[str, Any] = config.values
    return NewTopic(
        name=OFFSETS_TOPIC,
        partition_count=values["offsets.topic.num.partitions"],
        replication_factor=replication_factor(config, "offsets.topic.replication.factor", broker_count),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(values["offsets.topic.segment.bytes"]),
        },
    )


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
        self._metadata = metadata
        self._settings: tuple[BrokerConfig, GroupSettings] | None = None
        self._is_stopping = False
        self.pattern_matching = PatternMatching(host.workers)
        self._joins = JoinBudget()
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            host.clock,
            self._make_shard,
            answer_timeout_ms=lambda: self.settings().commit_timeout_ms,
            on_active=self._forget_deleted_topics,
        )
        self.topic = InternalTopic(
            OFFSETS_TOPIC, offsets_topic, self._runtime, metadata, controller, partitions, host.clock
        )
        self._expiry = Expiry(
            self._runtime,
            host.clock,
            time,
            interval_ms=lambda: self.settings().offsets_retention_check_interval_ms,
            keys=lambda shard: shard.groups,
            expire=expire_offsets,
            keys_per_slice=GROUPS_PER_SLICE,
        )
        self.find = self._runtime.find
        self.find_for_commit = self._runtime.find_for_shared_write
        self.shards = self._runtime.shards
        self.present_shards = self._runtime.present_shards

    def _make_shard(self, shard: Shard[GroupShard]) -> GroupShard:
        return GroupShard(shard, self._host.clock.now_ms, self.settings, self.image, self._match_later, self._joins)

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
        return OFFSETS_TOPIC, self.topic.partition_of(group_id)

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
        """InvalidPattern when it is not a pattern, PatternsStopped when the broker stops."""
        return await self.pattern_matching.run(match_new_pattern, pattern, self._metadata.image)

    def _match_later(self, shard: GroupShard, match: PatternMatch) -> None:
        self._runtime.run(self._match(shard, match))

    async def _match(self, shard: GroupShard, match: PatternMatch) -> None:
        matched = await self.pattern_matching.run(match_patterns, match.patterns, self._metadata.image)
        if shard.is_active:
            shard.patterns_matched(match, matched)

    # Shards

    def start(self) -> None:
        """Begin to load the shards; a client whose shard is loading gets COORDINATOR_LOAD_IN_PROGRESS."""
        self.topic.follow_leaderships()
        self._expiry.start()
        self._metadata.subscribe(self.follow)

    def stop(self) -> None:
        """Every request that waits gets NOT_COORDINATOR."""
        self._is_stopping = True
        self._expiry.stop()
        self._runtime.stop()
        self.pattern_matching.close()

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Called when the metadata has changed, after the partition table."""
        if before.topics is after.topics or self._is_stopping:
            return
        self.topic.follow_leaderships()
        deleted = [topic for topic in before.topics.values() if topic.topic_id not in after.topics_by_id]
        for shard in self._runtime.shards() if deleted else ():
            shard.machine.deleted_topics += deleted
            if shard.is_active:
                self._forget_deleted_topics(shard.machine)

    def _forget_deleted_topics(self, shard: GroupShard) -> None:
        if shard.deleted_topics and shard.is_active and not self._is_stopping:
            self._runtime.run(self.forget_topics(shard))

    async def forget_topics(self, shard: GroupShard) -> None:
        """Removes the offsets of deleted topics in slices, because a shard may hold a million offsets. Retried if
        records could not be written; until then OffsetFetch compares topic ids."""
        topics, shard.deleted_topics = shard.deleted_topics, []
        in_slice = 0
        errors = {forget_pending_offsets(shard, topics)}
        for group_id in shard.offsets.group_ids():
            in_slice += len(shard.offsets.partitions(group_id)) + 1
            errors.add(forget_topics(shard, group_id, topics))
            if in_slice >= OFFSETS_PER_SLICE:
                in_slice = 0
                await asyncio.sleep(0)
                if not shard.is_active:
                    return
        errors.discard(ErrorCode.NONE)
        if errors and shard.is_active:
            names = ", ".join(topic.name for topic in topics[:SHOWN_TOPICS])
            log.warning("offsets of deleted topics stay", topics=names, error=min(errors).name)
            shard.deleted_topics += topics
            self._host.clock.call_after(FORGET_AGAIN_MS, lambda: self._forget_deleted_topics(shard))
