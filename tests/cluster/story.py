"""One seed: a cluster of three brokers, transactions of several clients, and faults of brokers, networks, disks and
ZooKeeper sessions; then quiet, and a last look.

`python -m tests.cluster.story SEED …` prints the digest of each history, the anomalies in it, and what happened.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.configuration.config_types import ConfigResourceType
from odradek.coordinator.transactions.transaction_coordinator import TRANSACTIONS_TOPIC
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.sentinels import NO_BROKER_EPOCH
from tests.cluster.member import Member
from tests.cluster.routing import Routing
from tests.cluster.sessions import SESSION_S, Sessions
from tests.replication.invariants import Invariants, Violation, stored_batches
from tests.simulation.simulated_clock import SimulatedClock, SimulatedLoop
from tests.simulation.simulated_network import SimulatedNetwork
from tests.simulation.simulated_process import tag_tasks
from tests.simulation.simulated_zookeeper import Ensemble
from tests.transactions.checks import anomalies
from tests.transactions.faulty_network import FaultyNetwork
from tests.transactions.history import History
from tests.transactions.workload import look, make_clients, prepare
from tests.wire import encode_request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from odradek.metadata.image import MetadataImage

NODES = (1, 2, 3)
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
ZOOKEEPER = "zookeeper"
FAULTY_S = 30.0
QUIET_S = 90.0
LONGEST_START_S = 90.0
TRANSACTION_TIMEOUTS_MS = [5_000, 20_000]
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


class Result(NamedTuple):
    anomalies: list[str]
    history: History
    events: list[str]
    requests: int
    digest: str


class Story:
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
        self._powerless: dict[int, int] = {}  # the registrations of brokers that lost power
        self._may_commit_alone = False  # whether a minimum of one in-sync replica was ever asked for
        self._history = History(has_new_leaders=True)
        self._clients = FaultyNetwork(Routing(self._members, random.Random(chance.getrandbits(64))), chance)
        self._now_ms = clock.now_ms
        self._invariants = Invariants()
        self._problems: list[str] = []
        self._is_recovering = False
        self._requests: set[asyncio.Task[bytes | None]] = set()
        self.events: list[str] = []

    def run(self) -> Result:
        try:
            self._loop.run_until_complete(self._live())
        except Violation as problem:
            self._problems.append(str(problem))
        finally:
            self._close()
        found = [*self._problems, *anomalies(self._history)]
        digest = hashlib.sha256(repr((self._history, self.events)).encode()).hexdigest()
        return Result(found, self._history, self.events, self._clients.requests, digest)

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

    async def _live(self) -> None:
        watching = asyncio.ensure_future(self._watch())
        telling = asyncio.ensure_future(self._tell())
        await asyncio.wait([watching, telling], return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, telling):
            if task.done():
                task.result()
        watching.cancel()

    async def _start_cluster(self) -> None:
        """Without faults between clients and brokers."""
        self._clients.is_faulty = False
        for member in self._members:
            member.start()
        await self._until(self._is_whole, "the cluster does not start")
        await prepare(self._clients.connect(), replication_factor=len(NODES))

    async def _tell(self) -> None:
        await self._start_cluster()
        self._clients.is_faulty = True
        clients = make_clients(self._clients, self._history, self._chance, self._now_ms, TRANSACTION_TIMEOUTS_MS)
        running = [asyncio.ensure_future(client.run()) for client in clients]
        await self._cause_faults()
        self._recover()
        self._clients.is_faulty = False
        await asyncio.sleep(self._chance.random() * 5)  # a poll's pause
        for client in clients:
            client.is_stopping = True
        late = asyncio.ensure_future(self._clients.wait_for_late_requests())
        _, unfinished = await asyncio.wait([*running, late], timeout=LONGEST_START_S)
        if unfinished:
            raise Violation(f"clients get no answers: {self._state()}")
        for task in running:
            task.result()
        await self._until(self._is_in_sync, "the cluster does not recover")
        await look(self._clients.connect(), self._history, QUIET_S)
        await self._until(self._is_in_sync, "the cluster does not come to rest")
        self._compare_replicas()

    def _note(self, event: str) -> None:
        self.events.append(f"{self._loop.time() * 1000:9.0f} ms  {event}")

    # What is watched

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

    # Faults

    async def _cause_faults(self) -> None:
        end = self._loop.time() + FAULTY_S
        faults: list[tuple[int, Callable[[], Coroutine[Any, Any, None] | None]]] = [
            (4, self._kill),
            (2, self._kill_controller),
            (2, self._lose_power),
            (3, self._stop),
            (10, self._start),
            (3, self._cut),
            (2, self._isolate),
            (2, self._cut_from_zookeeper),
            (6, self._heal),
            (2, self._expire_session),
            (2, self._lose_message_of_zookeeper),
            (2, self._drop_connections),
            (1, self._kill_all),
            (3, self._change_min_in_sync),
        ]
        while self._loop.time() < end:
            await asyncio.sleep(self._chance.random() ** 2 * 4)  # a poll's pause
            fault = self._chance.choices([each for _, each in faults], [weight for weight, _ in faults])[0]
            outcome = fault()
            if outcome is not None:
                await outcome

    def _recover(self) -> None:
        self._heal()
        self._is_recovering = True
        for member in self._members:
            if member.session is not None:
                member.session.lose_answer = member.session.lose_request = None

    def _any_ready(self) -> Member | None:
        ready = [member for member in self._members if member.is_ready]
        return self._chance.choice(ready) if ready else None

    def _kill(self) -> None:
        self._end(self._any_ready(), "is killed")

    def _kill_controller(self) -> None:
        self._end(next((member for member in self._members if member.is_controller), None), "is killed")

    def _kill_all(self) -> None:
        for member in self._members:
            if member.is_alive:
                self._end(member, "is killed")

    def _end(self, member: Member | None, event: str) -> None:
        if member is not None:
            self._note(f"broker {member.node_id} {event}")
            member.kill()
            self._invariants.forget(member.node_id)

    async def _lose_power(self) -> None:
        """Only while all others have everything: with two lost disks, records are lost."""
        member = self._any_ready()
        if member is not None and self._is_in_sync_everywhere():
            self._note(f"broker {member.node_id} loses power")
            self._powerless[member.node_id] = member.coordination.membership.broker_epoch
            member.lose_power()
            self._invariants.forget(member.node_id)
            if self._may_commit_alone:
                await self._until_noticed()

    async def _until_noticed(self) -> None:
        """Until the controller has fenced brokers that lost power. While one counts as in sync, others may leave the
        in-sync set; with a minimum of 1 they are not eligible then, and its records are lost: the rules are Kafka's."""
        for _ in range(round(2 * SESSION_S / STEP_S)):  # there may be no controller
            if not self._counts_powerless():
                return
            await asyncio.sleep(STEP_S)  # a poll's pause

    def _counts_powerless(self) -> bool:
        newest = self._newest_image()
        brokers = () if newest is None else newest.brokers.values()
        return any(
            not each.is_fenced and each.broker_epoch <= self._powerless.get(each.node_id, NO_BROKER_EPOCH)
            for each in brokers
        )

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

    async def _stop(self) -> None:
        member = self._any_ready()
        if member is not None:
            self._note(f"broker {member.node_id} stops")
            await member.stop()
            self._note(f"broker {member.node_id} has stopped")
            self._invariants.forget(member.node_id)

    def _start(self) -> None:
        stopped = [member for member in self._members if not member.is_alive]
        if stopped:
            member = self._chance.choice(stopped)
            self._note(f"broker {member.node_id} starts")
            member.start()

    def _cut(self) -> None:
        source, target = self._chance.sample([member.name for member in self._members], 2)
        self._network.cut(source, target)
        if self._chance.random() < 0.5:
            self._network.cut(target, source)
        self._note(f"cut from {source} to {target}")

    def _isolate(self) -> None:
        name = self._chance.choice(self._members).name
        self._network.isolate(name, [*(member.name for member in self._members), ZOOKEEPER])
        self._note(f"{name} is isolated")

    def _cut_from_zookeeper(self) -> None:
        names = [member.name for member in self._members]
        for name in self._chance.sample(names, self._chance.choice([1, 1, 2, 3])):
            self._network.cut(name, ZOOKEEPER)
            self._note(f"{name} is cut from ZooKeeper")

    def _heal(self) -> None:
        self._note("the network is healed")
        self._network.heal()

    def _expire_session(self) -> None:
        member = self._any_ready()
        if member is not None and member.session is not None and member.session.session_id:
            self._note(f"the session of broker {member.node_id} expires")
            member.session.expire()

    def _lose_message_of_zookeeper(self) -> None:
        member = self._any_ready()
        if member is not None and member.session is not None:
            setattr(member.session, self._chance.choice(["lose_answer", "lose_request"]), self._chance.randrange(4))

    async def _change_min_in_sync(self) -> None:
        """Of a topic or of all brokers, through any broker. The outcome may stay unknown, as for a real operator."""
        member = self._any_ready()
        if member is None:
            return
        minimum = self._chance.choice(["1", "2", "2", "3"])
        if minimum == "1":
            await self._until_noticed()
            self._may_commit_alone = True
        kind, name = self._chance.choice([(TOPIC, "a"), (TOPIC, "b"), (TOPIC, TRANSACTIONS_TOPIC), (BROKER, "")])
        self._note(f"min.insync.replicas of {name or 'all brokers'} is to be {minimum}")
        setting = AlterableConfig(name="min.insync.replicas", config_operation=0, value=minimum)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[setting])
        frame = encode_request(IncrementalAlterConfigsRequest(resources=[resource]), 1)[4:]
        self._requests.add(task := asyncio.ensure_future(member.answer(frame)))
        task.add_done_callback(self._requests.discard)

    def _drop_connections(self) -> None:
        self._network.drop_connections(self._chance.choice(self._members).name)


def tell(seed: int) -> Result:
    return Story(seed).run()


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        result = tell(number)
        print(number, result.digest, *result.anomalies, *(result.events if result.anomalies else ()), sep="\n")
