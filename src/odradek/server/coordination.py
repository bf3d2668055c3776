"""How a broker gets its metadata: alone, from a store and a controller of its own, or as a member of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.controller.channel import LocalControllerChannel
from odradek.controller.controller import Controller
from odradek.handlers import registry
from odradek.metadata.cache import MetadataCache
from odradek.metadata.embedded_store import FILE_NAME, EmbeddedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.coordinator.transactions.peers import Peers
    from odradek.handlers.api import Api
    from odradek.handlers.forwarding import Forwarder
    from odradek.host.connecting import Network
    from odradek.host.host import Host
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.store import MetadataStore
    from odradek.replica.partition_table import PartitionTable
    from odradek.replica.replication import Replication


class Coordination(Protocol):
    @property
    def store(self) -> MetadataStore: ...

    @property
    def metadata(self) -> MetadataCache: ...

    @property
    def channel(self) -> ControllerChannel: ...

    @property
    def replication(self) -> Replication | None: ...

    @property
    def forwarder(self) -> Forwarder | None: ...

    @property
    def peers(self) -> Peers | None: ...

    @property
    def is_controller(self) -> bool: ...

    @property
    def is_isolated(self) -> bool:
        """Whether this broker is cut off from its cluster."""

    @property
    def has_zookeeper_connection(self) -> bool | None:
        """None on a broker that uses no ZooKeeper."""

    def apis(self) -> dict[int, Api]: ...

    async def start(self) -> None:
        """Load the metadata and follow it from here on. The log directories are locked."""

    async def join(self, broker: BrokerImage, table: PartitionTable) -> None:
        """Register this broker, and return when its own metadata shows the registration."""

    def directory_failed(self) -> None:
        """A log directory has failed: what this broker leads there is to be led by others."""

    def follow_isolation(self, last_replica_fetch_ms: Callable[[], float], follower: Callable[[bool], None]) -> None:
        """Call with True when this broker is cut off from its cluster, and with False when it is back."""

    async def hand_over(self) -> None:
        """Let other brokers lead the partitions of this one, which serves until they do."""

    async def leave(self) -> None:
        """Decide nothing more, and finish what was decided. The store stays open."""


class SingleBroker:
    """The metadata is in the first log directory."""

    replication = None
    forwarder = None
    peers = None
    is_controller = True
    is_isolated = False
    has_zookeeper_connection = None

    def __init__(self, config: BrokerConfig, host: Host, first_directory: str) -> None:
        self.store = EmbeddedStore(host, f"{first_directory}/{FILE_NAME}")
        self.metadata = MetadataCache(self.store, config, host.clock)
        self.controller = Controller(self.store, config, host.entropy)
        self.channel = LocalControllerChannel(self.controller, self.metadata)

    async def start(self) -> None:
        await self.controller.start()
        await self.metadata.load(self.controller.image)

    def apis(self) -> dict[int, Api]:
        return registry.build_registry()

    async def join(self, broker: BrokerImage, table: PartitionTable) -> None:  # noqa: ARG002 - there are no others
        await self.channel.register_broker(broker)

    def directory_failed(self) -> None:
        pass  # there is no other broker

    def follow_isolation(self, last_replica_fetch_ms: Callable[[], float], follower: Callable[[bool], None]) -> None:
        pass  # there is no other broker

    async def hand_over(self) -> None:
        pass  # there is no other broker

    async def leave(self) -> None:
        await self.controller.stop_writing()


def coordination(
    config: BrokerConfig, host: Host, first_directory: str, broker_network: Network | None = None
) -> Coordination:
    if config.zookeeper_connect:
        from odradek.server.cluster_member import ClusterMember  # noqa: PLC0415 - a quarter of a broker's modules

        return ClusterMember(config, host, broker_network)
    return SingleBroker(config, host, first_directory)
