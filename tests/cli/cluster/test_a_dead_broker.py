"""Commands on a cluster of which a broker has been killed: they show what the others know, and say what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from odradek.cli.client.cluster import Cluster
from odradek.cli.framework.failure import Failure
from odradek.cli.records import record_writer
from odradek.cli.records.record_input import InputRecord
from odradek.testing import cluster
from tests.cli.conftest import run_odradek

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningCluster

GROUPS = ("g-1", "g-2", "g-3", "g-4", "g-5", "g-6")


@pytest.fixture(scope="module")
def wounded() -> Iterator[RunningCluster]:
    """Two of three brokers run."""
    with cluster(3, {"min.insync.replicas": 3, "offsets.topic.num.partitions": 6}) as running:
        admin = Cluster(running.bootstrap_servers, {})
        admin.create_topic("t", 1)
        for name in GROUPS:
            consumer = admin.consumer({"group.id": name})
            consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
            consumer.close()
        running.kill(3)
        yield running


@pytest.mark.parametrize("command", ["group list", "transaction list", "client list", "cluster info"])
def test_what_the_others_know_is_listed(wounded: RunningCluster, command: str) -> None:
    ran = run_odradek(*command.split(), "-b", wounded.bootstrap_servers, "--format", "json", timeout_s=30)
    assert ran.code == 0, ran.errors
    if command == "group list":  # the others take over its groups
        assert {row["group"] for row in ran.rows} == set(GROUPS) or "broker 3 lists no groups" in ran.errors


def test_too_few_replicas_in_sync_are_named(wounded: RunningCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "GIVES_UP_AFTER_S", 1.0)
    writer = record_writer.RecordWriter(Cluster(wounded.bootstrap_servers, {}), "t", {"acks": "all"})
    for _ in range(3):
        assert writer.write(InputRecord(value=b"v"))
    writer.finish()
    with pytest.raises(Failure) as raised:
        writer.raise_failures()
    assert raised.value.message == (
        "3 records not acknowledged: topic t: partition 0 has 2 in-sync replicas, and min.insync.replicas is 3 "
        "(NOT_ENOUGH_REPLICAS); start the brokers of its other replicas"
    )
