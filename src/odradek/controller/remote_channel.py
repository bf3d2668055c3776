"""The channel of a broker in a cluster: to the controller in this process, or to the one that the metadata names.

Requests of clients are forwarded as bytes before a handler runs (`handlers/forwarding`), so that a handler asks only
on the controller's broker. What a broker itself asks (its state, in-sync sets, producer ids, topics of coordinators
and topics that are created on demand) goes through here from every broker, and is sent again when the controller
changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.client.broker_connection import BrokerUnavailable
from odradek.controller.broker_requests import (
    alter_partition_request,
    alter_partition_results,
    create_topics_request,
    create_topics_results,
    offline_replicas_request,
)
from odradek.controller.channel import LocalControllerChannel
from odradek.controller.cluster_controller import BrokerStatus
from odradek.controller.metadata_writer import ControllerFenced
from odradek.controller.refusing_channel import RefusingChannel
from odradek.controller.request_writer import BROKER_REQUEST_TIMEOUT_MS, DEFAULT_TIMEOUT_MS
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.alter_partition import AlterPartitionResponse
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.messages.create_topics import CreateTopicsResponse
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_BROKER_EPOCH
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    import uuid
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.client.broker_client import BrokerClient
    from odradek.controller.acl_decisions import AclDeletion
    from odradek.controller.channel import ControllerChannel
    from odradek.controller.config_decisions import ConfigAlteration, ConfigReplacement
    from odradek.controller.election_decisions import ElectionResult
    from odradek.controller.feature_decisions import FeatureUpdate
    from odradek.controller.in_sync_decisions import InSyncProposal, InSyncResult
    from odradek.controller.leader_election import ElectionKind
    from odradek.controller.offline_replicas import OfflineReplica
    from odradek.controller.reassignment_decisions import NewReplicas, ReassignmentResult
    from odradek.controller.results import ConfigResult, QuotaResult, TopicResult
    from odradek.controller.route import ControllerRoute
    from odradek.controller.scram_decisions import ScramAlteration, ScramResult
    from odradek.controller.token_decisions import TokenRequest, TokenResult
    from odradek.controller.topic_decisions import NewPartitions, NewTopic
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.client_quotas import QuotaAlteration
    from odradek.metadata.entities import PartitionImage
    from odradek.protocol.schema import Request, Response
    from odradek.security.acls.bindings import AclBinding, AclFilter

T = TypeVar("T")
R = TypeVar("R", bound="Response")

TIMEOUT_MS = 30_000  # for one request, with all its attempts
ATTEMPT_TIMEOUT_MS = BROKER_REQUEST_TIMEOUT_MS  # a controller that hangs must not take the whole time
# A broker handles the requests of a connection one after another. The creation of many topics is answered when the
# controller's broker has opened their logs: in-sync sets must not wait for it.
PURPOSE = "controller"
CREATION_PURPOSE = "topic creation"


class NotController(Exception):
    """The broker that received the request is not the controller any more."""


class ClusterControllerChannel:
    def __init__(self, route: ControllerRoute, cache: MetadataCache) -> None:
        self._route = route
        self._cache = cache
        self._not_controller = RefusingChannel(
            Refusal(ErrorCode.NOT_CONTROLLER, "This broker is not the controller any more.")
        )

    def local(self) -> ControllerChannel | None:
        controller = self._route.local
        return None if controller is None else LocalControllerChannel(controller, self._cache)

    # Requests of the broker itself

    async def create_topics(
        self,
        requests: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        """Quotas are those of this broker, so that they apply if the controller is in this process. Another controller
        is heard after `timeout_ms` too: it may have begun the change, and its answer says whether that was made."""
        deadline = self._route.deadline(timeout_ms)

        async def locally(channel: ControllerChannel) -> list[TopicResult]:
            return _checked(
                await channel.create_topics(
                    requests, validate_only=validate_only, mutations=mutations, timeout_ms=deadline.remaining_ms
                )
            )

        async def remotely(client: BrokerClient) -> list[TopicResult]:
            request = create_topics_request(requests, int(deadline.remaining_ms), validate_only=validate_only)
            response = await self._call(client, request, CreateTopicsResponse, 7)
            results = _checked(create_topics_results(response))
            if not validate_only:
                created = {each.name for each in results if each.name is not None and each.error in _EXISTS}
                await self._route.wait_until_topics_exist(created, deadline)
            return results

        return await self._request(locally, remotely, timeout_ms, CREATION_PURPOSE)

    async def allocate_producer_ids(self, count: int) -> int:
        node_id = self._cache.broker_config.node_id

        async def remotely(client: BrokerClient) -> int:
            registered = self._cache.image.brokers.get(node_id)
            broker_epoch = NO_BROKER_EPOCH if registered is None else registered.broker_epoch
            request = AllocateProducerIdsRequest(broker_id=node_id, broker_epoch=broker_epoch)
            response = await self._call(client, request, AllocateProducerIdsResponse, 0)
            _check(response.error_code)
            if response.producer_id_len < count:
                raise StoreError(f"the controller allocated {response.producer_id_len} producer ids, not {count}")
            return response.producer_id_start

        return await self._request(lambda channel: channel.allocate_producer_ids(count), remotely)

    async def unfence_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus:
        request = BrokerHeartbeatRequest(broker_id=node_id, broker_epoch=broker_epoch)
        return await self._request(
            lambda channel: channel.unfence_broker(node_id, broker_epoch),
            lambda client: self._heartbeat(client, request),
        )

    async def shut_down_broker(self, node_id: int, broker_epoch: int) -> BrokerStatus:
        request = BrokerHeartbeatRequest(broker_id=node_id, broker_epoch=broker_epoch, want_shut_down=True)
        return await self._request(
            lambda channel: channel.shut_down_broker(node_id, broker_epoch),
            lambda client: self._heartbeat(client, request),
        )

    async def _heartbeat(self, client: BrokerClient, request: BrokerHeartbeatRequest) -> BrokerStatus:
        response = await self._call(client, request, BrokerHeartbeatResponse, 1)
        if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
            return BrokerStatus(ErrorCode.STALE_BROKER_EPOCH)
        _check(response.error_code)
        return BrokerStatus(ErrorCode.NONE, is_fenced=response.is_fenced, may_stop=response.should_shut_down)

    async def report_offline_replicas(
        self, node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica]
    ) -> ErrorCode:
        request = offline_replicas_request(node_id, broker_epoch, replicas)

        async def remotely(client: BrokerClient) -> ErrorCode:
            return (await self._heartbeat(client, request)).error

        return await self._request(
            lambda channel: channel.report_offline_replicas(node_id, broker_epoch, replicas), remotely
        )

    async def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal]
    ) -> list[InSyncResult]:
        """One attempt only: by the next one the leader may know more about its followers."""
        local = self.local()
        if local is not None:
            return await local.alter_partitions(node_id, broker_epoch, proposals)
        request = alter_partition_request(node_id, broker_epoch, proposals)
        response = await self._call(self._route.client(PURPOSE), request, AlterPartitionResponse, 3)
        return alter_partition_results(response, proposals)

    async def _request(
        self,
        locally: Callable[[ControllerChannel], Awaitable[T]],
        remotely: Callable[[BrokerClient], Awaitable[T]],
        timeout_ms: float = TIMEOUT_MS,
        purpose: str = PURPOSE,
    ) -> T:
        """`StoreError` when no controller has decided within the time."""
        deadline = self._route.deadline(timeout_ms)
        while True:
            try:
                local = self.local()
                if local is not None:
                    return await locally(local)
                return await remotely(self._route.client(purpose))
            except (BrokerUnavailable, ControllerFenced, NotController) as problem:
                if not await self._route.pause(deadline):
                    raise StoreError(f"no controller has answered in time: {problem}") from problem

    async def _call(self, client: BrokerClient, request: Request, response: type[R], version: int) -> R:
        return await client.call(request, response, timeout_ms=ATTEMPT_TIMEOUT_MS, version=version)

    # Requests of clients: handlers run on the controller's broker

    def _handler_channel(self) -> ControllerChannel:
        return self.local() or self._not_controller

    async def delete_topics(
        self,
        names: Sequence[str] = (),
        topic_ids: Sequence[uuid.UUID] = (),
        *,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        return await self._handler_channel().delete_topics(names, topic_ids, mutations=mutations, timeout_ms=timeout_ms)

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        mutations: MutationQuota = UNLIMITED_MUTATIONS,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[TopicResult]:
        channel = self._handler_channel()
        return await channel.create_partitions(
            requests, validate_only=validate_only, mutations=mutations, timeout_ms=timeout_ms
        )

    async def alter_configs(
        self, requests: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._handler_channel().alter_configs(requests, validate_only=validate_only)

    async def incremental_alter_configs(
        self, requests: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._handler_channel().incremental_alter_configs(requests, validate_only=validate_only)

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[QuotaResult]:
        return await self._handler_channel().alter_client_quotas(alterations, validate_only=validate_only)

    async def alter_scram_credentials(self, alterations: Sequence[ScramAlteration]) -> list[ScramResult]:
        return await self._handler_channel().alter_scram_credentials(alterations)

    async def change_delegation_token(self, request: TokenRequest) -> TokenResult:
        return await self._handler_channel().change_delegation_token(request)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[Refusal | None]:
        return await self._handler_channel().create_acls(bindings)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[AclDeletion]:
        return await self._handler_channel().delete_acls(filters)

    async def update_features(
        self,
        updates: Sequence[FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> Refusal | None:
        return await self._handler_channel().update_features(
            updates, validate_only=validate_only, timeout_ms=timeout_ms
        )

    async def unregister_broker(self, node_id: int) -> Refusal | None:
        return await self._handler_channel().unregister_broker(node_id)

    async def elect_leaders(
        self,
        kind: ElectionKind,
        partitions: Sequence[tuple[str, int]] | None,
        *,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[ElectionResult] | Refusal:
        return await self._handler_channel().elect_leaders(kind, partitions, timeout_ms=timeout_ms)

    async def reassign_partitions(
        self,
        requests: Sequence[NewReplicas],
        *,
        allow_replication_factor_change: bool,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
    ) -> list[ReassignmentResult] | Refusal:
        return await self._handler_channel().reassign_partitions(
            requests, allow_replication_factor_change=allow_replication_factor_change, timeout_ms=timeout_ms
        )

    async def list_reassignments(
        self, partitions: Mapping[str, Sequence[int]] | None
    ) -> dict[str, list[PartitionImage]] | Refusal:
        return await self._handler_channel().list_reassignments(partitions)


_EXISTS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def _check(error_code: int) -> None:
    error = ErrorCode(error_code)
    if error is ErrorCode.NOT_CONTROLLER:
        raise NotController("the broker that received the request is not the controller")
    if error is not ErrorCode.NONE:
        raise StoreError(f"the controller refused: {error.name}")


def _checked(results: list[TopicResult]) -> list[TopicResult]:
    if any(result.error is ErrorCode.NOT_CONTROLLER for result in results):
        raise NotController("the controller was replaced while it decided")
    return results
