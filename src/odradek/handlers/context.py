"""The inputs of a handler: the broker's services, the client, and the version of the request.

Handlers use no globals: the composition root (`server/broker`) builds the services once.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from odradek.conventions.dataclass import dataclass
from odradek.handlers.audited_requests import AuditedRequests
from odradek.handlers.authentication_failures import AuthenticationFailures
from odradek.handlers.time_lookups import TimeLookups
from odradek.handlers.unsupported_features import UnsupportedFeatures
from odradek.handlers.waiting_copies import WaitingCopies
from odradek.metrics.broker_metrics import BrokerMetrics
from odradek.security.audit.events import ANY_NAME, Actor, Audit, NoAudit
from odradek.security.authorizer import (
    CLUSTER_NAME,
    Authorizer,
    Operation,
    Resource,
    ResourceType,
    authorized_operations,
)
from odradek.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.coordinator.groups.group_coordinator import GroupCoordinator
    from odradek.coordinator.producer_ids import ProducerIds
    from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
    from odradek.handlers.answers import Answer
    from odradek.handlers.api import AdvertisedApis, Api
    from odradek.handlers.fetch_sessions import FetchSessions
    from odradek.handlers.produce_conversions import ProduceConversions
    from odradek.handlers.quota_enforcement import QuotaEnforcement, RequestMeter
    from odradek.host.host import Host
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage
    from odradek.metrics.samples import Family
    from odradek.protocol.framing import RequestHeader
    from odradek.replica.partition_table import PartitionTable
    from odradek.replica.waiting_requests import WaitingFetch
    from odradek.security.quotas.client_quotas import ClientLimits
    from odradek.security.quotas.mutation_quota import MutationQuota
    from odradek.security.sasl.authentication import Authentication, Mechanisms
    from odradek.telemetry.client_telemetry import ClientTelemetry

UNKNOWN_SOFTWARE = "unknown"
_TOPIC = ResourceType.TOPIC  # looking up an attribute of an enum is slow
_new_tuple = tuple.__new__  # half the time of a NamedTuple's constructor


class CloseConnection(Exception):
    """Raised by a handler when the protocol has no error code for the failure; the text is the reason for the log."""


_NO_ALIASES: Mapping[str, str] = {}


class ClientConnection:
    """The peer of one connection: its address, its listener, and its principal.

    `waiting_replica_fetch` is the fetch of a follower that waits for records. It is answered early when the follower
    sends another request, which otherwise would wait for it.

    `authentication` is None on a listener without SASL. While `is_restricted`, it is asked about each request. The
    connection is closed after an answer with `closes_after_answer`.

    `received_ms` is when its last bytes arrived, or when the wait that they arrived in was over: that of the request
    before, or its throttle time. By the monotonic clock; 0 where it is not known.

    `software_name` and `software_version` are those of the client's ApiVersions request. `telemetry_instance` is the
    last client instance that has used the connection for telemetry.

    `fetched_aliases` are the names by which it fetches topics of streams, where they are aliases, by the full names.

    `throttle_ms` is how long the connection takes no further request after the current one; `limits` are the quotas
    that its last request was subject to."""

    __slots__ = (
        "authentication",
        "closes_after_answer",
        "fetched_aliases",
        "host",
        "is_restricted",
        "limits",
        "listener_name",
        "port",
        "principal",
        "received_ms",
        "software_name",
        "software_version",
        "telemetry_instance",
        "throttle_ms",
        "waiting_replica_fetch",
    )

    def __init__(self, listener_name: str, host: str, port: int = 0) -> None:
        self.listener_name = listener_name
        self.host = host
        self.port = port
        self.software_name = self.software_version = UNKNOWN_SOFTWARE
        self.telemetry_instance: UUID | None = None
        self.principal: Principal = ANONYMOUS
        self.waiting_replica_fetch: WaitingFetch | None = None
        self.received_ms = 0.0
        self.throttle_ms = 0
        self.limits: ClientLimits | None = None
        self.fetched_aliases: Mapping[str, str] = _NO_ALIASES
        self.authentication: Authentication | None = None
        self.is_restricted = False
        self.closes_after_answer = False

    @property
    def is_authenticated(self) -> bool:
        """Whether every request may come: the listener asks for no SASL, or the client has authenticated."""
        return self.authentication is None or self.authentication.principal is not None


class RequestForwarder(Protocol):
    """The way of requests that the controller decides; `handlers/forwarding` implements it."""

    async def answer(self, api: Api, header: RequestHeader, frame: bytes, context: RequestContext) -> Answer: ...


class CollectMetrics(Protocol):
    async def __call__(self, prefixes: Sequence[str], /) -> list[Family]:
        """The metrics whose names begin with one of the prefixes, or all."""


class SettingsCheck(Protocol):
    async def __call__(self, config: BrokerConfig, /) -> str | None:
        """Why this broker cannot use a configuration; None if it can."""


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
    produce_conversions: ProduceConversions
    sasl_mechanisms: Callable[[str], Mechanisms] | None = None
    """The mechanisms of a SASL listener, by its name."""
    apis: Mapping[int, Api] = field(default_factory=dict)
    audit: Audit = field(default_factory=NoAudit)
    audited_requests: AuditedRequests = field(default_factory=AuditedRequests)
    metrics: BrokerMetrics = field(default_factory=BrokerMetrics)
    collect_metrics: CollectMetrics | None = None
    """None if the node exposes no metrics."""
    forwarder: RequestForwarder | None = None
    """None for a single broker, which decides itself."""
    check_settings: SettingsCheck | None = None
    time_lookups: TimeLookups = field(default_factory=TimeLookups)
    verified_copies: WaitingCopies = field(default_factory=WaitingCopies)
    """Copies of transactional batches that wait for their coordinator."""
    telemetry: ClientTelemetry | None = None
    """None if this broker takes no client telemetry."""
    unsupported_features: UnsupportedFeatures = field(default_factory=UnsupportedFeatures)
    authentication_failures: AuthenticationFailures = field(default_factory=AuthenticationFailures)

    @property
    def config(self) -> BrokerConfig:
        """The current configuration: some settings change at run time."""
        return self.metadata.broker_config

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image


class RequestContext:
    """The services, client, API version and client id of one request; its meter if quotas are configured. `waits` are
    the times of a request that waited for several things, by stage (see `request_record`)."""

    __slots__ = ("api_name", "api_version", "client_id", "connection", "meter", "services", "waits")

    def __init__(
        self,
        services: Services,
        connection: ClientConnection,
        api_version: int,
        client_id: str | None,
        api_name: str = "",
        meter: RequestMeter | None = None,
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_version = api_version
        self.client_id = client_id
        self.api_name = api_name
        self.meter = meter
        self.waits: dict[str, float] | None = None

    def abandon(self) -> None:
        """The request ends without an answer: what it has used counts all the same."""
        if self.meter is not None:
            self.meter.abandon()

    def add_wait(self, stage: str, began_ms: float) -> None:
        """The request has waited in this stage since `began_ms`."""
        waited_ms = self.services.host.clock.monotonic_ms() - began_ms
        if self.waits is None:
            self.waits = {}
        self.waits[stage] = self.waits.get(stage, 0.0) + waited_ms

    def allows(
        self, operation: Operation, resource_type: ResourceType, resource_name: str, *, logs: bool = True
    ) -> bool:
        """Whether this request's client may perform the operation; every handler asks here. A denial is written to the
        audit log, except where the client has not asked for the resource: in lists, and if another right will do."""
        resource = _new_tuple(Resource, (resource_type, resource_name))
        allows = self.services.authorizer.allows
        return allows(self.connection, operation, resource) or self._deny(operation, resource, logs)

    def _deny(self, operation: Operation, resource: Resource, logs: bool) -> bool:
        if logs:
            self.services.audit.denied(self.actor, operation, resource)
        return False

    @property
    def actor(self) -> Actor:
        """The sender of this request, and its address, for the audit log."""
        connection = self.connection
        return Actor(
            str(connection.principal), connection.host, connection.listener_name, self.client_id, self.api_name
        )

    def authorized_cluster_operations(self) -> int:
        """The operations that the client may do on the cluster; none without Describe, whatever its other rights."""
        if not self.allows_on_cluster(Operation.DESCRIBE):
            return 0
        return self.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)

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

    def allows_on_cluster(self, operation: Operation, *, logs: bool = True) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, logs=logs)

    def allows_on_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there can be a resource of the type on which the client may perform the operation."""
        if self.services.authorizer.allows_any(self.connection, operation, resource_type):
            return True
        self.services.audit.denied(self.actor, operation, Resource(resource_type, ANY_NAME))
        return False

    def allows_on_topic(self, operation: Operation, topic: str, *, logs: bool = True) -> bool:
        resource = _new_tuple(Resource, (_TOPIC, topic))  # `allows`, inlined: most requests ask this
        allows = self.services.authorizer.allows
        return allows(self.connection, operation, resource) or self._deny(operation, resource, logs)
