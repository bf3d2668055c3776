"""Idempotent producers, byte by byte: what a broker says to a batch that it has, has had, or should not have yet.

The sends and their answers are data; Apache Kafka is asked the same.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import pytest

from odradek.testing import broker
from tests.clients.conftest import BROKERS, ODRADEK, wire_topic
from tests.clients.wire.batches import Batch
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import init_producer_id, metadata, new_topic_name, produce
from tests.clients.wire.waiting import await_topic
from tests.jvm.apache_kafka import ApacheKafka

LAST_SEQUENCE = 2**31 - 1
OUT_OF_ORDER = ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)


class Send(NamedTuple):
    what: str
    epoch: int
    sequence: int
    records: int
    answer: tuple[str, int]  # error and base offset
    producer: int = 0  # which of the test's producers


SENDS = [
    Send("the first batch", 0, 0, 3, ("NONE", 0)),
    Send("the next", 0, 3, 2, ("NONE", 3)),
    Send("the last again", 0, 3, 2, ("NONE", 3)),
    Send("the one before again", 0, 0, 3, ("NONE", 0)),
    Send("after a gap", 0, 10, 1, OUT_OF_ORDER),
    Send("the head of the last", 0, 3, 1, OUT_OF_ORDER),
    Send("the tail of the last", 0, 4, 1, OUT_OF_ORDER),
    *(Send(f"and {index}", 0, index, 1, ("NONE", index)) for index in range(5, 10)),
    Send("the oldest that is remembered", 0, 5, 1, ("NONE", 5)),
    Send("one that is forgotten", 0, 3, 2, OUT_OF_ORDER),
    Send("a new epoch that does not start at 0", 1, 5, 1, OUT_OF_ORDER),
    Send("a new epoch", 1, 0, 1, ("NONE", 10)),
    Send("the old epoch", 0, 10, 1, ("INVALID_PRODUCER_EPOCH", -1)),
    Send("the new epoch again", 1, 0, 1, ("NONE", 10)),
    Send("the new epoch goes on", 1, 1, 1, ("NONE", 11)),
    Send("a producer that is not known, from the middle", 0, 5, 1, ("NONE", 12), producer=1),
    Send("and goes on", 0, 6, 1, ("NONE", 13), producer=1),
    Send("up to the last number", 0, LAST_SEQUENCE - 1, 2, ("NONE", 14), producer=2),
    Send("and round to 0", 0, 0, 1, ("NONE", 16), producer=2),
    Send("before the turn again", 0, LAST_SEQUENCE - 1, 2, ("NONE", 14), producer=2),
    Send("round within a batch", 0, LAST_SEQUENCE - 1, 4, ("NONE", 17), producer=3),
    Send("after the turn within a batch", 0, 2, 1, ("NONE", 21), producer=3),
]


def send(connection: Connection, topic: str, producer_id: int, each: Send) -> tuple[str, int]:
    batch = Batch(
        values=[b"value"] * each.records,
        producer_id=producer_id,
        producer_epoch=each.epoch,
        base_sequence=each.sequence,
        timestamp_ms=time.time_ns() // 1_000_000,  # a producer whose records are a day old is forgotten
    )
    answer = produce(connection, topic, batch.encode())
    return answer.error, answer.base_offset


def new_producers(connection: Connection, count: int) -> list[int]:
    answers = [init_producer_id(connection) for _ in range(count)]
    assert {(error, epoch) for error, _id, epoch in answers} == {("NONE", 0)}
    return [producer_id for _error, producer_id, _epoch in answers]


def test_sequences_are_checked_and_duplicates_get_the_first_offset(connection: Connection, topic: str) -> None:
    producers = new_producers(connection, 4)
    answers = [(each.what, send(connection, topic, producers[each.producer], each)) for each in SENDS]
    assert answers == [(each.what, each.answer) for each in SENDS]


def test_every_producer_gets_an_id_of_its_own(connection: Connection) -> None:
    producers = new_producers(connection, 50)
    assert len(set(producers)) == 50
    assert min(producers) >= 0


def test_duplicate_in_a_topic_of_append_time_gets_the_first_time(connection: Connection) -> None:
    topic = wire_topic(connection, configs={"message.timestamp.type": "LogAppendTime"})
    (producer_id,) = new_producers(connection, 1)
    batch = Batch(producer_id=producer_id, producer_epoch=0, base_sequence=0).encode()
    first, again = produce(connection, topic, batch), produce(connection, topic, batch)
    assert first.log_append_time_ms > 0
    assert again == first


class Restartable(Protocol):
    """What the broker of a test can do when it is that test's own."""

    @property
    def bootstrap_servers(self) -> str: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


@pytest.fixture(params=BROKERS)
def own_broker(request: pytest.FixtureRequest) -> Iterator[Restartable]:
    """A broker for one test alone, which creates no topic unasked."""
    if request.param == ODRADEK:
        with broker({"auto.create.topics.enable": False}) as running:
            yield running
        return
    request.getfixturevalue("jvm")
    with ApacheKafka({"auto.create.topics.enable": "false"}) as kafka:
        yield kafka


AFTER_A_RESTART = [
    Send("the last again", 0, 3, 2, ("NONE", 3)),
    Send("the one before again", 0, 0, 3, ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)),
    Send("after a gap", 0, 10, 1, OUT_OF_ORDER),
    Send("the next", 0, 5, 1, ("NONE", 5)),
    Send("a new epoch", 1, 0, 1, ("NONE", 6)),
]
AFTER_A_CRASH = [
    Send("the last again", 1, 0, 1, ("NONE", 6)),
    Send("the old epoch", 0, 6, 1, ("INVALID_PRODUCER_EPOCH", -1)),
    Send("after a gap", 1, 5, 1, OUT_OF_ORDER),
    Send("the next", 1, 1, 1, ("NONE", 7)),
]


@pytest.mark.timeout(300)
def test_producers_are_remembered_and_no_topic_appears_unasked(own_broker: Restartable) -> None:
    """One test, because an Apache Kafka of its own is dear: what it knows survives a restart and a crash."""
    with Connection(own_broker.bootstrap_servers) as connection:
        unasked = new_topic_name()
        for _ in range(2):
            answer = metadata(connection, unasked, allow_auto_topic_creation=True)
            assert answer.error == "UNKNOWN_TOPIC_OR_PARTITION"
        assert produce(connection, unasked, Batch().encode()).error == "UNKNOWN_TOPIC_OR_PARTITION"
        topic = wire_topic(connection)
        (producer_id,) = new_producers(connection, 1)
        for each in SENDS[:2]:
            assert send(connection, topic, producer_id, each) == each.answer
    own_broker.stop()
    own_broker.start()
    assert_answers(own_broker, topic, producer_id, AFTER_A_RESTART)
    own_broker.kill()
    own_broker.start()
    assert_answers(own_broker, topic, producer_id, AFTER_A_CRASH)


def assert_answers(own_broker: Restartable, topic: str, producer_id: int, sends: list[Send]) -> None:
    with Connection(own_broker.bootstrap_servers) as connection:
        await_topic(connection, topic)
        answers = [(each.what, send(connection, topic, producer_id, each)) for each in sends]
        assert answers == [(each.what, each.answer) for each in sends]
        assert producer_id not in new_producers(connection, 3)
