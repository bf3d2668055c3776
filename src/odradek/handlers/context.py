"""The inputs of a handler: the broker's services, the client, and the version of the request.

Handlers use no globals: the composition root (`server/broker`) builds the services once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from odradek.handlers.unsupported_features import UnsupportedFeatures
from odradek.security.authorizer import Authorizer, Operation, Resource, ResourceType, authorized_operations
from odradek.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.coordinator.groups.group_coordinator import GroupCoordinator
    from odradek.coordinator.producer_ids import ProducerIds
    from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
    from odradek.handlers.answers import Answer
    from odradek.handlers.api import AdvertisedApis, Api
    from odradek.handlers.fetch_sessions import FetchSessions
    from odradek.handlers.quota_enforcement import QuotaEnforcement, RequestMeter
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.framing import RequestHeader
    from odradek.replica.partition_table import PartitionTable
    from odradek.replica.waiting_requests import WaitingFetch
    from odradek.security.quotas.client_quotas import ClientLimits
    from odradek.security.quotas.mutation_quota import MutationQuota

CLUSTER_NAME = "kafka-cluster"  # the one cluster resource's name in Kafka's authorization model

_TOPIC = ResourceType.TOPIC  # looking up an attribute of an enum is slow
_new_tuple = tuple.__new__  # half the time of a NamedTuple's constructor


class CloseConnection(Exception):
    """Raised by a handler when the protocol has no error code for the failure; the text is the reason for the log."""


class ClientConnection:
    """The peer of one connection: its address, its listener, and its principal.

    `waiting_replica_fetch` is the fetch of a follower that waits for records. It is answered early when the follower
    sends another request, which otherwise would wait for it. `throttle_ms` is how long the connection takes no further
    request after the current one; `limits` are the quotas that its last request was subject to."""

    __slots__ = ("host", "limits", "listener_name", "principal", "throttle_ms", "waiting_replica_fetch")

    is_authenticated = True

    def __init__(self, listener_name: str, host: str) -> None:
        self.listener_name = listener_name
        self.host = host
        self.principal: Principal = ANONYMOUS
        self.waiting_replica_fetch: WaitingFetch | None = None
        self.throttle_ms = 0
        self.limits: ClientLimits | None = None


class RequestForwarder(Protocol):
    """The way of requests that the controller decides; `handlers/forwarding` implements it."""

    async def answer(
        self, api: Api, header: RequestHeader, frame: bytes, connection: ClientConnection, services: Services
    ) -> Answer: ...


@dataclass(slots=True, kw_only=True)
class Services:
    """The services of a broker that handlers use."""

    host: Host
    metadata: MetadataCache
    controller: ControllerChannel
    partitions: PartitionTable
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    authorizer: Authorizer
    quotas: QuotaEnforcement
    advertised_apis: AdvertisedApis
    apis: Mapping[int, Api] = field(default_factory=dict)
    forwarder: RequestForwarder | None = None
    """None for a single broker, which decides itself."""
    unsupported_features: UnsupportedFeatures = field(default_factory=UnsupportedFeatures)

    @property
    def config(self) -> BrokerConfig:
        """The current configuration: some settings change at run time."""
        return self.metadata.broker_config

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image


class RequestContext:
    """The services, client, API version and client id of one request; its meter if quotas are configured."""

    __slots__ = ("api_version", "client_id", "connection", "meter", "services")

    def __init__(
        self,
        services: Services,
        connection: ClientConnection,
        api_version: int,
        client_id: str | None,
        meter: RequestMeter | None = None,
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_version = api_version
        self.client_id = client_id
        self.meter = meter

    def allows(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """Whether this request's client may perform the operation; every handler asks here."""
        resource = _new_tuple(Resource, (resource_type, resource_name))
        return self.services.authorizer.allows(self.connection, operation, resource)

    def authorized_operations(self, resource_type: ResourceType, resource_name: str) -> int:
        """All operations that the client may perform on a resource, one bit for each."""
        return authorized_operations(self.services.authorizer, self.connection, Resource(resource_type, resource_name))

    def mutation_quota(self, *, strict_from: int) -> MutationQuota:
        """The quota of a request that changes topics; it is strict from this version of the request on."""
        is_strict = self.api_version >= strict_from
        return self.services.quotas.mutation_quota(self.connection, self.client_id, is_strict=is_strict)

    def report_unsupported(self, feature: str) -> None:
        """Log, at a limited rate, that the client asked for a feature that this broker does not have."""
        self.services.unsupported_features.report(
            feature, self.services.host.clock, client=self.connection.host, client_id=self.client_id
        )

    def allows_on_cluster(self, operation: Operation) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def allows_on_topic(self, operation: Operation, topic: str) -> bool:
        return self.allows(operation, _TOPIC, topic)
