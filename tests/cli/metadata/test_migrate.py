"""`odradek metadata migrate`: a single broker becomes the first broker of a cluster and keeps everything."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.testing import RunningBroker, zookeeper
from tests.commands import run_odradek

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Ran

WAIT_S = 120
RECORDS = 20


@pytest.mark.timeout(300)
def test_a_single_broker_becomes_a_cluster(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    data = tmp_path / "data"
    with ExitStack() as stack:
        first = RunningBroker({"node.id": 5}, data_directory=str(data))
        stack.callback(first.close)
        first.start()
        prepare(first)
        topic_id = describe(first)["topic_id"]
        arguments = ("--override", f"log.dirs={data}", "--override", "node.id=5")
        running = migrate("127.0.0.1:1", *arguments)
        assert (running.code, "is used by a running broker: stop it first" in running.errors) == (1, True)
        first.stop()
        connect = f"{stack.enter_context(zookeeper()).connect}/migrated"
        wrong = migrate(connect, "--override", f"log.dirs={data}", "--override", "node.id=6")
        assert (wrong.code, "set node.id to 5" in wrong.errors) == (1, True)
        done = migrate(connect, *arguments)
        assert done.code == 0, done.errors
        counts = "2 topics with 52 partitions, 4 settings, 0 quotas, 0 users, 0 delegation tokens, 0 access rules"
        assert counts in done.output
        assert "default min.insync.replicas=1 of the broker is left out" in done.output
        assert f"--override zookeeper.connect={connect}" in done.output
        again = migrate(connect, *arguments)
        assert (again.code, "was migrated before" in again.errors) == (1, True)

        alone = run_odradek("broker", *arguments, "--override", "listeners=PLAINTEXT://127.0.0.1:0")
        assert (alone.code, "zookeeper.connect is not set" in alone.errors) == (1, True)

        first.properties["zookeeper.connect"] = connect
        first.start()
        described = describe(first)
        assert described["topic_id"] == topic_id
        assert described["configs"]["retention.ms"]["value"] == "123456789"
        assert read(first, "moved") == RECORDS
        assert committed(first) == 7
        second = RunningBroker({"node.id": 6, "zookeeper.connect": connect}, data_directory=str(tmp_path / "second"))
        stack.callback(second.close)
        second.start()
        moved = run(first, "partition", "reassign", "moved", "--replication-factor", "2", "--yes", "--wait")
        assert moved.code == 0, moved.errors
        internal = run(first, "partition", "reassign", "__consumer_offsets", "--to", "6", "--yes", "--wait")
        assert internal.code == 0, internal.errors
        first.stop()
        assert committed(second) == 7
        assert read(second, "moved") == RECORDS


def migrate(connect: str, *arguments: str) -> Ran:
    return run_odradek("metadata", "migrate", "--to", connect, "--yes", *arguments, timeout_s=WAIT_S)


def run(broker: RunningBroker, *arguments: str) -> Ran:
    return run_odradek(*arguments, ODRADEK_BOOTSTRAP_SERVER=broker.bootstrap_servers, timeout_s=WAIT_S)


def describe(broker: RunningBroker) -> dict[str, Any]:
    return run(broker, "topic", "describe", "moved", "--all-configs", "--format", "json").row


def prepare(broker: RunningBroker) -> None:
    """A topic with a setting, records in two partitions, and a committed offset."""
    created = run(broker, "topic", "create", "moved", "--partitions", "2", "--config", "retention.ms=123456789")
    assert created.code == 0, created.errors
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce("moved", str(number), partition=number % 2)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("moved", 1, 7)], asynchronous=False)
    consumer.close()


def committed(broker: RunningBroker) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    (found,) = consumer.committed([TopicPartition("moved", 1)], timeout=WAIT_S)
    consumer.close()
    return found.offset


def read(broker: RunningBroker, topic: str) -> int:
    ran = run(broker, "consume", topic, "--from-beginning", "--until-end", "--format", "json")
    return len(ran.rows)


@pytest.mark.more
@pytest.mark.timeout(300)
def test_a_copy_leads_back_to_a_single_broker(tmp_path: Path) -> None:
    """As docs/clusters.md says: there is no other way back."""
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or newer, on the PATH")
    data, copy = tmp_path / "data", tmp_path / "copy"
    with ExitStack() as stack:
        first = RunningBroker({"node.id": 5}, data_directory=str(data))
        stack.callback(first.close)
        first.start()
        prepare(first)
        first.stop()
        shutil.copytree(data, copy)
        connect = f"{stack.enter_context(zookeeper()).connect}/migrated"
        done = migrate(connect, "--override", f"log.dirs={data}", "--override", "node.id=5")
        assert done.code == 0, done.errors
        copied = RunningBroker({"node.id": 5}, data_directory=str(copy))
        stack.callback(copied.close)
        copied.start()
        assert read(copied, "moved") == RECORDS
        assert committed(copied) == 7
