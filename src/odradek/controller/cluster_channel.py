"""The channel to the controller of a cluster: to this broker if it is the controller, else a refusal with
NOT_CONTROLLER.

Clients send such requests to the controller that the metadata names, and send them again after NOT_CONTROLLER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.channel import LocalControllerChannel
from odradek.controller.metadata_writer import ControllerFenced
from odradek.controller.results import (
    refuse_config_changes,
    refuse_deletions,
    refuse_quota_changes,
    refuse_topics,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.election import Election
    from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
    from odradek.controller.topic_decisions import NewPartitions, NewTopic
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.metadata.entities import BrokerImage

REFUSAL = Refusal(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")


class ClusterControllerChannel:
    def __init__(self, election: Election, cache: MetadataCache) -> None:
        self._election = election
        self._cache = cache

    async def create_topics(self, requests: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicResult]:
        if (local := self._local()) is None:
            return refuse_topics(requests, REFUSAL)
        return await local.create_topics(requests, validate_only=validate_only)

    async def delete_topics(self, names: Sequence[str] = (), topic_ids: Sequence[uuid.UUID] = ()) -> list[TopicResult]:
        if (local := self._local()) is None:
            return refuse_deletions(names, topic_ids, REFUSAL)
        return await local.delete_topics(names, topic_ids)

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> list[TopicResult]:
        if (local := self._local()) is None:
            return refuse_topics(requests, REFUSAL)
        return await local.create_partitions(requests, validate_only=validate_only)

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        if (local := self._local()) is None:
            return refuse_config_changes(requests, REFUSAL)
        return await local.alter_configs(requests, validate_only=validate_only)

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        if (local := self._local()) is None:
            return refuse_config_changes(requests, REFUSAL)
        return await local.incremental_alter_configs(requests, validate_only=validate_only)

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]:
        if (local := self._local()) is None:
            return refuse_quota_changes(alterations, REFUSAL)
        return await local.alter_client_quotas(alterations, validate_only=validate_only)

    async def allocate_producer_ids(self, count: int) -> int:
        if (local := self._local()) is None:
            raise ControllerFenced("this broker is not the controller")
        return await local.allocate_producer_ids(count)

    async def register_broker(self, broker: BrokerImage) -> int:
        """Brokers of a cluster register in ZooKeeper (`membership`)."""
        raise NotImplementedError

    def _local(self) -> LocalControllerChannel | None:
        controller = self._election.controller
        return None if controller is None else LocalControllerChannel(controller, self._cache)
