"""Three simulated brokers, their network, a controller and clients, driven by one seed.

`run_seed` is one story: steps of clients and faults, invariants after each; then everything is healed, and all
replicas must be equal and have every record that was acknowledged.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from odradek.protocol.batch import read_batch_header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.handlers.requests import batch
from tests.replication.invariants import Invariants, Key, Violation, stored_batches
from tests.replication.machine import CONTROLLER, Machine
from tests.replication.tiny_controller import TinyController
from tests.simulation.simulated_clock import SimulatedClock, SimulatedLoop
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.simulated_process import tag_tasks

NODES = (0, 1, 2)
TOPIC = "t"
PARTITIONS = 2
SESSION_MS = 800.0
PRODUCE_TIMEOUT_MS = 3_000


class SimulatedCluster:
    def __init__(self, seed: int, properties: dict[str, str] | None = None) -> None:
        self.chance = random.Random(seed)
        self.loop = SimulatedLoop()
        tag_tasks(self.loop)
        asyncio.set_event_loop(None)
        self.clock = SimulatedClock(self.loop)
        self.network = SimulatedNetwork(self.loop, random.Random(self.chance.getrandbits(64)))
        self.history: list[str] = []
        self.controller = TinyController()
        self.controller.note = self.note
        self.invariants = Invariants()
        self.machines = [
            Machine(
                node_id,
                self.controller,
                self.network,
                self.clock,
                random.Random(self.chance.getrandbits(64)),
                properties or {},
            )
            for node_id in NODES
        ]
        self.acknowledged: dict[Key, list[tuple[int, int]]] = {(TOPIC, index): [] for index in range(PARTITIONS)}
        self.sent_count = 0
        self._produces: dict[asyncio.Task[None], None] = {}
        self._last_seen_ms = dict.fromkeys(NODES, 0.0)
        self.run(self._start_all())

    def note(self, text: str) -> None:
        self.history.append(f"{self.loop.time() * 1000:9.0f} ms  {text}")

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(story)

    async def _start_all(self) -> None:
        for machine in self.machines:
            machine.start()
        await self.let_pass(200)
        self.controller.create_topic(TOPIC, PARTITIONS, NODES)
        await self.let_pass(300)

    async def let_pass(self, duration_ms: float) -> None:
        """Time passes in small steps; the invariants hold after each. Sessions of silent brokers expire."""
        end_s = self.loop.time() + duration_ms / 1000
        while self.loop.time() < end_s:
            await asyncio.sleep(min(0.02, end_s - self.loop.time()))  # a poll's pause: on virtual time
            self._watch_sessions()
            self.invariants.check(self.machines)

    def _watch_sessions(self) -> None:
        now_ms = self.loop.time() * 1000
        for machine in self.machines:
            if machine.is_ready and not self.network.is_cut(machine.name, CONTROLLER):
                self._last_seen_ms[machine.node_id] = now_ms
            elif (
                machine.node_id in self.controller.image.brokers
                and now_ms - self._last_seen_ms[machine.node_id] > SESSION_MS
            ):
                self.note(f"broker {machine.node_id} is fenced")
                self.controller.fence(machine.node_id)

    # Clients

    def believed_leader(self, index: int) -> Machine | None:
        """Mostly the real one; sometimes any broker, as a client with old metadata chooses."""
        leader = self.controller.image.topics[TOPIC].partitions[index].leader
        if self.chance.random() < 0.15:
            leader = self.chance.choice(NODES)
        machine = self.machines[leader] if leader >= 0 else None
        return machine if machine is not None and machine.is_ready else None

    def produce(self) -> None:
        index = self.chance.randrange(PARTITIONS)
        machine = self.believed_leader(index)
        if machine is None:
            return
        acks = self.chance.choice((-1, -1, 1))
        size = self.chance.choice((8, 200))
        values = [f"{self.sent_count + place}".encode().ljust(size, b".") for place in range(self.chance.randint(1, 3))]
        self.sent_count += len(values)
        task = machine.spawn(self._produce(machine, index, bytes(batch(*values)), acks))
        self._produces[task] = None
        task.add_done_callback(lambda done: self._produces.pop(done, None))

    async def _produce(self, machine: Machine, index: int, sent: bytes, acks: int) -> None:
        data = PartitionProduceData(index=index, records=memoryview(bytearray(sent)))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        response = await machine.call(request, ProduceResponse, 9)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.NONE and acks == -1:
            crc = read_batch_header(memoryview(sent)).crc
            self.acknowledged[TOPIC, index].append((answer.base_offset, crc))
            self.invariants.check(self.machines)
            self.invariants.check_acknowledged((TOPIC, index), [(answer.base_offset, crc)])

    async def delete_records(self) -> None:
        """As a client that does not wait for the followers."""
        index = self.chance.randrange(PARTITIONS)
        machine = self.believed_leader(index)
        if machine is None:
            return
        partition = DeleteRecordsPartition(partition_index=index, offset=self.chance.randrange(20))
        topic = DeleteRecordsTopic(name=TOPIC, partitions=[partition])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=100)
        machine.spawn(machine.call(request, DeleteRecordsResponse, 1))

    async def see_end(self) -> None:
        """As a client whose metadata is the newest: another broker, or an older epoch, is refused."""
        index = self.chance.randrange(PARTITIONS)
        partition = self.controller.image.topics[TOPIC].partitions[index]
        if partition.leader < 0 or not self.machines[partition.leader].is_ready:
            return
        asked = ListOffsetsPartition(partition_index=index, current_leader_epoch=partition.leader_epoch, timestamp=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])])
        response = await self.machines[partition.leader].call(request, ListOffsetsResponse, 6)
        answer = response.topics[0].partitions[0]
        if answer.error_code == ErrorCode.NONE:
            self.invariants.see_end((TOPIC, index), answer.offset)

    # Faults

    def kill(self) -> None:
        machine = self.chance.choice(self.machines)
        if machine.is_ready:
            self.note(f"broker {machine.node_id} is killed")
            machine.kill()
            self.invariants.forget(machine.node_id)

    def lose_power(self) -> None:
        """Of one broker, if others can lead everything without it: with two lost disks, records are lost."""
        machine = self.chance.choice(self.machines)
        if not machine.is_ready or not self._is_dispensable(machine.node_id):
            return
        self.note(f"broker {machine.node_id} loses power")
        machine.lose_power()
        self.invariants.forget(machine.node_id)

    def _is_dispensable(self, node_id: int) -> bool:
        if any(machine.has_lost_records for machine in self.machines):
            return False
        for partition in self.controller.image.topics[TOPIC].partitions:
            candidates = {*partition.in_sync_replicas, *partition.eligible_leader_replicas} - {node_id}
            if not any(self.machines[each].is_ready for each in candidates):
                return False
        return True

    def restart(self) -> None:
        stopped = [machine for machine in self.machines if not machine.is_alive]
        if stopped:
            machine = self.chance.choice(stopped)
            self.note(f"broker {machine.node_id} starts")
            machine.start()

    def cut(self) -> None:
        names = [machine.name for machine in self.machines] + [CONTROLLER]
        source, target = self.chance.sample(names, 2)
        self.network.cut(source, target)
        if self.chance.random() < 0.5:
            self.network.cut(target, source)
        self.note(f"cut from {source} to {target}")

    def isolate(self) -> None:
        machine = self.chance.choice(self.machines)
        names = [each.name for each in self.machines] + [CONTROLLER]
        self.note(f"{machine.name} is isolated")
        self.network.isolate(machine.name, names)

    def heal(self) -> None:
        self.note("the network is healed")
        self.network.heal()

    def drop_connections(self) -> None:
        machine = self.chance.choice(self.machines)
        self.network.drop_connections(machine.name)

    def move_leader(self) -> None:
        self.controller.move_leader(TOPIC, self.chance.randrange(PARTITIONS), self.chance.choice(NODES))

    async def flush(self) -> None:
        machine = self.chance.choice(self.machines)
        if machine.is_ready:
            for partition in tuple(machine.table):
                if not partition.log.is_truncating:
                    partition.log.flush()
            await machine.spawn(machine.table.checkpoint())

    # The story

    async def step(self) -> None:
        choices: list[tuple[int, Callable[[], Any]]] = [
            (50, self.produce),
            (10, self.see_end),
            (1, self.delete_records),
            (4, self.kill),
            (2, self.lose_power),
            (8, self.restart),
            (4, self.cut),
            (2, self.isolate),
            (6, self.heal),
            (2, self.drop_connections),
            (6, self.move_leader),
            (3, self.flush),
        ]
        chosen = self.chance.choices([each for _, each in choices], [weight for weight, _ in choices])[0]
        outcome = chosen()
        if outcome is not None:
            await outcome
        await self.let_pass(self.chance.choice((1, 5, 20, 60, 200)))

    async def recover(self) -> None:
        """All brokers run and reach each other: everything that was acknowledged is there, on each of them."""
        self.heal()
        for machine in self.machines:
            if not machine.is_alive:
                machine.start()
        for _ in range(600):
            await self.let_pass(100)
            if not self._produces and self._is_recovered():
                break
        else:
            raise Violation(f"the cluster does not recover: {self._state()}")
        for key, acknowledged in self.acknowledged.items():
            self.invariants.check_acknowledged(key, acknowledged)
            found = [each for machine in self.machines if (each := machine.table.find(*key)) is not None]
            # A deletion may not have reached all replicas before its leader was deposed.
            start = max(each.log.log_start_offset for each in found)
            replicas = [list(stored_batches(each, start, each.log.log_end_offset)) for each in found]
            if any(each != replicas[0] for each in replicas):
                raise Violation(f"{key}: the logs differ after all brokers have recovered")

    def _is_recovered(self) -> bool:
        for partition in self.controller.image.topics[TOPIC].partitions:
            if set(partition.in_sync_replicas) != set(NODES) or partition.leader < 0:
                return False
            hosted = [machine.table.find(TOPIC, partition.index) for machine in self.machines if machine.is_ready]
            offsets = {(each.log.log_end_offset, each.high_watermark) for each in hosted if each is not None}
            if len(hosted) < len(NODES) or len(offsets) > 1 or any(end != mark for end, mark in offsets):
                return False
        return True

    def _state(self) -> str:
        lines = [
            f"{machine.node_id}:{partition.index} {partition.leadership.value} epoch {partition.leader_epoch} "
            f"log {partition.log.log_start_offset} to {partition.log.log_end_offset}, high watermark "
            f"{partition.high_watermark}"
            for machine in self.machines
            if machine.is_ready
            for partition in machine.table
        ]
        return "; ".join([*lines, str(self.controller.image.topics[TOPIC].partitions)])

    def close(self) -> None:
        for machine in self.machines:
            if machine.is_alive:
                machine.kill()
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.run(_ended(tasks))
        self.loop.close()
        for machine in self.machines:
            machine.disk.dispose()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def run_seed(seed: int, steps: int = 120) -> SimulatedCluster:
    """The cluster after its story, closed. Violation, with the history in a note, when an invariant does not hold."""
    cluster = SimulatedCluster(seed)
    try:
        for _ in range(steps):
            cluster.run(cluster.step())
        cluster.run(cluster.recover())
    except BaseException as problem:
        problem.add_note("\n".join([f"seed {seed}", *cluster.history[-60:]]))
        raise
    finally:
        cluster.close()
    return cluster
