"""The internal topic of a coordinator. It is created when a client first looks for a coordinator, and the runtime has a
shard for each of its partitions that this broker leads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from odradek.coordinator.runtime.topic_logs import TopicLogs
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.controller.topic_decisions import NewTopic
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.host.clock import Clock
    from odradek.metadata.cache import MetadataCache
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
        self._logs = TopicLogs(name, partitions, clock)

    @property
    def exists(self) -> bool:
        return self._name in self._metadata.image.topics

    def leader_of(self, key: str) -> int | None:
        """The broker that coordinates the key, or None while its partition has no leader."""
        topic = self._metadata.image.topics.get(self._name)
        if topic is None:
            return None
        leader = topic.partitions[self._runtime.partition_of(key)].leader
        return None if leader == NO_LEADER else leader

    async def ensure(self) -> None:
        """Create the topic if it does not exist, on as many brokers as there are. Returns without it when that takes
        long: without a controller clients retry."""
        if self.exists:
            return
        broker_count = max(len(self._metadata.image.brokers), 1)
        topic = self._design(self._metadata.broker_config, broker_count)
        try:
            async with asyncio.timeout(CREATION_TIMEOUT_S):
                (result,) = await self._controller.create_topics([topic], timeout_ms=CREATION_TIMEOUT_S * 1000)
        except (StoreError, TimeoutError) as problem:
            reason = str(problem) or f"not within {CREATION_TIMEOUT_S:g} s"
            log.warning("an internal topic could not be created", topic=self._name, reason=reason)
            return
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.error("an internal topic could not be created", topic=self._name, reason=result.message)

    def follow_leaderships(self) -> None:
        """Load and unload shards. Called when the metadata has changed, after the partition table, and when a log that
        could not be created before is open."""
        topic = self._metadata.image.topics.get(self._name)
        self._runtime.follow(self._logs.led(), 1 if topic is None else len(topic.partitions))
