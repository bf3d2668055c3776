"""One seed: transactions of several clients on a simulated broker, with faults; then quiet, and a last look.

`python -m tests.transactions.story SEED …` prints the digest of each history, and the anomalies in it.
"""

import asyncio
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar, TypeVarTuple

from odradek.host.workers import DirectoryWorkers
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.topic_partition import TopicPartition
from tests.simulation.simulated_host import InlineWorkers, Simulation
from tests.transactions.checks import anomalies
from tests.transactions.faulty_network import FaultyNetwork
from tests.transactions.history import History
from tests.transactions.producers import Producer
from tests.transactions.readers import Reader
from tests.transactions.simulated_broker import Died, SimulatedBroker
from tests.transactions.workload import look, make_clients, prepare

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

OUTPUTS: list[TopicPartition] = [("a", 0), ("a", 1), ("b", 0)]
SOURCE: TopicPartition = ("input", 0)
FAULTY_S = 30.0
SLOWEST_FLUSHES_S = (0.05, 0.5)  # of fast and of slow disks
SLOWEST_MESSAGE_S = 0.5  # between the coordinator and the leader of a partition
LONGEST_TRANSACTION_MS = 20_000
QUIET_S = 90.0  # the last transactions reach their timeout, and retries their longest delay
HOUR_MS = 3_600_000


class Result(NamedTuple):
    anomalies: list[str]
    history: History
    requests: int
    lives: int
    digest: str
    """Of the history, and of every byte that the broker received and answered."""


class SlowFlushes(InlineWorkers):
    """An fsync takes time, in which others come and the broker may die."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.slowest_s = chance.choice(SLOWEST_FLUSHES_S)

    def for_directory(self, path: str) -> DirectoryWorkers:
        return DirectoryWorkers(_SlowWorkers(self._chance, self.slowest_s), self)


class _SlowWorkers(InlineWorkers):
    def __init__(self, chance: random.Random, slowest_s: float) -> None:
        super().__init__(chance)
        self._slowest_s = slowest_s

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        await asyncio.sleep(self._chance.random() ** 3 * self._slowest_s)  # a poll's pause
        return await super().run(function, *args)


class Story:
    def __init__(self, seed: int) -> None:
        self._simulation = Simulation(seed)
        workers = SlowFlushes(random.Random(self._simulation.chance.getrandbits(64)))
        self._slowest_flush_s = workers.slowest_s
        self._simulation.host = replace(self._simulation.host, workers=workers)
        self._chance = self._simulation.chance
        self._is_flushed = self._chance.random() < 0.5  # then the broker waits for fsync, and may lose power
        self._history = History()
        self._broker = SimulatedBroker(self._simulation, self._properties(), self._message_delay_s)
        self._network = FaultyNetwork(self._broker, self._chance)
        self._clients: list[Producer | Reader] = []

    def _message_delay_s(self) -> float:
        return self._chance.random() ** 3 * SLOWEST_MESSAGE_S

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
            return self._result()
        finally:
            while tasks := loop.unfinished_tasks():
                for task in tasks:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(tasks))
            self._simulation.close()

    def _result(self) -> Result:
        history, journal = self._history, self._broker.journal
        journal.update(repr(history).encode())
        return Result(anomalies(history), history, self._network.requests, self._broker.life, journal.hexdigest())

    async def _live(self) -> None:
        await self._broker.start()
        self._network.is_faulty = False
        await prepare(self._network.connect())
        self._network.is_faulty = True
        self._clients = make_clients(
            self._network, self._history, self._chance, self._simulation.clock.now_ms, [5_000, LONGEST_TRANSACTION_MS]
        )
        running = [asyncio.ensure_future(client.run()) for client in self._clients]
        await self._cause_faults()
        self._network.is_faulty = False
        await asyncio.sleep(self._chance.random() * 5)  # a poll's pause
        for client in self._clients:
            client.is_stopping = True
        await asyncio.wait(running)
        for task in running:
            task.result()
        await self._network.wait_for_late_requests()
        await look(self._network.connect(), self._history, QUIET_S)

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
        api_key = self._chance.choice(
            [EndTxnRequest.api_key, EndTxnRequest.api_key, ProduceRequest.api_key, TxnOffsetCommitRequest.api_key]
        )
        await asyncio.wait([asyncio.ensure_future(self._broker.next_request(api_key))], timeout=5)
        await asyncio.sleep(self._chance.random() ** 2 * 2 * self._slowest_flush_s)  # a poll's pause
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
        self._history.clock_jumps += 1

    async def _fill_disk(self) -> None:
        disk = self._simulation.disk
        disk.capacity_bytes = disk.used_bytes() + self._chance.randint(0, 2000)
        await asyncio.sleep(self._chance.random() * 3)  # a poll's pause
        disk.capacity_bytes = None

    async def _start_again(self) -> None:
        await asyncio.sleep(self._chance.random())  # a poll's pause
        await self._broker.start()


def tell(seed: int) -> Result:
    return Story(seed).run()


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        result = tell(number)
        print(number, result.digest, *result.anomalies, sep="\n")
