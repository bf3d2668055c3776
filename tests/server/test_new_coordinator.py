"""librdkafka's consumer on a new broker, while the logs of the coordinator that another client has created are opened.

After NOT_COORDINATOR to its first OffsetFetch, librdkafka 2.16 reports an error and does not send the request again.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.coordinator.runtime import internal_topic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.replica import log_opening_jobs
from odradek.replica.log_opening import open_logs
from tests.server.broker_in_this_process import BrokerInThisProcess
from tests.wire import WireClient, encode_request

TOPIC, GROUP = "topic", "group"
TIMEOUT_S = 10.0
OPENING_S = 1.5  # in which the consumer looks for its coordinator, and asks it if it is found


class HeldOpening:
    """The logs of coordinators are opened when the test says so."""

    def __init__(self) -> None:
        self._open_logs = open_logs
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def open_logs(self, pending: Any, *arguments: Any) -> Any:
        if pending[0].topic.is_internal:
            self.has_begun.set()
            assert self.may_end.wait(TIMEOUT_S)
        return self._open_logs(pending, *arguments)


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldOpening]:
    held = HeldOpening()
    monkeypatch.setattr(log_opening_jobs, "open_logs", held.open_logs)
    yield held
    held.may_end.set()


@pytest.fixture
def broker(tmp_path: Path, opening: HeldOpening) -> Iterator[BrokerInThisProcess]:
    running = BrokerInThisProcess(tmp_path)
    yield running
    opening.may_end.set()
    running.close()


@pytest.mark.parametrize("search_limit_s", [internal_topic.CREATION_TIMEOUT_S, 0.2])
def test_a_consumer_that_finds_its_coordinator_while_the_logs_are_opened_gets_records(
    broker: BrokerInThisProcess, opening: HeldOpening, monkeypatch: pytest.MonkeyPatch, search_limit_s: float
) -> None:
    """A search waits for the logs. One that does not wait so long is followed by requests that are to be repeated."""
    monkeypatch.setattr(internal_topic, "CREATION_TIMEOUT_S", search_limit_s)
    settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(TIMEOUT_S)
    producer = Producer(settings)
    producer.produce(TOPIC, b"value")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**settings, "group.id": GROUP, "auto.offset.reset": "earliest"})
    with WireClient(broker.port) as other:
        other.send(encode_request(FindCoordinatorRequest(coordinator_keys=[GROUP]), 6))
        assert opening.has_begun.wait(TIMEOUT_S)
        consumer.assign([TopicPartition(TOPIC, 0)])
        early = consumer.poll(OPENING_S)
        opening.may_end.set()
        message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None, "the consumer waits for its offset"
    assert (message.error(), message.value()) == (None, b"value")
    assert early is None, "an error was reported"
