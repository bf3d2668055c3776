"""Several brokers without sockets on one simulated host: a disk for each, one ZooKeeper, one clock, one seed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.host.host import Host
from odradek.host.zookeeper import ZooKeeperSettings
from odradek.metadata.zookeeper_store import ZooKeeperStore
from odradek.server.cluster_member import ClusterMember
from odradek.server.node import Node
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_host import Simulation
from tests.simulation.simulated_zookeeper import Ensemble, SimulatedSession

T = TypeVar("T")


class SimulatedMember:
    """One broker over all its lives. `session` is the one of the present life."""

    def __init__(self, cluster: SimulatedCluster, node_id: int) -> None:
        self._cluster = cluster
        self.node_id = node_id
        self.disk = SimulatedDisk(cluster.simulation.clock.now_ms)
        self.node: Node | None = None
        self.session: SimulatedSession | None = None
        self.config = BrokerConfig.from_properties(
            {
                "log.dirs": "/data",
                "node.id": str(node_id),
                "zookeeper.connect": "simulated:2181",
                "offsets.topic.num.partitions": "1",
            }
        )

    @property
    def coordination(self) -> ClusterMember:
        assert self.node is not None
        assert isinstance(self.node._coordination, ClusterMember)
        return self.node._coordination

    async def start(self) -> None:
        host = replace(self._cluster.simulation.host, disk=self.disk, connect_zookeeper=self._connect)
        self.node = Node(self.config, host)
        await self.node.start()
        await self.node.serve({"PLAINTEXT": Endpoint(f"broker-{self.node_id}", 9092)})

    async def stop(self) -> None:
        node, self.node, self.session = self.node, None, None
        if node is not None:
            node.release_waiting_requests()
            await node.stop()

    def _connect(self, _settings: ZooKeeperSettings) -> SimulatedSession:
        self.session = SimulatedSession(self._cluster.ensemble, self._cluster.delay_s)
        return self.session


class SimulatedCluster:
    def __init__(self, seed: int, broker_count: int = 3) -> None:
        self.simulation = Simulation(seed)
        self.chance = self.simulation.chance
        self.ensemble = Ensemble()
        self.members = [SimulatedMember(self, node_id) for node_id in range(1, broker_count + 1)]

    @property
    def host(self) -> Host:
        return self.simulation.host

    @property
    def controllers(self) -> list[SimulatedMember]:
        running = [member for member in self.members if member.node is not None]
        return [member for member in running if member.coordination.election.controller is not None]

    def delay_s(self) -> float:
        return self.chance.choice([0.0, 0.001, 0.01])

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        asyncio.set_event_loop(None)
        return self.simulation.loop.run_until_complete(coroutine)

    def open_store(self) -> ZooKeeperStore:
        """Of an observer, whose connection does not break."""
        return ZooKeeperStore(self.host, SimulatedSession(self.ensemble))

    def close(self) -> None:
        while tasks := asyncio.all_tasks(self.simulation.loop):
            for task in tasks:
                task.cancel()
            self.run(_finished(tasks))
        self.simulation.close()
        for member in self.members:
            member.disk.dispose()


async def _finished(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
