"""What a transaction's coordinator has not committed confirms no write: a crash would leave the write without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, TypeVarTuple

import pytest

from odradek.host.workers import DirectoryWorkers
from odradek.protocol.errors import ErrorCode
from tests.simulation.simulated_host import InlineWorkers, Simulation
from tests.transactions import requests
from tests.transactions.faulty_network import FaultyNetwork
from tests.transactions.requests import NOBODY, VERSION_1, VERSION_2, Versions
from tests.transactions.simulated_broker import SimulatedBroker
from tests.transactions.workload import prepare

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

NAME, PARTITION, GROUP = "id", ("a", 0), "group"


class HeldFlushes(InlineWorkers):
    """No fsync is done until `released` is set."""

    released: asyncio.Event

    def for_directory(self, path: str) -> DirectoryWorkers:
        return DirectoryWorkers(self._Flushes(self), self)

    class _Flushes:
        def __init__(self, held: HeldFlushes) -> None:
            self._held = held

        async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
            await self._held.released.wait()
            return await self._held.run(function, *args)


async def write_while_the_coordinator_waits(simulation: Simulation, workers: HeldFlushes, versions: Versions) -> None:
    workers.released = asyncio.Event()
    workers.released.set()
    properties = {"log.dirs": "/data", "log.flush.interval.messages": "1"}
    properties |= {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    broker = SimulatedBroker(simulation, properties)
    await broker.start()
    network = FaultyNetwork(broker, simulation.chance)
    network.is_faulty = False
    connection = network.connect()
    await prepare(connection)
    error, identity = await requests.init_producer(connection, NAME, 60_000, NOBODY, versions.init)
    assert error is ErrorCode.NONE
    workers.released.clear()
    tasks: list[asyncio.Future[Any]] = []
    if not versions.joins_implicitly:
        tasks.append(asyncio.ensure_future(requests.add_partition(connection, NAME, identity, PARTITION)))
        tasks.append(asyncio.ensure_future(requests.add_offsets(connection, NAME, identity, GROUP)))
        await asyncio.sleep(0.1)  # a poll's pause: both are appended, and not committed
    write = requests.produce(connection, NAME, identity, PARTITION, 0, [b"value"], 0, versions.produce)
    commit = requests.commit_offset(connection, NAME, identity, GROUP, PARTITION, 5, versions.commit_offsets)
    tasks += [asyncio.ensure_future(write), asyncio.ensure_future(commit)]
    await asyncio.sleep(0.1)  # a poll's pause: all that could be appended is appended
    assert broker.end_offset(*PARTITION) == 0
    assert broker.end_offset("__consumer_offsets", 0) == 0
    workers.released.set()
    results = await asyncio.gather(*tasks)
    assert [each[0] if isinstance(each, tuple) else each for each in results] == [ErrorCode.NONE] * len(tasks)
    assert broker.end_offset(*PARTITION) == 1
    assert broker.end_offset("__consumer_offsets", 0) == 1
    await broker.stop()


@pytest.mark.parametrize("versions", [VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def test_a_batch_waits_for_the_commit_of_its_transaction(versions: Versions) -> None:
    simulation = Simulation(1)
    workers = HeldFlushes(simulation.chance)
    simulation.host = replace(simulation.host, workers=workers)
    try:
        simulation.loop.run_until_complete(write_while_the_coordinator_waits(simulation, workers, versions))
    finally:
        simulation.close()
