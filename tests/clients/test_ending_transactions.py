"""Requests that arrive while the markers of a transaction are being written: its end has been answered, so a client
that goes on at once must not be taken for a fenced one.

Odradek is asked on a simulated host, where the markers wait until the last question is answered. The transaction on
Apache Kafka has so many partitions that its markers take long; an answer counts if they are not written after it.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.clients.conftest import APACHE_KAFKA, BROKERS
from tests.clients.error_names import error_name
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import list_offset
from tests.clients.wire.transactions import (
    GROUP,
    NOBODY,
    Identity,
    add_offsets,
    add_partitions,
    await_coordinator,
    await_state,
    commit_offset,
    describe,
    end,
    init_producer,
    send,
)
from tests.simulation.simulated_host import Simulation
from tests.transactions.simulated_broker import SimulatedBroker
from tests.waiting import eventually
from tests.wire import WireClient, connect, decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.protocol.schema import Request

TOPICS, PARTITIONS_PER_TOPIC = 4, 500  # on Apache Kafka
CONCURRENT, FENCED = "CONCURRENT_TRANSACTIONS", "PRODUCER_FENCED"
# By whose request it is: that of an epoch before or after the transaction's present one, or of another producer id.
EVERYBODY_WAITS = dict.fromkeys(("older", "current", "newer", "stranger"), CONCURRENT)
PRODUCER_WAITS = {"older": FENCED, "current": CONCURRENT, "newer": FENCED, "stranger": "INVALID_PRODUCER_ID_MAPPING"}


class Transaction(NamedTuple):
    wire: WireClient
    name: str
    topic: str  # which does not take part

    def init(self, producer: Identity) -> str:
        return init_producer(self.wire, self.name, identity=producer).error

    def add(self, producer: Identity) -> str:
        return add_partitions(self.wire, self.name, producer, self.topic, [0])[0]

    def add_for_broker(self, producer: Identity, *, verify_only: bool = False) -> str:
        """Versions 4 and later carry transactions of several producers."""
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=[0])],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = self.wire.call(request, AddPartitionsToTxnResponse, 5).results_by_transaction[0]
        return error_name(answer.topic_results[0].results_by_partition[0].partition_error_code)

    def add_offsets(self, producer: Identity) -> str:
        return add_offsets(self.wire, self.name, producer, self.name)

    def commit_offset(self, producer: Identity, version: int) -> str:
        return commit_offset(self.wire, self.name, producer, self.name, self.topic, 1, version)

    def send(self, producer: Identity, version: int) -> str:
        return send(self.wire, self.name, producer, self.topic, 0, version=version)[0]

    def end(self, producer: Identity, version: int, *, commits: bool) -> str:
        return end(self.wire, self.name, producer, commits=commits, version=version).error


QUESTIONS: list[tuple[str, Callable[[Transaction, Identity], str], dict[str, str]]] = [
    ("InitProducerId", Transaction.init, {"nobody": CONCURRENT, **EVERYBODY_WAITS}),
    ("AddPartitionsToTxn 3", Transaction.add, EVERYBODY_WAITS),
    ("AddPartitionsToTxn 5", Transaction.add_for_broker, EVERYBODY_WAITS),
    ("AddPartitionsToTxn 5, verify", lambda it, who: it.add_for_broker(who, verify_only=True), PRODUCER_WAITS),
    ("AddOffsetsToTxn", Transaction.add_offsets, EVERYBODY_WAITS),
    ("EndTxn 5, commit", lambda it, who: it.end(who, 5, commits=True), EVERYBODY_WAITS),
    ("EndTxn 5, abort", lambda it, who: it.end(who, 5, commits=False), EVERYBODY_WAITS),
    ("EndTxn 4, commit", lambda it, who: it.end(who, 4, commits=True), PRODUCER_WAITS),
    ("EndTxn 4, abort", lambda it, who: it.end(who, 4, commits=False), PRODUCER_WAITS),
    ("TxnOffsetCommit 5", lambda it, who: it.commit_offset(who, 5), {"current": CONCURRENT}),
    ("TxnOffsetCommit 4", lambda it, who: it.commit_offset(who, 4), {"current": CONCURRENT}),
    ("Produce 12", lambda it, who: it.send(who, 12), {"current": CONCURRENT}),
    ("Produce 11", lambda it, who: it.send(who, 11), {"current": "NOT_ENOUGH_REPLICAS"}),
]


class SimulatedConnection(WireClient):
    """To a broker whose markers wait until they are released."""

    def __init__(self, simulation: Simulation) -> None:
        self._loop = simulation.loop
        few = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
        self._broker = SimulatedBroker(simulation, {"log.dirs": "/data", **few})
        self._loop.run_until_complete(self._broker.start())
        assert self._broker.node is not None
        self._leaders = self._broker.node.compose_serving().dispatcher._services.transactions.leaders
        self._append = self._leaders.append_marker

    def hold(self) -> None:
        released = self._released = asyncio.Event()

        async def append(*args: Any) -> Any:
            await released.wait()
            return self._append(*args)

        self._leaders.append_marker = lambda *args, **_: asyncio.ensure_future(append(*args))  # type: ignore[method-assign]  # waits

    def release(self) -> None:
        self._released.set()

    def call(self, request: Request, response: Any, version: int | None = None) -> Any:
        assert version is not None
        data = self._loop.run_until_complete(self._broker.handle(encode_request(request, version)[4:]))
        assert data is not None
        return decode_response(response, data[4:], version)

    def close(self) -> None:
        self._loop.run_until_complete(self._broker.stop())


class Asked(NamedTuple):
    wire: WireClient
    topics: list[str]  # whose partitions take part
    partitions: list[int]
    other_topic: str


def make_topics(wire: WireClient, count: int, partitions: int) -> Asked:
    *names, other = [f"ending-{uuid.uuid4().hex[:8]}" for _ in range(count + 1)]
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    topics.append(CreatableTopic(name=other, num_partitions=1, replication_factor=1))
    answer = wire.call(CreateTopicsRequest(topics=topics, timeout_ms=60_000), CreateTopicsResponse, 5)
    assert {error_name(each.error_code) for each in answer.topics} == {"NONE"}
    return Asked(wire, names, list(range(partitions)), other)


@pytest.fixture(scope="module", params=BROKERS)
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    if request.param == APACHE_KAFKA:
        servers: str = request.getfixturevalue("apache_kafka").bootstrap_servers
        with connect(servers) as wire, Connection(servers) as connection:
            asked = make_topics(wire, TOPICS, PARTITIONS_PER_TOPIC)
            eventually(lambda: is_led(connection, asked.other_topic, [0]))
            eventually(lambda: all(is_led(connection, topic, asked.partitions) for topic in asked.topics))
            yield asked
        return
    simulation = Simulation(1)
    try:
        with SimulatedConnection(simulation) as wire:
            yield make_topics(wire, 1, 2)
    finally:
        simulation.close()


def is_led(connection: Connection, topic: str, partitions: Sequence[int]) -> bool:
    return all(list_offset(connection, topic, -1, partition=each)[0] == "NONE" for each in partitions)


def begin_and_end(asked: Asked, version: int, *, commits: bool) -> tuple[Transaction, dict[str, Identity]]:
    """A transaction whose markers are being written, and who may ask about it."""
    wire, name = asked.wire, f"t{uuid.uuid4().hex[:10]}"
    if isinstance(wire, SimulatedConnection):
        wire.hold()
    await_coordinator(wire, name)
    await_coordinator(wire, name, GROUP)
    init_producer(wire, name)
    producer = init_producer(wire, name)
    for topic in asked.topics:
        assert set(add_partitions(wire, name, producer, topic, asked.partitions)) == {"NONE"}
    assert end(wire, name, producer, commits=commits, version=version).error == "NONE"
    current = producer if version == 4 else producer._replace(epoch=producer.epoch + 1)
    return Transaction(wire, name, asked.other_topic), {
        "nobody": NOBODY,
        "older": current._replace(epoch=current.epoch - 1),
        "current": current,
        "newer": current._replace(epoch=current.epoch + 1),
        "stranger": current._replace(producer_id=987_654_321),
    }


@pytest.mark.timeout(900)
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("version", [4, 5])
def test_nobody_is_fenced_while_markers_are_written(asked: Asked, version: int, commits: bool) -> None:
    expected = {(question, who): error for question, _, errors in QUESTIONS for who, error in errors.items()}
    asks = {question: ask for question, ask, _ in QUESTIONS}
    answers: dict[tuple[str, str], str] = {}
    for _ in range(len(expected)):  # Apache Kafka may have written the markers before all questions are asked
        transaction, producers = begin_and_end(asked, version, commits=commits)
        unmarked = ("PrepareCommit" if commits else "PrepareAbort", producers["current"].epoch)
        for question, who in [each for each in expected if each not in answers]:
            answer = asks[question](transaction, producers[who])
            still = describe(asked.wire, transaction.name)
            if (still.state, still.epoch) != unmarked:
                break
            answers[question, who] = answer
        if isinstance(asked.wire, SimulatedConnection):
            asked.wire.release()
        await_state(asked.wire, transaction.name, "Empty", "Ongoing", "CompleteCommit", "CompleteAbort")
        if len(answers) == len(expected):
            break
    assert answers == expected
