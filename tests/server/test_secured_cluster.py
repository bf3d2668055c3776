"""Brokers that reach each other over mutual TLS: they form a cluster, replicate, and survive the death of one."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from odradek.cli.client.kafka_admin import AdminClient, NewTopic
from odradek.testing.running_cluster import BROKER_LISTENER, RunningCluster
from tests.security.tls.certificates import write_certificates

pytestmark = pytest.mark.timeout(300)
PATIENCE_S = 90.0


def test_brokers_replicate_over_mutual_tls_and_survive_a_kill(tmp_path: Path) -> None:
    properties = {
        "listener.security.protocol.map": f"{BROKER_LISTENER}:SSL,PLAINTEXT:PLAINTEXT",
        **write_certificates(tmp_path).listener_properties(),
    }
    with RunningCluster(3, properties, has_network=False) as running:
        keys = write_through_a_kill(running)
        assert sorted(read_all(running, len(keys))) == keys


def write_through_a_kill(running: RunningCluster) -> list[bytes]:
    """Keys of records that were acknowledged by two brokers, some of them after the leader was killed."""
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    admin.create_topics([NewTopic("secured", 3, 3)])["secured"].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "enable.idempotence": True})
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for index in range(400):
        producer.produce("secured", b"x" * 1000, f"{index:04}", on_delivery=delivered)
        if index == 200:
            assert producer.flush(PATIENCE_S) == 0
            running.kill(1)
    assert producer.flush(PATIENCE_S) == 0
    assert not failures
    return [f"{index:04}".encode() for index in range(400)]


def read_all(running: RunningCluster, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": running.bootstrap_servers, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["secured"])
    keys: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(keys) < count:
        assert time.monotonic() < deadline
        for message in consumer.consume(500, 1.0):
            assert message.error() is None
            key = message.key()
            assert isinstance(key, bytes)
            keys.append(key)
    consumer.close()
    return keys
