"""Brokers that reach each other over mutual TLS, or TLS and SASL: they replicate, and survive the death of one."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.local.running_cluster import BROKER_LISTENER, RunningCluster
from tests.security.tls.certificates import write_certificates

pytestmark = pytest.mark.timeout(300)
PATIENCE_S = 90.0
PREFIX = f"listener.name.{BROKER_LISTENER.lower()}."
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = f'{PLAIN} required username="broker" password="s3cret" user_broker="s3cret";'
SASL = {
    f"{PREFIX}sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    f"{PREFIX}plain.sasl.jaas.config": LOGIN,
}


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM_SASL = {
    f"{PREFIX}sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    f"{PREFIX}scram-sha-512.sasl.jaas.config": f'{SCRAM} required username="broker" password="s3cret";',
}


@pytest.mark.parametrize(
    ("protocol", "more"),
    [
        ("SSL", {}),
        pytest.param("SASL_SSL", SASL, marks=pytest.mark.soak),
        pytest.param("SASL_PLAINTEXT", {**SASL, f"{PREFIX}connections.max.reauth.ms": "3000"}, marks=pytest.mark.soak),
    ],
)
def test_brokers_replicate_and_survive_a_kill(protocol: str, more: dict[str, str], tmp_path: Path) -> None:
    properties = {
        "listener.security.protocol.map": f"{BROKER_LISTENER}:{protocol},PLAINTEXT:PLAINTEXT",
        **write_certificates(tmp_path).listener_properties(),
        **more,
    }
    with RunningCluster(3, properties, has_network=False) as running:
        keys = write_through_a_kill(running)
        assert sorted(read_all(running, len(keys))) == keys


@pytest.mark.soak
def test_brokers_log_in_with_scram_over_tls(tmp_path: Path) -> None:
    """The user of the brokers is added to ZooKeeper before they run."""
    properties = {
        "listener.security.protocol.map": f"{BROKER_LISTENER}:SASL_SSL,PLAINTEXT:PLAINTEXT",
        **write_certificates(tmp_path).listener_properties(),
        **SCRAM_SASL,
    }
    running = RunningCluster(3, properties, has_network=False)
    with contextlib.closing(running):
        running.zookeeper.start()
        file = tmp_path / "server.properties"
        file.write_text(f"zookeeper.connect=127.0.0.1:{running.zookeeper.port}\n")
        command = [sys.executable, "-m", "odradek", "user", "add", "broker", "--config", str(file)]
        subprocess.run(command, input="s3cret\n", text=True, check=True, timeout=PATIENCE_S)
        running.zookeeper.stop()
        running.start()
        keys = write_through_a_kill(running)
        assert sorted(read_all(running, len(keys))) == keys


def write_through_a_kill(running: RunningCluster) -> list[bytes]:
    """Keys of records that were acknowledged by two brokers, some of them after a broker was killed."""
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
