"""One broker of a simulated cluster over all its lives: everything but its sockets is the real one."""

import asyncio
import random
from typing import TypeVar

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.handlers.context import ClientConnection, CloseConnection
from odradek.host.background import BackgroundContext
from odradek.host.host import Host
from odradek.host.zookeeper import ZooKeeperSettings
from odradek.metadata.image import MetadataImage
from odradek.metadata.store import StoreError
from odradek.replica.partition_table import PartitionTable
from odradek.server.cluster_member import ClusterMember
from odradek.server.node import Node
from tests.replication.machine import ServerConnection, answer_of
from tests.simulation.simulated_clock import SimulatedClock
from tests.simulation.simulated_host import InlineBackground, InlineWorkers, SimulatedEntropy
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.simulated_process import Life, LivingClock, SimulatedProcess
from tests.simulation.simulated_zookeeper import Ensemble, SimulatedSession

T = TypeVar("T")
PORT = 9092


class Member(SimulatedProcess):
    def __init__(
        self,
        node_id: int,
        ensemble: Ensemble,
        network: SimulatedNetwork,
        clock: SimulatedClock,
        chance: random.Random,
        properties: dict[str, str],
    ) -> None:
        super().__init__(node_id, f"broker-{node_id}", network, clock, chance)
        self._ensemble = ensemble
        self._boot = 1
        self._config = BrokerConfig.from_properties(
            {"node.id": str(node_id), "log.dirs": "/data", "zookeeper.connect": "simulated:2181", **properties}
        )
        self.advertised_host = self.name
        self.longest_background_pause_s = 0.0
        self.node: Node | None = None
        self.session: SimulatedSession | None = None
        self.left_sessions: list[SimulatedSession] = []
        """Of earlier processes that were killed: ZooKeeper keeps them until they expire, whoever starts meanwhile."""

    # Life

    async def stop(self) -> None:
        """A controlled shutdown; a broker that is killed meanwhile is killed."""
        node, life = self.node, self.life
        if node is None or life is None or not self.is_ready:
            return
        await asyncio.wait([self.spawn(self._shut_down(node))])
        if self.life is life:
            self._end()

    async def _shut_down(self, node: Node) -> None:
        await node.hand_over()
        self.is_ready = False
        self._network.crash(self.name)
        node.release_waiting_requests()
        await node.stop()

    def lose_power(self) -> None:
        super().lose_power()
        self._boot += 1

    def _end(self) -> None:
        super()._end()
        if self.session is not None:
            self.session.abandon()
            if self.session.session_id:
                self.left_sessions.append(self.session)
        self.node = self.session = None

    def _may_end_with(self, problem: BaseException) -> bool:
        return isinstance(problem, StoreError)  # ZooKeeper did not answer at the start

    async def _live(self, life: Life) -> None:
        clock = LivingClock(self._clock, life)
        chances = [random.Random(self._chance.getrandbits(64)) for _ in range(3)]
        background = BackgroundContext(self.disk, clock.monotonic_ms, lambda _: None)
        host = Host(
            clock=clock,
            disk=self.disk,
            entropy=SimulatedEntropy(chances[0]),
            workers=InlineWorkers(chances[1]),
            background=InlineBackground(background, chances[2], lambda: self.longest_background_pause_s),
            network=self._network.from_machine(self.name),
            boot_id=f"{self.name}, boot {self._boot}",
            connect_zookeeper=self._connect,
        )
        self.node = node = Node(self._config, host)
        await node.start()
        self._network.listen(self.name, PORT, lambda: ServerConnection(node.compose_serving().dispatcher))
        self._network.listen(self.advertised_host, PORT, lambda: ServerConnection(node.compose_serving().dispatcher))
        await node.serve({"PLAINTEXT": Endpoint(self.advertised_host, PORT)})
        self.is_ready = True

    def _connect(self, _settings: ZooKeeperSettings) -> SimulatedSession:
        self.session = SimulatedSession(self._ensemble, lambda: self._chance.choice([0.0, 0.001, 0.01]))
        return self.session

    # What is looked at

    @property
    def table(self) -> PartitionTable:
        assert self.node is not None
        return self.node.compose_serving().dispatcher._services.partitions

    @property
    def image(self) -> MetadataImage:
        return self.coordination.metadata.image

    @property
    def coordination(self) -> ClusterMember:
        assert self.node is not None
        assert isinstance(self.node._coordination, ClusterMember)
        return self.node._coordination

    @property
    def is_controller(self) -> bool:
        return self.is_ready and self.coordination.election.controller is not None

    # Clients

    async def answer(self, frame: bytes) -> bytes | None:
        """As to a client that reaches this machine, also when it is cut off from the others. None when the connection
        ends without an answer."""
        if not self.is_ready or self.node is None:
            return None
        client = ClientConnection("PLAINTEXT", "client")
        task = self.spawn(answer_of(self.node.compose_serving().dispatcher, memoryview(bytearray(frame)), client))
        await asyncio.wait([task])
        if task.cancelled():
            return None
        try:
            return task.result()
        except CloseConnection:
            return None
