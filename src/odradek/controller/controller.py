"""The one writer of metadata. It decides on the current image, commits to the store, applies, and tells listeners.

Decisions are pure (`topic_decisions`, `config_decisions`, `client_quotas`); here is only their order: one at a time.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from odradek.configuration.config_descriptions import describe_topic_configs
from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.dynamic_configs import usable_dynamic_configs
from odradek.controller.config_decisions import (
    ConfigAlteration,
    ConfigReplacement,
    decide_alteration,
    decide_replacement,
    repeated_resources,
)
from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
from odradek.controller.topic_decisions import (
    Cluster,
    NewPartitions,
    NewTopic,
    decide_new_leader_epochs,
    decide_partitions,
    decide_topics,
    duplicates,
)
from odradek.controller.topic_deletion import decide_deletions
from odradek.metadata.changes import ClientQuotaChanged, ConfigsChanged, ProducerIdsAllocated
from odradek.metadata.client_quotas import QuotaAlteration, QuotaEntity, decide_quota
from odradek.metadata.image import BrokerImage, MetadataImage
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.configuration.config_types import ConfigEntry
    from odradek.host.entropy import Entropy
    from odradek.metadata.changes import Change
    from odradek.metadata.store import MetadataStore

T = TypeVar("T")
# Called after every commit with the image before and after; what it awaits is done before the request is answered.
ImageListener = Callable[[MetadataImage, MetadataImage], Awaitable[None] | None]
# How often a decision is made anew because someone else wrote first; nobody else does while there is one node.
_ATTEMPTS = 5


class Controller:
    def __init__(self, store: MetadataStore, config: BrokerConfig, entropy: Entropy) -> None:
        self._store = store
        self._static_config = config
        self._entropy = entropy
        self._listeners: list[ImageListener] = []
        self._one_writer = asyncio.Lock()
        self._writes: set[asyncio.Task[object]] = set()
        self._is_stopping = False
        self._image: MetadataImage | None = None
        self.broker_config = config
        """This broker's configuration with what was altered at run time; a new value after each change."""

    @property
    def image(self) -> MetadataImage:
        if self._image is None:
            raise RuntimeError("the controller has not loaded its image yet")
        return self._image

    def subscribe(self, listener: ImageListener) -> None:
        self._listeners.append(listener)

    async def load(self) -> MetadataImage:
        """Reads the store; to be called once, before anything else."""
        async with self._one_writer:
            self._image = await self._store.load()
            self._refresh_config()
            return self._image

    async def register_broker(self, broker: BrokerImage) -> None:
        """Makes a broker known with the addresses that clients use. Not stored: it registers at every start."""
        async with self._one_writer:
            await self._publish(self.image.with_broker(broker))

    async def stop_writing(self) -> None:
        """Finish what is being written and take nothing more: the broker stops."""
        self._is_stopping = True
        if self._writes:
            await asyncio.wait(self._writes)

    async def close(self) -> None:
        async with self._one_writer:
            await self._store.close()

    async def create_topics(self, requests: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicResult]:
        repeated = duplicates(request.name for request in requests)

        def decide(cluster: Cluster) -> tuple[list[TopicResult], list[Change]]:
            single = [request for request in requests if request.name not in repeated]
            results: list[TopicResult] = []
            changes: list[Change] = []
            described: dict[frozenset[tuple[str, str | None]], tuple[ConfigEntry, ...]] = {}
            for request, decision in decide_topics(single, cluster):
                if isinstance(decision, Refusal):
                    results.append(TopicResult(name=request.name, error=decision.error, message=decision.message))
                    continue
                topic, topic_changes = decision
                changes += topic_changes
                # Thousands of topics in one request mostly have the same settings.
                settings = frozenset(request.configs.items())
                if settings not in described:
                    described[settings] = _describe_new_topic(request, cluster.config)
                results.append(
                    TopicResult(name=topic.name, topic_id=topic.topic_id, topic=topic, configs=described[settings])
                )
            results += [
                TopicResult(name=name, error=ErrorCode.INVALID_REQUEST, message="Duplicate topic name.")
                for name in repeated
            ]
            return results, [] if validate_only else changes

        return await self._write(decide)

    async def delete_topics(self, names: Sequence[str] = (), topic_ids: Sequence[uuid.UUID] = ()) -> list[TopicResult]:
        return await self._write(
            lambda cluster: decide_deletions(
                cluster.image, names, topic_ids, is_enabled=cluster.config.delete_topic_enable
            )
        )

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> list[TopicResult]:
        repeated = duplicates(request.name for request in requests)

        def decide(cluster: Cluster) -> tuple[list[TopicResult], list[Change]]:
            results = [
                TopicResult(name=name, error=ErrorCode.INVALID_REQUEST, message="Duplicate topic name.")
                for name in repeated
            ]
            changes: list[Change] = []
            for request in requests:
                if request.name in repeated:
                    continue
                decision = decide_partitions(request, cluster)
                if isinstance(decision, Refusal):
                    results.append(TopicResult(name=request.name, error=decision.error, message=decision.message))
                else:
                    results.append(TopicResult(name=request.name))
                    changes += decision
            return results, [] if validate_only else changes

        return await self._write(decide)

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._alter(requests, validate_only=validate_only)

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._alter(requests, validate_only=validate_only)

    async def _alter(
        self, requests: Sequence[ConfigReplacement | ConfigAlteration], *, validate_only: bool
    ) -> list[ConfigResult]:
        repeated = repeated_resources(requests)

        def decide(cluster: Cluster) -> tuple[list[ConfigResult], list[Change]]:
            results: list[ConfigResult] = []
            changes: list[Change] = []
            decision: ConfigsChanged | Refusal
            for request in requests:
                resource_type, name = request.resource_type, request.resource_name
                if (resource_type, name) in repeated:
                    decision = Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                elif isinstance(request, ConfigReplacement):
                    decision = decide_replacement(request, cluster.image, cluster.config)
                else:
                    decision = decide_alteration(request, cluster.image, cluster.config)
                error, message = decision if isinstance(decision, Refusal) else (ErrorCode.NONE, None)
                results.append(
                    ConfigResult(resource_type=resource_type, resource_name=name, error=error, message=message)
                )
                if not isinstance(decision, Refusal) and decision.values:
                    changes.append(decision)
            return results, [] if validate_only else changes

        return await self._write(decide)

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]:
        def decide(cluster: Cluster) -> tuple[list[QuotaResult], list[Change]]:
            results: dict[QuotaEntity, QuotaResult] = {}
            changes: list[Change] = []
            for alteration in alterations:
                entity = frozenset(alteration.entity)
                decision = (
                    Refusal(ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity")
                    if entity in results
                    else decide_quota(alteration, cluster.image.client_quotas)
                )
                if isinstance(decision, Refusal):
                    results[entity] = QuotaResult(entity=entity, error=decision.error, message=decision.message)
                else:
                    results[entity] = QuotaResult(entity=entity)
                    if decision:
                        changes.append(ClientQuotaChanged(entity, decision))
            return list(results.values()), [] if validate_only else changes

        return await self._write(decide)

    async def allocate_producer_ids(self, count: int) -> int:
        """The first of `count` ids that no one else will ever get, not even after a crash."""

        def decide(cluster: Cluster) -> tuple[int, list[Change]]:
            first = cluster.image.next_producer_id
            return first, [ProducerIdsAllocated(first + count)]

        return await self._write(decide)

    async def bump_leader_epochs(self) -> None:
        """At start: every partition this broker leads gets its next leader epoch."""

        def decide(cluster: Cluster) -> tuple[None, list[Change]]:
            return None, decide_new_leader_epochs(cluster.image, self._static_config.node_id)

        await self._write(decide)

    async def _write(self, decide: Callable[[Cluster], tuple[T, list[Change]]]) -> T:
        """Runs to its end even when the asker goes away: a commit that no listener hears of would be worse."""
        if self._is_stopping:
            raise StoreError("the broker is stopping")
        task = asyncio.ensure_future(self._decide_and_commit(decide))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def _decide_and_commit(self, decide: Callable[[Cluster], tuple[T, list[Change]]]) -> T:
        async with self._one_writer:
            for _ in range(_ATTEMPTS):
                image = self.image
                cluster = Cluster(image, self.broker_config, self._entropy.random_below, self._entropy.uuid)
                result, changes = decide(cluster)
                if not changes:
                    return result
                if await self._store.commit(changes, image.version):
                    await self._publish(image.apply_all(changes))
                    return result
                newer = await self._store.load()
                for broker in image.brokers.values():
                    newer = newer.with_broker(broker)
                await self._publish(newer)
        raise StoreError("the metadata store changes faster than this broker can follow; is another broker using it?")

    async def _publish(self, image: MetadataImage) -> None:
        before = self.image
        self._image = image
        if image.configs is not before.configs:
            self._refresh_config()
        failures: list[Exception] = []
        for listener in self._listeners:
            try:
                outcome = listener(before, image)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception as failure:  # the others must still hear of the change
                failures.append(failure)
        if failures:
            raise failures[0]

    def _refresh_config(self) -> None:
        node = str(self._static_config.node_id)
        self.broker_config = self._static_config.with_dynamic(
            usable_dynamic_configs(self.image.configs_of(ConfigResourceType.BROKER, ""), is_default=True),
            usable_dynamic_configs(self.image.configs_of(ConfigResourceType.BROKER, node), is_default=False),
        )


def _describe_new_topic(request: NewTopic, config: BrokerConfig) -> tuple[ConfigEntry, ...]:
    overrides = {name: value for name, value in request.configs.items() if value is not None}
    return tuple(describe_topic_configs(overrides, config))
