"""The simulator's producer on a real broker: the rate is kept, and a broker restart loses no record."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from odradek.examples.folders import find_example
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings, sending
from odradek.testing import RunningBroker
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

TOPIC = "rigs"
BLOB_BYTES = 1_000_000
RIGS = load_simulation(find_example("rigs").simulator, {})


def population(late: float = 0.01, malformed: float = 0.005, **rest: Any) -> Population:
    flaws = dataclasses.replace(RIGS.flaws, late_share=late, malformed_share=malformed)
    return Population(dataclasses.replace(RIGS, flaws=flaws, **rest))


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with RunningBroker({"num.partitions": 1}) as broker:
        yield broker


def rigs_on(broker: RunningBroker, fleet: Population, rate: float, started_s: float | None = None) -> RecordProducer:
    settings = {**producer_settings(rate), "bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    return RecordProducer(Producer(settings), TOPIC, fleet, rate, started_s=started_s)


def read_back(broker: RunningBroker, number: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "t", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[Message] = []
    deadline = time.monotonic() + 30
    while len(found) < number and time.monotonic() < deadline:
        found += consumer.consume(number - len(found), 0.5)
    consumer.close()
    return found


def test_the_rate_is_kept_and_all_arrive(running: RunningBroker) -> None:
    rigs = rigs_on(running, population(malformed=0.5, count=20), 500)
    rigs.run(threading.Event(), seconds=2)
    counts = rigs.counts
    assert 0 < counts.sent <= 1001  # a stalled machine may send fewer records, never more
    assert (counts.acknowledged, counts.failed, counts.waiting) == (counts.sent, 0, 0)
    assert counts.malformed > 0
    assert len(read_back(running, counts.sent)) == counts.sent
    assert not rigs.is_broker_unreachable


def test_the_same_seed_and_start_write_the_same_records(running: RunningBroker) -> None:
    expected_fleet = population(seed=11)
    rigs = rigs_on(running, population(seed=11), 400, started_s=1_420_070_400.0)
    rigs.run(threading.Event(), seconds=0.5)
    expected = [expected_fleet.next_record(1_420_070_400.0 + turn / 400) for turn in range(rigs.counts.sent)]
    found = read_back(running, rigs.counts.sent)
    assert found
    assert [(m.key(), m.value()) for m in found] == [(r.key, r.value) for r in expected if r is not None]


def test_a_broker_that_goes_away_and_returns_gets_every_record_once(running: RunningBroker) -> None:
    rigs = rigs_on(running, population(0, 0), 500)
    is_stopped = threading.Event()
    thread = threading.Thread(target=rigs.run, args=(is_stopped,), daemon=True)
    thread.start()
    try:
        eventually(lambda: rigs.counts.acknowledged > 50)
        running.stop()
        eventually(lambda: rigs.is_broker_unreachable)
        running.start()
        eventually(lambda: not rigs.is_broker_unreachable)
    finally:
        is_stopped.set()
        thread.join(30)
    counts = rigs.counts
    assert (counts.waiting, counts.failed) == (0, 0)
    events = [json.loads(message.value() or b"")["event_ID"] for message in read_back(running, counts.sent)]
    assert events == list(range(1, counts.sent + 1))


def test_a_full_queue_holds_the_fleet_back_and_a_stop_is_still_heard(running: RunningBroker) -> None:
    rate = 20_000.0
    settings = {**producer_settings(rate), "queue.buffering.max.messages": 100, "log_level": 0}
    rigs = RecordProducer(Producer({**settings, "bootstrap.servers": "127.0.0.1:1"}), TOPIC, population(), rate)
    is_stopped = threading.Event()
    thread = threading.Thread(target=rigs.run, args=(is_stopped,), daemon=True)
    thread.start()
    eventually(lambda: rigs.counts.sent == 100)
    eventually(lambda: rigs.is_broker_unreachable)
    assert rigs.counts.sent == 100
    is_stopped.set()
    thread.join(20)
    assert not thread.is_alive()
    assert rigs.counts.waiting == 100


def test_a_megabyte_of_noise_passes(running: RunningBroker) -> None:
    fleet = population(0, 1.0, seed=5)
    rigs = rigs_on(running, fleet, 600)
    rigs.run(threading.Event(), seconds=1.5)
    assert rigs.counts.flaws["blob"] > 0
    assert rigs.counts.acknowledged == rigs.counts.sent
    assert BLOB_BYTES in [len(message.value() or b"") for message in read_back(running, rigs.counts.sent)]


def test_a_fleet_that_cannot_send_says_why(running: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    rigs = rigs_on(running, population(), 100)
    fatal = KafkaException(KafkaError(KafkaError._FATAL, "fenced"))

    def refuse(*_record: object) -> None:
        raise fatal

    monkeypatch.setattr(rigs, "_send", refuse)
    is_stopped = threading.Event()
    with sending(rigs, is_stopped):
        assert is_stopped.wait(30)
    assert rigs.failure is fatal
