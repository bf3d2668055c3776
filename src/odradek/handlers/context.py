"""All that a handler may touch: the broker's parts, who asks, and in which version.

Handlers get everything from here; there are no globals, and the composition root (`server/broker`) builds it once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.handlers.unsupported_features import UnsupportedFeatures
from odradek.security.authorizer import Authorizer, Operation, ResourceType, authorized_operations
from odradek.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from odradek.coordinator.group_coordinator import GroupCoordinator
    from odradek.coordinator.producer_ids import ProducerIds
    from odradek.handlers.api_versions import AdvertisedApis
    from odradek.handlers.fetch_sessions import FetchSessions
    from odradek.host.host import Host
    from odradek.metadata.broker_configs import BrokerConfig
    from odradek.metadata.controller import Controller
    from odradek.metadata.image import MetadataImage
    from odradek.replica.partition_table import PartitionTable

CLUSTER_NAME = "kafka-cluster"  # the one cluster resource's name in Kafka's authorization model


class CloseConnection(Exception):
    """Raised by a handler when the protocol's only answer is to hang up; the text says why."""


class ClientConnection:
    """Who is at the other end, and through which listener it came."""

    __slots__ = ("host", "listener_name", "principal")

    def __init__(self, listener_name: str, host: str) -> None:
        self.listener_name = listener_name
        self.host = host
        self.principal: Principal = ANONYMOUS


@dataclass(slots=True, kw_only=True)
class Services:
    """The broker's parts, one owner each."""

    host: Host
    controller: Controller
    partitions: PartitionTable
    fetch_sessions: FetchSessions
    producer_ids: ProducerIds
    groups: GroupCoordinator
    authorizer: Authorizer
    advertised_apis: AdvertisedApis
    unsupported_features: UnsupportedFeatures = field(default_factory=UnsupportedFeatures)

    @property
    def config(self) -> BrokerConfig:
        """As it is now: some settings change at run time."""
        return self.controller.broker_config

    @property
    def image(self) -> MetadataImage:
        return self.controller.image


class RequestContext:
    """One request's surroundings."""

    __slots__ = ("api_version", "client_id", "connection", "services")

    def __init__(
        self, services: Services, connection: ClientConnection, api_version: int, client_id: str | None
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_version = api_version
        self.client_id = client_id

    def allows(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """The one place where a handler asks whether the principal may do a thing."""
        return self.services.authorizer.allows(self.connection.principal, operation, resource_type, resource_name)

    def authorized_operations(self, resource_type: ResourceType, resource_name: str) -> int:
        """All that the principal may do with a resource, as clients are told it: a bit for each operation."""
        return authorized_operations(self.services.authorizer, self.connection.principal, resource_type, resource_name)

    def report_unsupported(self, feature: str) -> None:
        """Log, at a limited rate, that the client asked for a feature that this broker does not have."""
        self.services.unsupported_features.report(
            feature, self.services.host.clock, client=self.connection.host, client_id=self.client_id
        )

    def allows_on_cluster(self, operation: Operation) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def allows_on_topic(self, operation: Operation, topic: str) -> bool:
        return self.allows(operation, ResourceType.TOPIC, topic)
