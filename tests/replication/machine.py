"""One broker of a simulated cluster, over all its lives: partitions, handlers and replication on a disk of its own."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from odradek.client.broker_clients import BrokerClients
from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.handlers.api import AdvertisedApis
from odradek.handlers.context import ClientConnection, CloseConnection, Services
from odradek.handlers.dispatch import Dispatcher
from odradek.handlers.fetch_sessions import FetchSessions
from odradek.handlers.produce_conversions import ProduceConversions
from odradek.handlers.quota_enforcement import QuotaEnforcement
from odradek.handlers.registry import build_registry
from odradek.host.host import Host
from odradek.host.receive_budget import ReceiveBudget
from odradek.log.log_directory import LogDirectory
from odradek.metadata.image import MetadataImage
from odradek.protocol.schema import Request, Response
from odradek.replica.partition_table import PartitionTable
from odradek.replica.replication import Replication
from odradek.security.authorizer import AllowAll
from tests.replication.tiny_controller import MIN_IN_SYNC, PORT, TinyController, machine_of
from tests.simulation.simulated_clock import SimulatedClock
from tests.simulation.simulated_host import InlineBackground, InlineWorkers, SimulatedEntropy
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.simulated_process import Life, LivingClock, SimulatedProcess
from tests.wire import decode_response, encode_request

R = TypeVar("R", bound="Response")
T = TypeVar("T")
CONTROLLER = "controller"


class AppliedMetadata:
    """What handlers use of the metadata cache."""

    def __init__(self, config: BrokerConfig, image: MetadataImage) -> None:
        self.broker_config = config
        self.image = image


class ServerConnection(asyncio.BufferedProtocol):
    """The broker's end of a connection: one request at a time, as in `server/connection`."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._memory = bytearray(1 << 16)
        self._received = bytearray()
        self._frames: deque[memoryview] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._client = ClientConnection("PLAINTEXT", "peer")

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._memory

    def buffer_updated(self, nbytes: int) -> None:
        self._received += self._memory[:nbytes]
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                break
            self._frames.append(memoryview(self._received[4:end]))
            del self._received[:end]
        if self._client.waiting_replica_fetch is not None and self._frames:
            self._client.waiting_replica_fetch.finish()
        if self._answering is None and self._frames:
            self._answering = asyncio.ensure_future(self._answer())

    async def _answer(self) -> None:
        try:
            while self._frames:
                self._transport.write(await answer_of(self._dispatcher, self._frames.popleft(), self._client))
        except CloseConnection:
            self._transport.abort()
        finally:
            self._answering = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answering is not None:
            self._answering.cancel()


async def answer_of(dispatcher: Dispatcher, frame: memoryview, client: ClientConnection) -> bytes:
    answer = dispatcher.handle(frame, client)
    if not isinstance(answer, list):
        answer = await cast("Awaitable[Any]", answer)
    return b"".join(bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in answer)


class Machine(SimulatedProcess):
    def __init__(
        self,
        node_id: int,
        controller: TinyController,
        network: SimulatedNetwork,
        clock: SimulatedClock,
        chance: random.Random,
        properties: dict[str, str],
    ) -> None:
        super().__init__(node_id, machine_of(node_id), network, clock, chance)
        self._controller = controller
        self.config = BrokerConfig.from_properties(
            {
                "node.id": str(node_id),
                "log.dirs": "/data",
                "listeners": f"PLAINTEXT://{self.name}:{PORT}",
                "min.insync.replicas": str(MIN_IN_SYNC),
                "replica.lag.time.max.ms": "1500",
                "replica.fetch.backoff.ms": "100",
                "replica.socket.timeout.ms": "2000",
                "log.segment.bytes": "1048576",
                **properties,
            }
        )
        self.has_lost_records = False
        self.broker_epoch = -1
        self._client = ClientConnection("PLAINTEXT", "client")

    # Life

    def lose_power(self) -> None:
        super().lose_power()
        self.has_lost_records = True

    async def _live(self, life: Life) -> None:
        controller = self._controller
        clock = LivingClock(self._clock, life)
        chances = [random.Random(self._chance.getrandbits(64)) for _ in range(3)]
        host = Host(
            clock=clock,
            disk=self.disk,
            entropy=SimulatedEntropy(chances[0]),
            workers=InlineWorkers(chances[1]),
            background=InlineBackground(cast("Any", None), chances[2]),
            network=self._network.from_machine(self.name),
        )
        await self._controller_reached()
        image = controller.image
        metadata = AppliedMetadata(self.config, image)
        clients = BrokerClients(host, self.name)
        self.replication = Replication(self.node_id, clients, self, lambda: self.config, clock)
        directory = LogDirectory.open("/data", host, cluster_id="simulated", node_id=self.node_id)
        self.table = table = PartitionTable(
            host, self.node_id, [directory], lambda: self.config, self._fail, self._run_in_order, self.replication
        )
        await table.load(image)
        await self._controller_reached()
        self.broker_epoch = controller.register(self.node_id, has_lost_records=self.has_lost_records)
        self.has_lost_records = False
        await table.lead_from(self.broker_epoch)
        self.replication.start(table, image, self.broker_epoch)
        self.dispatcher = self._dispatcher(host, metadata)
        self._network.listen(self.name, PORT, lambda: ServerConnection(self.dispatcher))
        self.is_ready = True
        await self._follow(metadata)

    def _dispatcher(self, host: Host, metadata: AppliedMetadata) -> Dispatcher:
        apis = build_registry()
        unused = cast("Any", None)
        services = Services(
            host=host,
            metadata=cast("Any", metadata),
            controller=unused,
            partitions=self.table,
            fetch_sessions=FetchSessions(100, host.clock, host.entropy),
            producer_ids=unused,
            groups=unused,
            transactions=unused,
            authorizer=AllowAll(),
            quotas=QuotaEnforcement(BrokerConfig.from_properties({}), host.clock),
            advertised_apis=AdvertisedApis(apis.values()),
            produce_conversions=ProduceConversions(host.workers, ReceiveBudget()),
        )
        return Dispatcher(apis, services)

    async def _follow(self, metadata: AppliedMetadata) -> None:
        """Apply newer metadata, also several commits at once, as long as the controller is reached."""
        while True:
            newest = self._controller.image
            if newest is metadata.image:
                await self._controller.has_changed.wait()
                continue
            await self._pause()
            await self._controller_reached()
            before, metadata.image = metadata.image, newest
            await self.table.follow(before, newest)
            self.replication.follow(before, newest)
            own = newest.brokers.get(self.node_id)
            if own is None and self._controller.image.brokers.get(self.node_id) is None:  # its session has expired
                self.broker_epoch = self._controller.register(self.node_id, has_lost_records=False)
                self.replication.register_again(self.broker_epoch)

    async def _pause(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.5, 40) / 1000)  # a poll's pause: on virtual time

    async def _controller_reached(self) -> None:
        while self._network.is_cut(self.name, CONTROLLER):
            await self._pause()

    def _fail(self, directory: LogDirectory) -> None:
        raise AssertionError(f"{directory.path} failed: {directory.failure}")

    async def _run_in_order(self, job: Callable[[], Awaitable[None]]) -> None:
        await job()

    # InSyncChannel

    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        """The request or the response is lost when the controller is cut off."""
        await self._pause()
        if self._network.is_cut(self.name, CONTROLLER):
            raise OSError("the controller is not reached")
        results = [self._controller.alter(self.node_id, proposal) for proposal in proposals]
        await self._pause()
        if self._network.is_cut(self.name, CONTROLLER) or self._chance.random() < 0.05:
            raise OSError("the answer of the controller was lost")
        return results

    # Clients

    async def call(self, request: Request, response: type[R], version: int) -> R:
        """As a client that reaches this machine, also when it is cut off from the others."""
        frame = memoryview(bytearray(encode_request(request, version)[4:]))
        assert self.life is not None
        data = await answer_of(self.dispatcher, frame, self._client)
        return decode_response(response, data[4:], version)
