"""Concurrent transactions on a broker process that is killed again and again, with late and repeated requests."""

import asyncio
import os
import random
import time
from collections.abc import Callable

import pytest

from odradek.testing import broker
from tests.transactions.broker_process import BrokerProcess
from tests.transactions.checks import anomalies
from tests.transactions.faulty_network import FaultyNetwork
from tests.transactions.history import Ending, History
from tests.transactions.workload import look, make_clients, prepare

ROUNDS = int(os.environ.get("TRANSACTION_KILLS", "15"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
LONGEST_LIFE_S = 2.0
TRANSACTION_TIMEOUT_MS = 3_000
QUIET_S = 30.0
QUIET_COMMITS = 12
RECOVERY_S = 120.0

PROPERTIES = {
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "log.roll.ms": 300,
    "log.flush.offset.checkpoint.interval.ms": 200,
}


async def run(process: BrokerProcess, chance: random.Random) -> History:
    history = History()
    network = FaultyNetwork(process, chance, client_timeout_s=0.5, latest_s=3.0)
    network.is_faulty = False
    await prepare(network.connect())
    network.is_faulty = True
    clients = make_clients(
        network, history, chance, lambda: time.time_ns() // 1_000_000, [TRANSACTION_TIMEOUT_MS], pause_ms=20.0
    )
    running = [asyncio.ensure_future(client.run()) for client in clients]
    for _ in range(ROUNDS):
        await asyncio.sleep(chance.random() * LONGEST_LIFE_S)  # a poll's pause: the random instant
        await process.kill()
        await process.start()
    network.is_faulty = False
    await commit_some(history)
    for client in clients:
        client.is_stopping = True
    await asyncio.gather(*running)
    await network.wait_for_late_requests()
    await look(network.connect(), history, QUIET_S)
    await process.close()
    return history


def committed(history: History) -> int:
    return sum(each.ending is Ending.COMMITTED for each in history.transactions)


async def commit_some(history: History) -> None:
    """Without faults the clients commit transactions again."""
    commits = asyncio.Semaphore(0)
    history.on_commit = commits.release
    async with asyncio.timeout(RECOVERY_S):
        for _ in range(QUIET_COMMITS):
            await commits.acquire()


@pytest.mark.soak
@pytest.mark.timeout(120 + 20 * ROUNDS)
async def test_transactions_are_whole_when_the_broker_is_killed(
    record_property: Callable[[str, object], None],
) -> None:
    chance = random.Random(SEED)
    with broker(PROPERTIES) as running:
        history = await run(BrokerProcess(running), chance)
    record_property("transactions", len(history.transactions))
    print(f"{ROUNDS} kills, {len(history.transactions)} transactions, {committed(history)} committed")
    assert not anomalies(history)
    assert committed(history) >= QUIET_COMMITS
