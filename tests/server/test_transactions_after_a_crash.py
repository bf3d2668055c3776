"""A broker that is killed in a transaction: after the restart it is open, and ends as its client wants."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from odradek.testing import RunningBroker, broker
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic
from tests.clients.wire.transactions import (
    GROUP,
    await_coordinator,
    await_state,
    commit_offset,
    describe,
    end,
    init_producer,
    send,
)
from tests.wire import WireClient, connect

NAME, TOPIC, GROUP_ID = "copier", "copies", "readers"


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker({"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}) as each:
        yield each


def begin(wire: WireClient, running: RunningBroker) -> None:
    with Connection(running.bootstrap_servers) as plain:
        assert create_topic(plain, TOPIC, 2) == "NONE"
    await_coordinator(wire, NAME)
    await_coordinator(wire, GROUP_ID, GROUP)


def committed_offset(running: RunningBroker) -> int:
    settings = {"bootstrap.servers": running.bootstrap_servers, "group.id": GROUP_ID}
    consumer = Consumer(settings)
    try:
        (found,) = consumer.committed([TopicPartition(TOPIC, 0)], 20)
        return int(found.offset)
    finally:
        consumer.close()


def readable(running: RunningBroker, isolation_level: str) -> int:
    """The end of what a consumer may read in partition 0."""
    settings = {
        "bootstrap.servers": running.bootstrap_servers,
        "group.id": uuid.uuid4().hex,
        "isolation.level": isolation_level,
    }
    consumer = Consumer(settings)
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), 20)[1])
    finally:
        consumer.close()


@pytest.mark.parametrize("commits", [False, True])
def test_a_transaction_survives_a_crash(running: RunningBroker, commits: bool) -> None:
    with connect(running.bootstrap_servers) as wire:
        begin(wire, running)
        producer = init_producer(wire, NAME)
        assert send(wire, NAME, producer, TOPIC, 0) == ("NONE", 0)
        assert send(wire, NAME, producer, TOPIC, 0, partition=1) == ("NONE", 0)
        assert commit_offset(wire, NAME, producer, GROUP_ID, TOPIC, 7) == "NONE"
    running.kill()
    running.start()
    assert readable(running, "read_committed") == 0
    assert readable(running, "read_uncommitted") == 1
    with connect(running.bootstrap_servers) as wire:
        await_coordinator(wire, NAME)
        assert await_state(wire, NAME, "Ongoing")[1:] == ("Ongoing", producer.epoch, 3, True)
        assert send(wire, NAME, producer, TOPIC, 1) == ("NONE", 1)
        ended = end(wire, NAME, producer, commits=commits)
        assert (ended.error, ended.epoch) == ("NONE", producer.epoch + 1)
        final = "CompleteCommit" if commits else "CompleteAbort"
        assert await_state(wire, NAME, final).state == final
    assert readable(running, "read_committed") == 3  # two records and the marker
    running.kill()
    running.start()
    assert readable(running, "read_committed") == 3
    assert committed_offset(running) == (7 if commits else -1001)
    with connect(running.bootstrap_servers) as wire:
        await_coordinator(wire, NAME)
        assert await_state(wire, NAME, final).epoch == producer.epoch + 1


def test_a_transaction_times_out_after_a_crash(running: RunningBroker) -> None:
    with connect(running.bootstrap_servers) as wire:
        begin(wire, running)
        producer = init_producer(wire, NAME, timeout_ms=1000)
        assert send(wire, NAME, producer, TOPIC, 0) == ("NONE", 0)
    running.kill()
    running.start()
    with connect(running.bootstrap_servers) as wire:
        await_coordinator(wire, NAME)
        assert await_state(wire, NAME, "CompleteAbort").state == "CompleteAbort"
        assert describe(wire, NAME).epoch == producer.epoch + 1
    assert readable(running, "read_committed") == 2
