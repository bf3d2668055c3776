"""A simulated cluster of three brokers whose invariants are checked at every moment."""

import asyncio
import random
from collections.abc import Callable, Mapping

from odradek.metadata.image import MetadataImage
from tests.cluster.member import Member
from tests.cluster.routing import Routing
from tests.cluster.sessions import Sessions
from tests.replication.invariants import Invariants, Violation, stored_batches
from tests.simulation.simulated_clock import SimulatedClock, SimulatedLoop
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.simulated_process import tag_tasks
from tests.simulation.simulated_zookeeper import Ensemble
from tests.transactions.faulty_network import FaultyNetwork

NODES = (1, 2, 3)
ZOOKEEPER = "zookeeper"
LONGEST_START_S = 90.0
STEP_S = 0.05
PROPERTIES = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "5",
    "log.cleaner.enable": "false",  # replicas are compacted each by itself: their bytes differ
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "1500",
    "replica.socket.timeout.ms": "2000",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
}


class WatchedCluster:
    def __init__(self, seed: int, properties: Mapping[str, str] | None = None) -> None:
        self._chance = chance = random.Random(seed)
        self._loop = SimulatedLoop()
        tag_tasks(self._loop)
        asyncio.set_event_loop(None)
        clock = SimulatedClock(self._loop)
        self._network = SimulatedNetwork(self._loop, random.Random(chance.getrandbits(64)))
        ensemble = Ensemble()
        chosen = {**PROPERTIES, **(properties or {})}
        self._members = [
            Member(node_id, ensemble, self._network, clock, random.Random(chance.getrandbits(64)), chosen)
            for node_id in NODES
        ]
        self._sessions = Sessions(self._loop.time)
        self._clients = FaultyNetwork(Routing(self._members, random.Random(chance.getrandbits(64))), chance)
        self._now_ms = clock.now_ms
        self._invariants = Invariants()
        self._is_recovering = False
        self.events: list[str] = []

    def _close(self) -> None:
        for member in self._members:
            if member.is_alive:
                member.kill()
        while tasks := self._loop.unfinished_tasks():
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.close()
        for member in self._members:
            member.disk.dispose()

    def _note(self, event: str) -> None:
        self.events.append(f"{self._loop.time() * 1000:9.0f} ms  {event}")

    async def _watch(self) -> None:
        """Sessions of brokers that ZooKeeper does not reach expire. The invariants hold at every moment."""
        controller_epoch = -1
        while True:
            await asyncio.sleep(STEP_S)  # a poll's pause
            for member in self._members:
                is_reached = member.is_alive and not self._network.is_cut(member.name, ZOOKEEPER)
                self._sessions.watch(member, is_reached=is_reached)
                if self._is_recovering and not member.is_alive:  # as its supervisor does
                    member.start()
            self._invariants.check(self._members)  # type: ignore[arg-type]  # a member has what is used of a machine
            newest = self._newest_image()
            if newest is not None and newest.controller_epoch != controller_epoch:
                controller_epoch = newest.controller_epoch
                self._note(f"broker {newest.controller_id} is the controller, epoch {controller_epoch}")

    def _newest_image(self) -> MetadataImage | None:
        images = [member.image for member in self._members if member.is_ready]
        return max(images, key=lambda image: image.version, default=None)

    async def _until(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = self._loop.time() + LONGEST_START_S
        while not condition():
            if self._loop.time() > deadline:
                raise Violation(f"{complaint}: {self._state()}")
            await asyncio.sleep(STEP_S)  # a poll's pause

    def _is_whole(self) -> bool:
        """All brokers run, and each knows that all take part."""
        return all(
            member.is_ready
            and {each.node_id for each in member.image.brokers.values() if not each.is_fenced} == set(NODES)
            for member in self._members
        )

    def _is_in_sync(self) -> bool:
        newest = self._newest_image()
        if newest is None or not self._is_whole() or not self._is_in_sync_everywhere():
            return False
        return all(
            partition.leader >= 0 and self._is_even(name, index)
            for name, topic in newest.topics.items()
            for index, partition in enumerate(topic.partitions)
        )

    def _is_even(self, topic: str, index: int) -> bool:
        hosted = [member.table.find(topic, index) for member in self._members]
        return len({each and (each.log.log_end_offset, each.high_watermark) for each in hosted}) == 1

    def _compare_replicas(self) -> None:
        newest = self._newest_image()
        for name, topic in newest.topics.items() if newest is not None else ():
            for index in range(len(topic.partitions)):
                found = [each for member in self._members if (each := member.table.find(name, index)) is not None]
                logs = [list(stored_batches(each, 0, each.log.log_end_offset)) for each in found]
                if any(each != logs[0] for each in logs):
                    raise Violation(f"{name}-{index}: the logs differ at the end")

    def _state(self) -> str:
        lines = [f"broker {each.node_id}: {'ready' if each.is_ready else 'not ready'}" for each in self._members]
        newest = self._newest_image()
        if newest is not None:
            lines += [f"{each.node_id} fenced" for each in newest.brokers.values() if each.is_fenced]
            lines += [f"{topic.name} {partition}" for topic in newest.topics.values() for partition in topic.partitions]
        return "; ".join(lines)

    def _is_in_sync_everywhere(self) -> bool:
        newest = self._newest_image()
        return (
            newest is not None
            and all(member.is_ready for member in self._members)
            and all(
                set(partition.in_sync_replicas) == set(NODES)
                for topic in newest.topics.values()
                for partition in topic.partitions
            )
        )
