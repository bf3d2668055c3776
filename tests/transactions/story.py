"""One seed: transactions of several clients on a simulated broker, with faults; then quiet, and a last look."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar, TypeVarTuple

from odradek.host.workers import DirectoryWorkers
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.simulation.simulated_host import InlineWorkers, Simulation
from tests.transactions import requests
from tests.transactions.checks import anomalies
from tests.transactions.history import History
from tests.transactions.producers import Producer
from tests.transactions.readers import Reader, read_all
from tests.transactions.requests import VERSION_1, VERSION_2, Lost
from tests.transactions.simulated_broker import Died, SimulatedBroker
from tests.transactions.simulated_network import SimulatedNetwork

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.protocol.topic_partition import TopicPartition
    from tests.transactions.requests import Connection

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

OUTPUTS: list[TopicPartition] = [("a", 0), ("a", 1), ("b", 0)]
SOURCE: TopicPartition = ("input", 0)
FAULTY_S = 30.0
SLOWEST_FLUSH_S = 0.05
LONGEST_TRANSACTION_MS = 20_000
QUIET_S = 90.0  # the last transactions reach their timeout, and retries their longest delay
HOUR_MS = 3_600_000


class Result(NamedTuple):
    anomalies: list[str]
    history: History
    requests: int
    lives: int


class SlowFlushes(InlineWorkers):
    """An fsync takes time, in which others come and the broker may die."""

    def for_directory(self, path: str) -> DirectoryWorkers:
        return DirectoryWorkers(_SlowWorkers(self._chance), self)


class _SlowWorkers(InlineWorkers):
    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        await asyncio.sleep(self._chance.random() ** 3 * SLOWEST_FLUSH_S)  # a poll's pause
        return await super().run(function, *args)


class Story:
    def __init__(self, seed: int) -> None:
        self._simulation = Simulation(seed)
        self._simulation.host = replace(
            self._simulation.host, workers=SlowFlushes(random.Random(self._simulation.chance.getrandbits(64)))
        )
        self._chance = self._simulation.chance
        self._is_flushed = self._chance.random() < 0.5  # then the broker waits for fsync, and may lose power
        self._history = History()
        self._broker = SimulatedBroker(self._simulation, self._properties())
        self._network = SimulatedNetwork(self._broker, self._chance)
        self._clients: list[Producer | Reader] = []

    def _properties(self) -> dict[str, str]:
        properties = {
            "log.dirs": "/data",
            "auto.create.topics.enable": "false",
            "transaction.state.log.num.partitions": "2",
            "offsets.topic.num.partitions": "2",
            "log.message.timestamp.after.max.ms": str(24 * HOUR_MS),  # the clock jumps
        }
        if self._is_flushed:
            properties["log.flush.interval.messages"] = "1"
        return properties

    def run(self) -> Result:
        loop = self._simulation.loop
        asyncio.set_event_loop(None)
        try:
            loop.run_until_complete(self._live())
            return Result(anomalies(self._history), self._history, self._network.requests, self._broker.life)
        finally:
            while tasks := asyncio.all_tasks(loop):
                for task in tasks:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(tasks))
            self._simulation.close()

    async def _live(self) -> None:
        await self._broker.start()
        await self._prepare()
        self._add_clients()
        running = [asyncio.ensure_future(client.run()) for client in self._clients]
        await self._cause_faults()
        self._network.is_faulty = False
        await asyncio.sleep(self._chance.random() * 5)  # a poll's pause
        for client in self._clients:
            client.is_stopping = True
        await asyncio.wait(running)
        for task in running:
            task.result()
        try:
            await self._look()
        except Lost:
            self._history.report("no answer: the broker does not serve its clients at the end")

    async def _prepare(self) -> None:
        self._network.is_faulty = False
        connection = self._network.connect()
        small = {"segment.index.bytes": "64", "index.interval.bytes": "100"}  # segments are rolled often
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in small.items()]
        topics = [
            CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=configs)
            for name in sorted({name for name, _ in (*OUTPUTS, SOURCE)})
        ]
        answer = await connection.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse, 7)
        assert all(topic.error_code == ErrorCode.NONE for topic in answer.topics)
        for kind in (0, 1):
            request = FindCoordinatorRequest(coordinator_keys=["x"], key_type=kind)
            await connection.call(request, FindCoordinatorResponse, 4)
        self._network.is_faulty = True

    def _add_clients(self) -> None:
        chance = self._chance
        ids = ["t0", "t1", "t2", chance.choice(["t0", "t1", "t2"])]  # the last one makes another a zombie
        for number, transactional_id in enumerate(ids):
            connection = self._network.connect(lambda number=number: self._late(number))  # type: ignore[misc]
            producer = Producer(
                f"producer-{number}",
                transactional_id,
                chance.choice([VERSION_1, VERSION_2]),
                connection,
                self._history,
                random.Random(chance.getrandbits(64)),
                OUTPUTS,
                SOURCE,
                self._simulation.clock.now_ms,
                chance.choice([5_000, LONGEST_TRANSACTION_MS]),
            )
            self._clients.append(producer)
        for number, is_committed_only in enumerate((True, True, False)):
            reader = Reader(
                f"reader-{number}",
                self._network.connect(),
                self._history,
                random.Random(chance.getrandbits(64)),
                OUTPUTS,
                is_committed_only=is_committed_only,
            )
            self._clients.append(reader)

    def _late(self, number: int) -> None:
        client = self._clients[number]
        assert isinstance(client, Producer)
        client.has_late_requests = True

    # Faults

    async def _cause_faults(self) -> None:
        loop, chance = self._simulation.loop, self._chance
        end = loop.time() + FAULTY_S
        while loop.time() < end:
            await asyncio.sleep(chance.random() * 6)  # a poll's pause
            fault = chance.choice([self._kill, self._restart, self._interrupt, self._jump, self._fill_disk])
            await fault()

    async def _kill(self) -> None:
        """In the middle of a request, or shortly after."""
        kind = self._chance.choice([EndTxnRequest, EndTxnRequest, ProduceRequest, TxnOffsetCommitRequest])
        await asyncio.wait([asyncio.ensure_future(self._broker.next_request(kind.api_key))], timeout=5)
        await asyncio.sleep(self._chance.random() ** 2 * 2 * SLOWEST_FLUSH_S)  # a poll's pause
        self._broker.die(loses_power=self._is_flushed and self._chance.random() < 0.7)
        await self._start_again()

    async def _restart(self) -> None:
        await self._broker.stop()
        await self._start_again()

    async def _interrupt(self) -> None:
        """The broker dies in a disk operation, which is not carried out."""
        disk = self._simulation.disk
        disk.interruption, disk.operations_left = Died(), self._chance.randint(0, 60)
        for _ in range(50):
            await asyncio.sleep(0.02)  # a poll's pause
            if self._broker.is_dying:
                break
        await self._kill()

    async def _jump(self) -> None:
        """The wall clock is set, by people or NTP."""
        jump_ms = self._chance.choice([-2 * HOUR_MS, -5_000, 5_000, 2 * HOUR_MS])
        self._simulation.clock.wall_offset_ms += jump_ms

    async def _fill_disk(self) -> None:
        disk = self._simulation.disk
        disk.capacity_bytes = disk.used_bytes() + self._chance.randint(0, 2000)
        await asyncio.sleep(self._chance.random() * 3)  # a poll's pause
        disk.capacity_bytes = None

    async def _start_again(self) -> None:
        await asyncio.sleep(self._chance.random())  # a poll's pause
        await self._broker.start()

    # The end

    async def _look(self) -> None:
        connection = self._network.connect()
        await self._network.wait_for_late_requests()
        deadline = self._simulation.loop.time() + QUIET_S
        while self._simulation.loop.time() < deadline:
            states = await _patiently(lambda: requests.list_transactions(connection))
            open_states = {name: state for name, state in states.items() if not _is_complete(state)}
            if not open_states:
                break
            await asyncio.sleep(1)  # a poll's pause
        self._history.incomplete = open_states
        for partition in OUTPUTS:
            data = await _patiently(lambda each=partition: _last(connection, each))  # type: ignore[misc]
            if data[0] != data[1]:
                self._history.unstable[partition] = data
            await read_all(connection, self._history, partition)
        for transactional_id in ("t0", "t1", "t2"):
            group = f"group-{transactional_id}"
            offset = await _patiently(lambda each=group: _offset(connection, each))  # type: ignore[misc]
            self._history.final_offsets[group, SOURCE] = offset


def _is_complete(state: str) -> bool:
    return state in ("Empty", "CompleteCommit", "CompleteAbort")


async def _last(connection: Connection, partition: TopicPartition) -> tuple[int, int]:
    data = await requests.fetch(connection, partition, 0, 1, is_committed_only=True)
    if data.error_code:
        raise Lost
    return data.last_stable_offset, data.high_watermark


async def _offset(connection: Connection, group: str) -> int:
    error, offset = await requests.fetch_offset(connection, group, SOURCE)
    if error is not ErrorCode.NONE:
        raise Lost
    return offset


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    for _ in range(200):
        try:
            return await ask()
        except Lost:
            await asyncio.sleep(0.5)  # a poll's pause
    raise Lost


def tell(seed: int) -> Result:
    return Story(seed).run()
