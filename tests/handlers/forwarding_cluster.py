"""Two brokers of a cluster in one process: a shared store, a controller on one of them, and connections in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, cast

from odradek.client.broker_address import BrokerAddress
from odradek.client.broker_connection import BrokerUnavailable
from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.controller.controller import Controller
from odradek.controller.decisions.brokers import LiveBroker
from odradek.controller.remote_channel import ClusterControllerChannel
from odradek.controller.route import ControllerRoute
from odradek.handlers.api import AdvertisedApis
from odradek.handlers.context import ClientConnection, Services
from odradek.handlers.dispatch import Dispatcher
from odradek.handlers.forwarding import Forwarder
from odradek.handlers.produce_conversions import ProduceConversions
from odradek.handlers.quota_enforcement import QuotaEnforcement
from odradek.handlers.registry import build_cluster_registry
from odradek.host.receive_budget import ReceiveBudget
from odradek.metadata.cache import MetadataCache
from odradek.metadata.entities import BrokerImage
from odradek.protocol.schema import Request, Response
from odradek.security.authorizer import AllowAll, Authorizer
from tests.metadata.inline_host import CountingEntropy
from tests.metadata.key_value_store import KeyValueStore, Table
from tests.simulation.simulated_host import Simulation
from tests.wire import decode_response, encode_request

BROKER_LISTENER = "INTERNAL"
CLIENT_LISTENER = "PLAINTEXT"
HISTORY_COMMITS = 100


class Member:
    """One broker: metadata, route, channel and handlers, without logs."""

    def __init__(self, cluster: TwoBrokers, node_id: int, properties: Mapping[str, str]) -> None:
        self.node_id = node_id
        self.config = BrokerConfig.from_properties(
            {
                "node.id": str(node_id),
                "listeners": f"{CLIENT_LISTENER}://broker-{node_id}:9092,{BROKER_LISTENER}://broker-{node_id}:9093",
                "listener.security.protocol.map": f"{CLIENT_LISTENER}:PLAINTEXT,{BROKER_LISTENER}:PLAINTEXT",
                "inter.broker.listener.name": BROKER_LISTENER,
                "zookeeper.connect": "unused:2181",
                **properties,
            }
        )
        clock = cluster.simulation.host.clock
        self.store = KeyValueStore(cluster.table, HISTORY_COMMITS)
        self.controller_store = KeyValueStore(cluster.table, HISTORY_COMMITS)
        self.cache = MetadataCache(self.store, self.config, clock)
        self.controller: Controller | None = None
        self.is_reachable = True
        self.received: list[Request] = []
        self.route = ControllerRoute(
            self.cache, cast("Any", Connections(cluster, self)), clock, BROKER_LISTENER, lambda: self.controller
        )
        self.channel = ClusterControllerChannel(self.route, self.cache)
        apis = build_cluster_registry()
        self.services = Services(
            host=cluster.simulation.host,
            metadata=self.cache,
            controller=self.channel,
            partitions=cast("Any", None),
            fetch_sessions=cast("Any", None),
            producer_ids=cast("Any", None),
            groups=cast("Any", None),
            transactions=cast("Any", None),
            authorizer=AllowAll(),
            quotas=QuotaEnforcement(self.config, clock),
            advertised_apis=AdvertisedApis(apis.values()),
            produce_conversions=ProduceConversions(cluster.simulation.host.workers, ReceiveBudget()),
            apis=apis,
            forwarder=Forwarder(self.route),
        )
        self.dispatcher = Dispatcher(apis, self.services)

    @property
    def image(self) -> BrokerImage:
        endpoints = {name: Endpoint(f"broker-{self.node_id}", 9092) for name in (CLIENT_LISTENER, BROKER_LISTENER)}
        return BrokerImage(self.node_id, endpoints, broker_epoch=100 + self.node_id)

    async def lead(self, live: Mapping[int, LiveBroker]) -> Controller:
        """Become the controller."""
        controller = Controller(self.controller_store, self.config, CountingEntropy())
        await controller.start_elected(await self.controller_store.claim_controller(self.node_id))
        await controller.cluster.follow_live_brokers(live)
        self.controller = controller
        return controller

    async def ask(self, request: Request, response: type[Response], connection: ClientConnection, version: int) -> Any:
        frame = memoryview(bytearray(encode_request(request, version)[4:]))
        answer: Any = self.dispatcher.handle(frame, connection)
        if not isinstance(answer, list):
            answer = await answer
        return decode_response(response, b"".join(bytes(part) for part in answer)[4:], version)


class Connections:
    """In place of `BrokerClients`."""

    def __init__(self, cluster: TwoBrokers, sender: Member) -> None:
        self._cluster = cluster
        self._sender = sender
        self._turns: dict[tuple[int, str], asyncio.Lock] = {}

    def to(self, address: BrokerAddress, purpose: str) -> Connection:
        turns = self._turns.setdefault((address.node_id, purpose), asyncio.Lock())
        return Connection(self._cluster.members[address.node_id], self._sender, turns)

    def give_up(self, node_id: int, purposes: object) -> None: ...


class Connection:
    """Its requests are handled one after another."""

    def __init__(self, target: Member, sender: Member, turns: asyncio.Lock) -> None:
        self._target = target
        self._sender = sender
        self._turns = turns

    async def call(self, request: Request, response: type[Response], *, timeout_ms: float, version: int) -> Any:
        assert timeout_ms > 0
        if not self._target.is_reachable:
            raise BrokerUnavailable("refused")
        self._target.received.append(request)
        peer = ClientConnection(BROKER_LISTENER, f"10.0.0.{self._sender.node_id}")
        async with self._turns:
            return await self._target.ask(request, response, peer, version)


class TwoBrokers:
    def __init__(
        self, properties: Mapping[int, Mapping[str, str]] | None = None, authorizer: Authorizer | None = None
    ) -> None:
        """`properties` by node id."""
        self.simulation = Simulation(0)
        self.table = Table()
        self.members = [Member(self, node_id, (properties or {}).get(node_id, {})) for node_id in range(2)]
        if authorizer is not None:
            for member in self.members:
                member.services.authorizer = authorizer
        self.client = ClientConnection(CLIENT_LISTENER, "192.0.2.7")
        self.run(self._start())

    @property
    def live(self) -> dict[int, LiveBroker]:
        return {member.node_id: LiveBroker(member.image, ()) for member in self.members}

    async def _start(self) -> None:
        for member in self.members:
            await member.cache.load()
        await self.members[0].lead(self.live)
        await self.settle()

    async def settle(self) -> None:
        for member in self.members:
            await member.cache.wait_until_applied(self.table_version)

    @property
    def table_version(self) -> int:
        return max(member.controller.image.version for member in self.members if member.controller is not None)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.simulation.loop.run_until_complete(coroutine)

    def call(self, node_id: int, request: Request, response: type[Response], version: int | None = None) -> Any:
        chosen = type(request).versions[1] if version is None else version
        return self.run(self.members[node_id].ask(request, response, self.client, chosen))

    def begin(self, node_id: int, request: Request, response: type[Response]) -> asyncio.Task[Any]:
        asked = self.members[node_id].ask(request, response, self.client, type(request).versions[1])
        return self.simulation.loop.create_task(asked)

    def pass_time(self, seconds: float) -> None:
        """Virtual time goes on, and everything that becomes due runs."""
        passed = self.simulation.loop.create_future()
        self.simulation.loop.call_later(seconds, passed.set_result, None)
        self.simulation.loop.run_until_complete(passed)

    def close(self) -> None:
        for member in self.members:
            self.run(member.services.audited_requests.close())
            self.run(member.cache.close())
        self.simulation.close()
