"""One seed: a cluster of three brokers, transactions of several clients, and faults of brokers, networks, disks and
ZooKeeper sessions; then quiet, and a last look.

`python -m tests.cluster.story SEED …` prints the digest of each history, the anomalies in it, and what happened.
"""

import asyncio
import hashlib
import logging
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from odradek.configuration.config_types import ConfigResourceType
from odradek.coordinator.transactions.transaction_coordinator import TRANSACTIONS_TOPIC
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.sentinels import NO_BROKER_EPOCH
from tests.cluster.member import Member
from tests.cluster.sessions import SESSION_S
from tests.cluster.watched_cluster import LONGEST_START_S, NODES, STEP_S, ZOOKEEPER, WatchedCluster
from tests.replication.invariants import Violation
from tests.transactions.checks import anomalies
from tests.transactions.history import History
from tests.transactions.workload import look, make_clients, prepare
from tests.wire import encode_request

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
FAULTY_S = 30.0
QUIET_S = 90.0
TRANSACTION_TIMEOUTS_MS = [5_000, 20_000]
Fault = tuple[int, "Callable[[], Coroutine[Any, Any, None] | None]"]  # how often, relative to others


class Result(NamedTuple):
    anomalies: list[str]
    history: History
    events: list[str]
    requests: int
    digest: str


class _UnexpectedErrors(logging.Handler):
    """What brokers log with a traceback and retry: only disks may fail so."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._problems = problems

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None and not isinstance(problem, OSError):
            self._problems.append(f"logged: {record.getMessage()}: {problem!r}")


class Story(WatchedCluster):
    faulty_s = FAULTY_S

    def __init__(self, seed: int, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(seed, properties)
        self._powerless: dict[int, int] = {}  # the registrations of brokers that lost power
        self._may_commit_alone = False  # whether a minimum of one in-sync replica was ever asked for
        self._history = History(has_new_leaders=True)
        self._problems: list[str] = []
        self._requests: set[asyncio.Task[bytes | None]] = set()

    def run(self) -> Result:
        logger, errors = logging.getLogger("odradek"), _UnexpectedErrors(self._problems)
        logger.addHandler(errors)
        try:
            self._loop.run_until_complete(self._live())
        except Violation as problem:
            self._problems.append(str(problem))
        finally:
            self._close()
            logger.removeHandler(errors)
        found = [*self._problems, *anomalies(self._history)]
        digest = hashlib.sha256(repr((self._history, self.events)).encode()).hexdigest()
        return Result(found, self._history, self.events, self._clients.requests, digest)

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
        await self._come_to_rest()

    async def _come_to_rest(self) -> None:
        await self._until(self._is_in_sync, "the cluster does not recover")
        await look(self._clients.connect(), self._history, QUIET_S)
        await self._until(self._is_in_sync, "the cluster does not come to rest")
        self._compare_replicas()

    # Faults

    async def _cause_faults(self) -> None:
        end = self._loop.time() + self.faulty_s
        faults = self._faults()
        while self._loop.time() < end:
            await asyncio.sleep(self._chance.random() ** 2 * 4)  # a poll's pause
            fault = self._chance.choices([each for _, each in faults], [weight for weight, _ in faults])[0]
            outcome = fault()
            if outcome is not None:
                await outcome

    def _faults(self) -> list[Fault]:
        return [
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
