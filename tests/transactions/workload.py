"""The clients of one run, the topics that they use, and the last look at what they left."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, TypeVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.transactions import requests
from tests.transactions.producers import Producer
from tests.transactions.readers import Reader, read_all
from tests.transactions.requests import VERSION_1, VERSION_2, Lost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from odradek.protocol.topic_partition import TopicPartition
    from tests.transactions.faulty_network import FaultyNetwork
    from tests.transactions.history import History
    from tests.transactions.requests import Connection

T = TypeVar("T")

OUTPUTS: list[TopicPartition] = [("a", 0), ("a", 1), ("b", 0)]
SOURCE: TopicPartition = ("input", 0)
TRANSACTIONAL_IDS = ("t0", "t1", "t2")
COMPLETE_STATES = ("Empty", "CompleteCommit", "CompleteAbort")


async def prepare(connection: Connection) -> None:
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


def make_clients(
    network: FaultyNetwork,
    history: History,
    chance: random.Random,
    now_ms: Callable[[], int],
    timeouts_ms: Sequence[int],
    pause_ms: float = 400.0,
) -> list[Producer | Reader]:
    """Producers of both versions of transactions, of which two have the same transactional id, and readers."""
    producers: list[Producer] = []
    for number, transactional_id in enumerate((*TRANSACTIONAL_IDS, chance.choice(TRANSACTIONAL_IDS))):
        producer = Producer(
            f"producer-{number}",
            transactional_id,
            chance.choice([VERSION_1, VERSION_2]),
            network.connect(lambda number=number: producers[number].expect_late_request()),  # type: ignore[misc]
            history,
            random.Random(chance.getrandbits(64)),
            OUTPUTS,
            SOURCE,
            now_ms,
            chance.choice(timeouts_ms),
            pause_ms,
        )
        producers.append(producer)
    readers = [
        Reader(
            f"reader-{number}",
            network.connect(),
            history,
            random.Random(chance.getrandbits(64)),
            OUTPUTS,
            is_committed_only=is_committed_only,
        )
        for number, is_committed_only in enumerate((True, True, False))
    ]
    return [*producers, *readers]


async def look(connection: Connection, history: History, patience_s: float) -> None:
    """When all clients have ended: every transaction must end within this time."""
    try:
        await _look(connection, history, patience_s)
    except Lost:
        history.report("no answer: the broker does not serve its clients at the end")


async def _look(connection: Connection, history: History, patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    while loop.time() < deadline:
        states = await _patiently(lambda: requests.list_transactions(connection))
        history.incomplete = {name: state for name, state in states.items() if state not in COMPLETE_STATES}
        if not history.incomplete:
            break
        await asyncio.sleep(1)  # a poll's pause
    for partition in OUTPUTS:
        ends = await _patiently(lambda each=partition: _ends(connection, each))  # type: ignore[misc]
        if ends[0] != ends[1]:
            history.unstable[partition] = ends
        await read_all(connection, history, partition)
    for transactional_id in TRANSACTIONAL_IDS:
        group = f"group-{transactional_id}"
        offset = await _patiently(lambda each=group: _offset(connection, each))  # type: ignore[misc]
        history.final_offsets[group, SOURCE] = offset


async def _ends(connection: Connection, partition: TopicPartition) -> tuple[int, int]:
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
