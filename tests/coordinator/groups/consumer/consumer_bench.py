"""A shard with topics and members of the newer protocol, in virtual time; see `shard_bench`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from odradek.coordinator.groups.consumer.group import ConsumerGroup
from odradek.coordinator.groups.consumer.heartbeat import ConsumerHeartbeat
from odradek.coordinator.groups.consumer.patterns import match_new_pattern, match_patterns
from odradek.coordinator.groups.group_settings import ConsumerSettings
from odradek.metadata.changes import PartitionsAdded, TopicCreated, TopicDeleted
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordinator.groups.shard_bench import GROUP, Answer, ShardBench

CONSUMER_SESSION_MS = 45_000
CONSUMER_REBALANCE_MS = 300_000

Owned = set[tuple[str, int]]


class ConsumerBench(ShardBench):
    def __init__(
        self, assignment_interval_ms: int = 0, limits: Mapping[str, tuple[int, int]] | None = None, **settings: Any
    ) -> None:
        consumer = ConsumerSettings(
            session_timeout_ms=CONSUMER_SESSION_MS, assignment_interval_ms=assignment_interval_ms, limits=limits or {}
        )
        super().__init__(consumer=consumer, **settings)
        self._topic_ids = 0

    # Topics

    def create_topic(self, name: str, partition_count: int) -> None:
        self._topic_ids += 1
        partitions = tuple(_partition(index) for index in range(partition_count))
        self.image = self.image.apply(TopicCreated(TopicImage(name, UUID(int=self._topic_ids), partitions, False)))

    def add_partition(self, name: str) -> None:
        topic = self.image.topics[name]
        self.image = self.image.apply(PartitionsAdded(topic.topic_id, (_partition(len(topic.partitions)),)))

    def delete_topic(self, name: str) -> None:
        self.image = self.image.apply(TopicDeleted(self.image.topics[name].topic_id))

    # Members

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        owned: Owned | None = None,
        may_describe: Callable[[str], bool] = lambda _: True,
        **fields: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            topic_partitions=None if owned is None else self._encode(owned),
            **fields,
        )
        pattern, matched = request.subscribed_topic_regex, None
        if pattern and not self.shard.knows_pattern(GROUP, pattern):
            matched = match_new_pattern(pattern, self.image)
        answer = Answer()
        self.shard.consumer_heartbeat(ConsumerHeartbeat(request, "client", "/host", may_describe, answer, matched))
        assert isinstance(answer.response, ConsumerGroupHeartbeatResponse)
        return answer.response

    def join_consumer(
        self, member_id: str, topics: Iterable[str] | None = ("topic",), **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        return self.beat(
            member_id,
            0,
            owned=set(),
            rebalance_timeout_ms=CONSUMER_REBALANCE_MS,
            subscribed_topic_names=None if topics is None else list(topics),
            **fields,
        )

    def match(self) -> None:
        """Do what was asked for beside the heartbeats."""
        while self.matches:
            match = self.matches.pop(0)
            self.shard.patterns_matched(match, match_patterns(match.patterns, self.image))

    def assigned(self, response: ConsumerGroupHeartbeatResponse) -> Owned | None:
        """What the answer tells the member to have; None when it says nothing of it."""
        assert response.error_code == ErrorCode.NONE, response.error_message
        if response.assignment is None:
            return None
        names = {topic_id: topic.name for topic_id, topic in self.image.topics_by_id.items()}
        return {
            (names.get(each.topic_id, str(each.topic_id)), partition)
            for each in response.assignment.topic_partitions
            for partition in each.partitions
        }

    def _encode(self, owned: Owned) -> list[TopicPartitions]:
        topics: dict[str, list[int]] = {}
        for name, partition in owned:
            topics.setdefault(name, []).append(partition)
        return [
            TopicPartitions(topic_id=self._topic_id(name), partitions=partitions) for name, partitions in topics.items()
        ]

    def _topic_id(self, name: str) -> UUID:
        return self.image.topics[name].topic_id if name in self.image.topics else UUID(int=2**64)


def _partition(index: int) -> PartitionImage:
    return PartitionImage(index, (0,), (0,), 0, 0, 0)


def describe(group: object) -> object:
    """What of a consumer group must survive."""
    if not isinstance(group, ConsumerGroup):
        return None
    static: Mapping[str, str] = group.static_members
    return (
        (group.epoch, group.metadata_hash, group.target_epoch, group.target_timestamp_ms),
        group.members,
        static,
        group.targets,
        group.patterns,
        group.state,
    )
