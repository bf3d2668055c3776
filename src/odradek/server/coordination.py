"""How a broker gets its metadata: alone, from a store and a controller of its own, or as a member of a cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from odradek.controller.channel import LocalControllerChannel
from odradek.controller.cluster_channel import ClusterControllerChannel
from odradek.controller.controller import Controller
from odradek.controller.election import Election
from odradek.controller.membership import Membership
from odradek.host.zookeeper import ZooKeeperError, ZooKeeperSettings
from odradek.metadata.cache import MetadataCache
from odradek.metadata.embedded_store import FILE_NAME, EmbeddedStore
from odradek.metadata.store import StoreError
from odradek.metadata.zookeeper_store import ZooKeeperStore

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.controller.channel import ControllerChannel
    from odradek.host.host import Host
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.image import MetadataImage
    from odradek.metadata.store import MetadataStore

VISIBLE_TIMEOUT_MS = 60_000.0  # for a controller to be elected, and to commit this broker's registration


class Coordination(Protocol):
    @property
    def store(self) -> MetadataStore: ...

    @property
    def metadata(self) -> MetadataCache: ...

    @property
    def channel(self) -> ControllerChannel: ...

    async def start(self) -> None:
        """Load the metadata and follow it from here on. The log directories are locked."""

    async def join(self, broker: BrokerImage, directory_id: str) -> None:
        """Register this broker, and return when its own metadata shows the registration."""

    async def leave(self) -> None:
        """Decide nothing more, and finish what was decided. The store stays open."""


class SingleBroker:
    """The metadata is in the first log directory."""

    def __init__(self, config: BrokerConfig, host: Host, first_directory: str) -> None:
        self.store = EmbeddedStore(host, f"{first_directory}/{FILE_NAME}")
        self.metadata = MetadataCache(self.store, config, host.clock)
        self.controller = Controller(self.store, config, host.entropy)
        self.channel = LocalControllerChannel(self.controller, self.metadata)

    async def start(self) -> None:
        await self.controller.start()
        await self.metadata.load(self.controller.image)

    async def join(self, broker: BrokerImage, directory_id: str) -> None:  # noqa: ARG002 - no other process has its id
        await self.channel.register_broker(broker)

    async def leave(self) -> None:
        await self.controller.stop_writing()


class ClusterMember:
    """The metadata is in ZooKeeper."""

    def __init__(self, config: BrokerConfig, host: Host) -> None:
        settings = ZooKeeperSettings(
            connect=config.zookeeper_connect or "",
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms,
            auth=config.zookeeper_auth or "",
            restricts_access=config.zookeeper_set_acl,
        )
        try:
            session = host.connect_zookeeper(settings)
        except ZooKeeperError as problem:
            raise StoreError(str(problem)) from problem
        self._registration_timeout_ms = 2.0 * settings.session_timeout_ms
        self.store = ZooKeeperStore(host, session)
        self.metadata = MetadataCache(self.store, config, host.clock)
        self.election = Election(session, self.store, config, host.entropy)
        self.membership = Membership(session, self.store.claims, host.clock)
        self.channel = ClusterControllerChannel(self.election, self.metadata)

    async def start(self) -> None:
        await self.metadata.load()

    async def join(self, broker: BrokerImage, directory_id: str) -> None:
        is_visible = asyncio.Event()

        def follow(_before: MetadataImage, after: MetadataImage) -> None:
            present = after.brokers.get(broker.node_id)
            if present is not None and not present.is_fenced and present.broker_epoch == self.membership.broker_epoch:
                is_visible.set()

        self.metadata.subscribe(follow)
        try:
            await self.membership.join(broker, directory_id, timeout_ms=self._registration_timeout_ms)
        except ZooKeeperError as problem:
            raise StoreError(f"this broker could not register in ZooKeeper: {problem}") from problem
        follow(self.metadata.image, self.metadata.image)
        self.election.start()
        try:
            async with asyncio.timeout(VISIBLE_TIMEOUT_MS / 1000):
                await is_visible.wait()
        except TimeoutError:
            raise StoreError(
                f"no controller has accepted broker {broker.node_id} within {VISIBLE_TIMEOUT_MS / 1000:g} s: "
                "check the brokers of the cluster"
            ) from None
        finally:
            self.metadata.unsubscribe(follow)

    async def leave(self) -> None:
        self.membership.leave()
        await self.election.stop()


def coordination(config: BrokerConfig, host: Host, first_directory: str) -> Coordination:
    if config.zookeeper_connect:
        return ClusterMember(config, host)
    return SingleBroker(config, host, first_directory)
