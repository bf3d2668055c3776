"""The clients of one run, the topics that they use, and the last look at what they left."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.transactions import requests
from tests.transactions.faulty_network import FaultyNetwork
from tests.transactions.history import History
from tests.transactions.producers import Producer
from tests.transactions.readers import Reader, read_all
from tests.transactions.requests import VERSION_1, VERSION_2, Connection, Lost

T = TypeVar("T")

OUTPUTS: list[TopicPartition] = [("a", 0), ("a", 1), ("b", 0)]
SOURCE: TopicPartition = ("input", 0)
TRANSACTIONAL_IDS = ("t0", "t1", "t2")
COMPLETE_STATES = ("Empty", "CompleteCommit", "CompleteAbort")
ANSWER_S = 100.0  # a request is answered without an error within this time
POLL_S = 0.5


async def prepare(connection: Connection, replication_factor: int = 1) -> None:
    small = {"segment.index.bytes": "64", "index.interval.bytes": "100"}  # segments are rolled often
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in small.items()]
    topics = [
        CreatableTopic(name=name, num_partitions=2, replication_factor=replication_factor, configs=configs)
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
            network.connect(lambda number=number: producers[number].expect_late_request()),  # type: ignore[misc]  # a default
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
    states = await _ask_until(
        lambda: requests.list_transactions(connection),
        patience_s,
        lambda states: all(state in COMPLETE_STATES for state in states.values()),
    )
    history.incomplete = {name: state for name, state in states.items() if state not in COMPLETE_STATES}
    for partition in OUTPUTS:
        # The list does not have a transaction whose coordinator is moving to another broker.
        ends = await _ask_until(partial(_ends, connection, partition), patience_s, lambda ends: ends[0] == ends[1])
        if ends[0] != ends[1]:
            history.unstable[partition] = ends
        await read_all(connection, history, partition)
    for transactional_id in TRANSACTIONAL_IDS:
        group = f"group-{transactional_id}"
        offset = await _ask_until(partial(_offset, connection, group), ANSWER_S)
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


async def _ask_until(
    ask: Callable[[], Awaitable[T]], patience_s: float, is_met: Callable[[T], bool] = lambda _: True
) -> T:
    """The first answer that meets the condition; when the time is over the last answer, or Lost if there was none."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    while True:
        answers: list[T] = []
        with suppress(Lost):
            answers.append(await ask())
            if is_met(answers[0]):
                return answers[0]
        if loop.time() >= deadline:
            if not answers:
                raise Lost
            return answers[0]
        await asyncio.sleep(POLL_S)  # a poll's pause
