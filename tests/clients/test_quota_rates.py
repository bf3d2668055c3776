"""The rates that clients reach under quotas on Odradek are those that they reach on Apache Kafka, within 10 %.

Measured with confluent-kafka (librdkafka) for bytes, and on the wire for topic changes, connections and the time of
requests. The time that a request takes differs between brokers, so the rates of requests cannot be compared: what a
client gains by twice the quota is. A client that was idle has a burst of ten seconds, and another one when the samples
of the first expire, so that four times eleven seconds are measured from the beginning.
"""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.testing import broker
from tests.wire import connect, decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.jvm.shared_kafka import KafkaAddress

BYTE_RATE = 1_000_000
MEASURED_S = 44.0
PERCENTAGE, WARMING_REQUESTS, REQUESTS_MEASURED_S = 1.0, 20_000, 12.0
OTHER_LOOPBACK = "127.0.0.9"  # so that the quota of an address does not affect other tests of this Apache Kafka

pytestmark = [pytest.mark.oracle, pytest.mark.jvm, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def both(apache_kafka: KafkaAddress) -> Iterator[dict[str, str]]:
    with broker() as running:
        yield {"Odradek": running.bootstrap_servers, "Apache Kafka": apache_kafka.bootstrap_servers}


@contextlib.contextmanager
def quota(address: str, kind: str, name: str, key: str, value: float) -> Iterator[None]:
    def alter(*, remove: bool) -> None:
        entity = [EntityData(entity_type=kind, entity_name=name)]
        entry = EntryData(entity=entity, ops=[OpData(key=key, value=value, remove=remove)])
        with connect(address) as client:
            answer = client.call(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse)
        assert answer.entries[0].error_code == ErrorCode.NONE, answer.entries[0]

    alter(remove=False)
    try:
        yield
    finally:
        alter(remove=True)


def create_topic(address: str, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with connect(address) as client:
        answer = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse, 7)
    assert answer.topics[0].error_code == ErrorCode.NONE


def rate_of(progress: Callable[[], float], measured_s: float = MEASURED_S) -> float:
    """What is done in a second. `progress` works for a while and returns how much it has done by then."""
    began = time.monotonic()
    done = 0.0
    while time.monotonic() - began < measured_s:
        done = progress()
    return done / (time.monotonic() - began)


def compare(kind: str, rates: dict[str, float]) -> None:
    print(f"{kind}: " + ", ".join(f"{name} {rate:,.2f}/s" for name, rate in rates.items()))
    assert rates["Odradek"] == pytest.approx(rates["Apache Kafka"], rel=0.1)


def producer_rate(address: str) -> float:
    client_id, topic = f"rate-{uuid.uuid4().hex[:8]}", f"rate-{uuid.uuid4().hex[:8]}"
    create_topic(address, topic)
    delivered = 0

    def count(error: object, message: confluent_kafka.Message) -> None:
        nonlocal delivered
        if error is None:  # those in flight at the end are purged
            delivered += len(message.value() or b"")

    with quota(address, "client-id", client_id, "producer_byte_rate", BYTE_RATE):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "client.id": client_id, "batch.size": 20_000, "linger.ms": 5,
             "queue.buffering.max.kbytes": 2_000, "message.timeout.ms": 120_000, "log_level": 0}
        )  # fmt: skip

        def progress() -> float:
            end = time.monotonic() + 0.2
            while time.monotonic() < end:
                try:
                    producer.produce(topic, bytes(5_000), on_delivery=count)
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
            return delivered

        rate = rate_of(progress)
        producer.purge()
        producer.flush(10)
    return rate


def consumer_rate(address: str) -> float:
    client_id, topic = f"rate-{uuid.uuid4().hex[:8]}", f"rate-{uuid.uuid4().hex[:8]}"
    create_topic(address, topic)
    writer = confluent_kafka.Producer({"bootstrap.servers": address, "batch.size": 20_000, "log_level": 0})
    for _ in range(24_000):  # 120 MB
        writer.produce(topic, bytes(5_000))
        writer.poll(0)
        if len(writer) > 5_000:
            writer.flush(60)
    assert writer.flush(120) == 0
    consumed = 0
    with quota(address, "client-id", client_id, "consumer_byte_rate", BYTE_RATE):
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": address, "client.id": client_id, "group.id": client_id, "log_level": 0,
             "fetch.message.max.bytes": 100_000, "queued.max.messages.kbytes": 2_000, "enable.auto.commit": False}
        )  # fmt: skip
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])

        def progress() -> float:
            nonlocal consumed
            for message in consumer.consume(50, 0.2):
                assert message.error() is None
                consumed += len(message.value() or b"")
            return consumed

        rate = rate_of(progress)
        consumer.close()
    return rate


def mutation_rate(address: str) -> float:
    client_id = f"rate-{uuid.uuid4().hex[:8]}"
    created = 0
    with quota(address, "client-id", client_id, "controller_mutation_rate", 2), connect(address) as client:
        client.socket.settimeout(60)

        def progress() -> float:
            nonlocal created
            topic = CreatableTopic(name=f"rate-{uuid.uuid4().hex}", num_partitions=2, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
            client.send(encode_request(request, 7, client_id=client_id))
            frame = client.read_frame()
            assert frame is not None
            answer = decode_response(CreateTopicsResponse, frame, 7)
            if answer.topics[0].error_code == ErrorCode.NONE:
                created += 2
            return created

        return rate_of(progress)


def connection_rate(address: str) -> float:
    host, _, port = address.split(",", maxsplit=1)[0].rpartition(":")
    served = 0
    with quota(address, "ip", OTHER_LOOPBACK, "connection_creation_rate", 10):

        def progress() -> float:
            nonlocal served
            with socket.create_connection((host, int(port)), 20, (OTHER_LOOPBACK, 0)) as visitor:
                try:
                    visitor.sendall(encode_request(ApiVersionsRequest(), 0))
                    served += bool(visitor.recv(4))
                except ConnectionError:
                    pass
            return served

        return rate_of(progress)


def request_rate(address: str, percentage: float) -> float:
    """Metadata requests of one connection in a second. Clients on the wire ignore throttle times, brokers do not."""
    client_id, answered = f"rate-{uuid.uuid4().hex[:8]}", 0
    with quota(address, "client-id", client_id, "request_percentage", percentage), connect(address) as client:
        client.socket.settimeout(60)
        frame = encode_request(MetadataRequest(topics=[]), 12, client_id=client_id)

        def progress() -> float:
            nonlocal answered
            client.send(frame)
            assert client.read_frame() is not None
            answered += 1
            return answered

        return rate_of(progress, REQUESTS_MEASURED_S)


def gain_by_request_percentage(address: str) -> float:
    """How many times as many requests are answered if the quota is twice as large."""
    with connect(address) as client:  # so that the code of the broker is compiled
        for _ in range(WARMING_REQUESTS):
            client.call(MetadataRequest(topics=[]), MetadataResponse, 12)
    once, twice = 0.0, 0.0
    for _ in range(2):  # in turns, because the time of a request changes while the code is being compiled
        once += request_rate(address, PERCENTAGE) / 2
        twice += request_rate(address, 2 * PERCENTAGE) / 2
    print(f"{address}: {once:.1f} and {twice:.1f} requests/s with {PERCENTAGE} % and {2 * PERCENTAGE} %")
    return twice / once


def test_a_producer_reaches_the_rate_that_it_reaches_on_kafka(both: dict[str, str]) -> None:
    compare("produced bytes", {name: producer_rate(address) for name, address in both.items()})


def test_a_consumer_reaches_the_rate_that_it_reaches_on_kafka(both: dict[str, str]) -> None:
    compare("fetched bytes", {name: consumer_rate(address) for name, address in both.items()})


def test_topics_change_at_the_rate_at_which_they_change_on_kafka(both: dict[str, str]) -> None:
    compare("topic changes", {name: mutation_rate(address) for name, address in both.items()})


def test_connections_come_at_the_rate_at_which_they_come_to_kafka(both: dict[str, str]) -> None:
    compare("connections", {name: connection_rate(address) for name, address in both.items()})


def test_twice_the_request_percentage_gains_what_it_gains_on_kafka(both: dict[str, str]) -> None:
    compare("gain of requests", {name: gain_by_request_percentage(address) for name, address in both.items()})
