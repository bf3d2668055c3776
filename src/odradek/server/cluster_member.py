"""A broker as a member of a cluster: metadata in ZooKeeper, a controller that is elected, replication, forwarding."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from odradek.client.broker_clients import BrokerClients
from odradek.client.broker_connection import BrokerUnavailable
from odradek.configuration.broker_credentials import broker_credentials
from odradek.controller.broker_session import BrokerSession, StaleBrokerEpoch
from odradek.controller.controller_duties import ControllerDuties
from odradek.controller.controller_election import Election
from odradek.controller.failure_detector import FailureDetector
from odradek.controller.membership import Membership
from odradek.controller.remote_channel import ClusterControllerChannel
from odradek.controller.route import ControllerRoute
from odradek.coordinator.transactions.peers import Peers
from odradek.handlers.forwarding import Forwarder
from odradek.handlers.registry import build_cluster_registry
from odradek.host.logs import get_logger
from odradek.host.zookeeper import ZooKeeperError, ZooKeeperSettings, ZooKeeperTls
from odradek.log.log_directory import encode_uuid
from odradek.metadata.cache import MetadataCache
from odradek.metadata.store import StoreError
from odradek.metadata.zookeeper_store import ZooKeeperStore
from odradek.replica.failed_replicas import FailedReplicas
from odradek.replica.replication import Replication
from odradek.server.hand_over import last_led_topic, wait_until_replaced
from odradek.server.isolation import BrokerContacts, Isolation
from odradek.server.last_registration import read_previous_epochs, write_epochs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.client.sasl_login import Exchange, SaslLogin
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.handlers.api import Api
    from odradek.host.connecting import Network
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.image import MetadataImage
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

VISIBLE_TIMEOUT_MS = 60_000.0  # for a controller to be elected, and to commit this broker's registration
HAND_OVER_TIMEOUT_MS = 10_000.0  # at shutdown, for other brokers to lead what this one led
LEAVE_TIMEOUT_MS = 5_000.0  # at shutdown, for ZooKeeper to answer what was begun
CONNECTION_TIMEOUT_MS = 18_000  # at a start, for ZooKeeper to answer
UNFENCING_PAUSE_S = 1.0
PAUSE_S = 0.05  # between two requests to the controller


def zookeeper_settings(config: BrokerConfig) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        connect=config.zookeeper_connect or "",
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms
        or max(config.zookeeper_session_timeout_ms, CONNECTION_TIMEOUT_MS),
        auth=config.zookeeper_auth or "",
        restricts_access=config.zookeeper_set_acl,
        tls=zookeeper_tls(config),
    )


def zookeeper_tls(config: BrokerConfig) -> ZooKeeperTls | None:
    values = cast("Mapping[str, str | None]", config.values)
    if not values["zookeeper.ssl.client.enable"]:
        return None
    return ZooKeeperTls(
        trusted=values["zookeeper.ssl.truststore.location"],
        key_and_certificate=values["zookeeper.ssl.keystore.location"],
        key_password=values["zookeeper.ssl.keystore.password"],
        checks_host_name=bool(values["zookeeper.ssl.endpoint.identification.algorithm"]),
    )


class BrokerLogin:
    """This broker's login to other brokers. Reads the configuration at each login, so that changed credentials apply to
    the next connection."""

    def __init__(self, config: Callable[[], BrokerConfig], host: Host) -> None:
        self._config = config
        self._host = host

    def exchange(self) -> Exchange:
        config = self._config()
        credentials = broker_credentials(config.texts, config.inter_broker_listener_name)
        return credentials.exchange(self._host.entropy.uuid().hex)

    async def take(self, login: SaslLogin, response: Any) -> None:
        """On a worker: the key of a password takes milliseconds to compute."""
        await self._host.workers.run(login.take, response)


class ClusterMember:
    def __init__(self, config: BrokerConfig, host: Host, broker_network: Network | None = None) -> None:
        settings = zookeeper_settings(config)
        try:
            session = host.connect_zookeeper(settings)
        except ZooKeeperError as problem:
            raise StoreError(str(problem)) from problem
        self._node_id = config.node_id
        self._host = host
        self._directories: Sequence[LogDirectory] = ()
        self._registration_timeout_ms = 2.0 * settings.session_timeout_ms
        self._unfencing: asyncio.Task[None] | None = None
        self._has_joined = False
        self.store = ZooKeeperStore(host, session)
        self.metadata = MetadataCache(self.store, config, host.clock)
        self.election = Election(session, self.store, config, host)
        self.membership = Membership(
            session, self.store.claims, host.clock, config.listener_protocols, self._after_registration
        )
        self._listener_name = listener = config.inter_broker_listener_name
        login = None
        if config.listener_protocols[listener].has_sasl:
            login = BrokerLogin(lambda: self.metadata.broker_config, host)
        self._clients = BrokerClients(host, f"odradek-{config.node_id}", broker_network, login)
        route = ControllerRoute(self.metadata, self._clients, host.clock, listener, lambda: self.election.controller)
        self.channel = ClusterControllerChannel(route, self.metadata)
        self._session = BrokerSession(self.channel, config.node_id, lambda: self.membership.broker_epoch)
        self.replication = Replication(
            config.node_id, self._clients, self._session, lambda: self.metadata.broker_config, host.clock
        )
        self._contacts = BrokerContacts(self.metadata, self._clients, listener)
        self._isolation = Isolation(
            session,
            host.clock,
            settings.session_timeout_ms,
            lambda: sum(each.is_active for each in self.metadata.image.brokers.values()),
            self._contacts.request_all,
        )
        self._failed_replicas = FailedReplicas(config.node_id, self._session, host.clock)
        self._duties = ControllerDuties(
            host.clock, lambda: self.election.controller, lambda: self.metadata.broker_config
        )
        self._detector = FailureDetector(
            self.metadata,
            self._clients,
            host.clock,
            listener,
            lambda: self.election.controller,
            self.election.remove_claim_of,
            self.election.step_down,
            route.give_up,
        )
        self.forwarder = Forwarder(route)
        self.peers = Peers(self.metadata, self._clients, listener)

    @property
    def is_controller(self) -> bool:
        return self.election.controller is not None

    @property
    def is_isolated(self) -> bool:
        return self._isolation.is_isolated

    @property
    def has_zookeeper_connection(self) -> bool | None:
        return self._isolation.has_connection

    def apis(self) -> dict[int, Api]:
        return build_cluster_registry()

    async def start(self) -> None:
        await self.metadata.load()

    async def join(self, broker: BrokerImage, table: PartitionTable) -> None:
        is_visible = asyncio.Event()

        def follow(_before: MetadataImage, after: MetadataImage) -> None:
            present = after.brokers.get(broker.node_id)
            if present is not None and not present.is_fenced and present.broker_epoch == self.membership.broker_epoch:
                is_visible.set()

        self.metadata.subscribe(follow)
        try:
            await self._register(broker, table)
            await self.metadata.run_in_order(lambda: self._start_replication(table))
            follow(self.metadata.image, self.metadata.image)
            self.election.start()
            self._duties.start()
            async with asyncio.timeout(VISIBLE_TIMEOUT_MS / 1000):
                await is_visible.wait()
        except TimeoutError:
            raise StoreError(
                f"no controller has accepted broker {broker.node_id} within {VISIBLE_TIMEOUT_MS / 1000:g} s: "
                "check the brokers of the cluster"
            ) from None
        finally:
            self.metadata.unsubscribe(follow)
        self.metadata.subscribe(self._follow_own_state)
        self._follow_own_state(self.metadata.image, self.metadata.image)
        self.metadata.subscribe(self.peers.follow)
        self._detector.start()
        self._has_joined = True

    async def _register(self, broker: BrokerImage, table: PartitionTable) -> None:
        self._directories = table.directories
        first = self._directories[0].meta_properties
        directory_id = encode_uuid(first.directory_id) if first is not None else ""
        previous = await self._host.workers.run(read_previous_epochs, self._directories, self._host)
        try:
            await self.membership.join(broker, directory_id, previous, timeout_ms=self._registration_timeout_ms)
        except ZooKeeperError as problem:
            raise StoreError(f"this broker could not register in ZooKeeper: {problem}") from problem

    async def _after_registration(self, broker_epochs: Sequence[int]) -> None:
        self.replication.register_again(broker_epochs[-1])
        try:
            await self._host.workers.run(write_epochs, self._directories, self._host, broker_epochs)
        except OSError as problem:  # the file names an earlier epoch: the next start counts as an unclean one
            log.warning("the registration could not be written to a log directory", reason=problem)

    async def _start_replication(self, table: PartitionTable) -> None:
        """Runs between two commits, so that replication misses none."""
        await table.lead_from(self.membership.broker_epoch)
        self.replication.start(table, self.metadata.image, self.membership.broker_epoch)
        self.metadata.subscribe(self.replication.follow)
        self._failed_replicas.start(table)
        self.metadata.subscribe(self._failed_replicas.follow)

    def directory_failed(self) -> None:
        self._failed_replicas.check()

    def follow_isolation(self, last_replica_fetch_ms: Callable[[], float], follower: Callable[[bool], None]) -> None:
        self._isolation.start(lambda: max(self._clients.last_answer_ms, last_replica_fetch_ms()), follower)

    def _follow_own_state(self, _before: MetadataImage, after: MetadataImage) -> None:
        """A broker that was fenced by mistake requests to be unfenced."""
        present = after.brokers.get(self._node_id)
        if present is None or not present.is_fenced or present.is_shutting_down:
            return
        is_unfencing = self._unfencing is not None and not self._unfencing.done()
        if present.broker_epoch == self.membership.broker_epoch and not is_unfencing:
            self._unfencing = asyncio.ensure_future(self._unfence())

    async def _unfence(self) -> None:
        while True:
            try:
                await self._request_unfencing()
            except StaleBrokerEpoch as problem:  # another registration follows, or the end of this one
                log.warning("this broker stays fenced", reason=problem)
            except (BrokerUnavailable, StoreError) as problem:
                log.warning("this broker stays fenced; retrying", reason=problem)
                await asyncio.sleep(UNFENCING_PAUSE_S)
                continue
            return

    async def _request_unfencing(self) -> None:
        """The controller refuses while it does not reach this broker."""
        pause_s = PAUSE_S
        while not await self._session.unfence():
            if pause_s == PAUSE_S:
                log.warning(
                    "this broker stays fenced until the controller reaches it: check advertised.listeners of this "
                    "listener, and the network", listener=self._listener_name,
                )  # fmt: skip
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, UNFENCING_PAUSE_S)

    @staticmethod
    async def _repeat(request: Callable[[], Awaitable[bool]]) -> None:
        """Send a request to the controller until it returns True."""
        while not await request():  # noqa: ASYNC110 - the event is on the controller's side
            await asyncio.sleep(PAUSE_S)

    async def hand_over(self) -> None:
        """Controlled shutdown: the controller gives what this broker leads to others."""
        if not self._has_joined:
            return
        self.metadata.unsubscribe(self._follow_own_state)
        self._detector.stop()
        self._isolation.stop()
        self._contacts.stop()
        if self._unfencing is not None:
            self._unfencing.cancel()
        topic = last_led_topic(self.metadata.image, self._node_id)
        try:
            async with asyncio.timeout(HAND_OVER_TIMEOUT_MS / 1000):
                await self._repeat(self._session.shut_down)
                if topic is not None:
                    await wait_until_replaced(topic, self.metadata, self._clients, self._listener_name)
                await self.election.stop()
        except (TimeoutError, StaleBrokerEpoch, BrokerUnavailable, StoreError) as problem:
            reason = f"not within {HAND_OVER_TIMEOUT_MS / 1000:g} s" if isinstance(problem, TimeoutError) else problem
            log.warning("the leaderships of this broker were not handed over", reason=reason)

    async def leave(self) -> None:
        self.replication.stop()
        self._failed_replicas.stop()
        self.membership.leave()
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_MS / 1000):
                await self.election.stop()
                await self._duties.stop()
                await self.metadata.close()
        except TimeoutError:
            log.warning("ZooKeeper does not answer; the broker stops without it")
            await self.store.close()  # ends what waits for an answer
        self._clients.close()
