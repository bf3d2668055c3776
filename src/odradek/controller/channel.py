"""The requests that handlers and coordinators may send to the controller: plain values in, plain values out.

They do not depend on where the controller runs. A change of metadata that clients can read is answered once this broker
has applied it, so that a client which asks the same broker next sees it. Producer ids are answered once they are
committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import uuid
    from collections.abc import Awaitable, Sequence

    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.controller import Controller
    from odradek.controller.metadata_writer import Decided
    from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
    from odradek.controller.topic_decisions import NewPartitions, NewTopic
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.metadata.entities import BrokerImage

T = TypeVar("T")


class ControllerChannel(Protocol):
    async def create_topics(
        self, requests: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicResult]: ...

    async def delete_topics(
        self, names: Sequence[str] = (), topic_ids: Sequence[uuid.UUID] = ()
    ) -> list[TopicResult]: ...

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> list[TopicResult]: ...

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]: ...

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]: ...

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]: ...

    async def allocate_producer_ids(self, count: int) -> int:
        """The first of `count` ids that are never allocated again."""

    async def register_broker(self, broker: BrokerImage) -> int:
        """The broker epoch."""


class LocalControllerChannel:
    """To a controller in this process."""

    def __init__(self, controller: Controller, cache: MetadataCache) -> None:
        self._controller = controller
        self._cache = cache

    async def create_topics(self, requests: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicResult]:
        return await self._applied(self._controller.create_topics(requests, validate_only=validate_only))

    async def delete_topics(self, names: Sequence[str] = (), topic_ids: Sequence[uuid.UUID] = ()) -> list[TopicResult]:
        return await self._applied(self._controller.delete_topics(names, topic_ids))

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> list[TopicResult]:
        return await self._applied(self._controller.create_partitions(requests, validate_only=validate_only))

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._applied(self._controller.alter_configs(requests, validate_only=validate_only))

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._applied(self._controller.incremental_alter_configs(requests, validate_only=validate_only))

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]:
        return await self._applied(self._controller.alter_client_quotas(alterations, validate_only=validate_only))

    async def allocate_producer_ids(self, count: int) -> int:
        first_id, _ = await self._controller.allocate_producer_ids(count)
        return first_id

    async def register_broker(self, broker: BrokerImage) -> int:
        return await self._applied(self._controller.register_broker(broker))

    async def _applied(self, decision: Awaitable[Decided[T]]) -> T:
        """Wait for the version of the decision. A refusal waits too, so that its reason, such as a topic that exists,
        is visible on this broker when it is answered."""
        result, version = await decision
        await self._cache.wait_until_applied(version)
        return result
