"""The internal topic of a coordinator. It is created when a client first looks for a coordinator, and the runtime has a
shard for each of its partitions that this broker leads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from odradek.controller.requests import CreateTopics
from odradek.coordinator.runtime.topic_logs import TopicLogs
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.controller.decisions.topics import NewTopic
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.host.clock import Clock
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.entities import PartitionImage, TopicImage
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

CREATION_TIMEOUT_S = 5.0

Design: TypeAlias = "Callable[[BrokerConfig, int], NewTopic]"
"""The topic to create, from the broker's configuration and the number of brokers."""


def replication_factor(config: BrokerConfig, name: str, broker_count: int) -> int:
    """The default is limited to the number of brokers. A cluster for which the property is set waits until it has so
    many brokers, as Apache Kafka does: the topic would have too few replicas for ever."""
    configured = cast("int", config.values[name])
    is_required = config.zookeeper_connect is not None and name in config.static_values
    return configured if is_required else min(configured, broker_count)


class InternalTopic:
    def __init__(
        self,
        name: str,
        design: Design,
        runtime: CoordinatorRuntime[Any],
        metadata: MetadataCache,
        controller: ControllerChannel,
        partitions: PartitionTable,
        clock: Clock,
    ) -> None:
        self._name = name
        self._design = design
        self._runtime = runtime
        self._metadata = metadata
        self._controller = controller
        self._partitions = partitions
        self._logs = TopicLogs(name, partitions, clock)
        self._followed_id: UUID | None = None
        runtime.is_opening = self.is_opening

    @property
    def exists(self) -> bool:
        return self._image is not None

    @property
    def is_followed(self) -> bool:
        """Whether the topic exists, and the runtime has followed its leaderships. The metadata has a new topic earlier,
        while its logs are opened."""
        topic = self._image
        return topic is not None and topic.topic_id == self._followed_id

    @property
    def _image(self) -> TopicImage | None:
        return self._metadata.image.topics.get(self._name)

    def partition_of(self, key: str) -> int:
        """The partition of a key. While the runtime has no shards, the metadata has the number of partitions."""
        topic = self._image
        if topic is not None:
            self._runtime.resize(len(topic.partitions))
        return self._runtime.partition_of(key)

    def _partition_image_of(self, key: str) -> PartitionImage | None:
        index = self.partition_of(key)
        topic = self._image
        return topic.partitions[index] if topic is not None and index < len(topic.partitions) else None

    def leader_of(self, key: str) -> int | None:
        """The broker that coordinates the key, or None while its partition has no leader."""
        image = self._partition_image_of(key)
        return None if image is None or image.leader == NO_LEADER else image.leader

    def is_opening(self, key: str) -> bool:
        """Whether the runtime will soon have the shard of the key: by the metadata this broker leads the partition,
        whose log is being opened or whose leadership is being applied. False if the log has failed."""
        image = self._partition_image_of(key)
        if image is None or image.leader != self._metadata.broker_config.node_id:
            return False
        partition = self._partitions.find(self._name, image.index)
        if partition is None or partition.is_leader:
            return True
        return partition.is_online and partition.leader_epoch < image.leader_epoch

    async def ensure(self) -> None:
        """Create the topic if it does not exist, on as many brokers as there are, and wait until the runtime follows
        it. Returns earlier when that takes long: clients retry."""
        if self.is_followed:
            return
        try:
            async with asyncio.timeout(CREATION_TIMEOUT_S):
                if self.exists:
                    await self._metadata.wait_until_applied(self._metadata.image.version)
                else:
                    await self._create()
        except (StoreError, TimeoutError) as problem:
            reason = str(problem) or f"not within {CREATION_TIMEOUT_S:g} s"
            log.warning("an internal topic is not available", topic=self._name, reason=reason)

    async def _create(self) -> None:
        broker_count = max(len(self._metadata.image.brokers), 1)
        topic = self._design(self._metadata.broker_config, broker_count)
        (result,) = await self._controller.ask(CreateTopics([topic], timeout_ms=CREATION_TIMEOUT_S * 1000))
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.error("an internal topic could not be created", topic=self._name, reason=result.message)

    def follow_leaderships(self) -> None:
        """Load and unload shards. Called when the metadata has changed, after the partition table, and when a log that
        could not be created before is open."""
        topic = self._image
        self._followed_id = None if topic is None else topic.topic_id
        self._runtime.follow(self._logs.led(), 1 if topic is None else len(topic.partitions))
