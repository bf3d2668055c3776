"""Commands on a cluster of which a broker has been killed: they show what the others know, and say what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.admin.cluster import Cluster
from odradek.cli.records import produce
from odradek.cli.records.formats import InputRecord
from odradek.conventions.failures import Failure
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningCluster

pytestmark = pytest.mark.more

GROUPS = ("g-1", "g-2", "g-3", "g-4", "g-5", "g-6")


@pytest.fixture(scope="module")
def wounded(odradek_session_cluster: RunningCluster) -> Iterator[RunningCluster]:
    """Two of three brokers run."""
    running = odradek_session_cluster
    admin = Cluster(running.bootstrap_servers, {})
    admin.create_topic("t", 1, configs={"min.insync.replicas": "3"})
    client = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    created = client.create_topics([NewTopic("lost", 2, replica_assignment=[[3], [1]])])
    created["lost"].result()
    for name in GROUPS:
        consumer = admin.consumer({"group.id": name})
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        consumer.close()
    running.kill(3)
    yield running
    running.start(3)


@pytest.mark.parametrize("command", ["group list", "transaction list", "client list", "cluster info"])
def test_what_the_others_know_is_listed(wounded: RunningCluster, command: str) -> None:
    ran = run_odradek(*command.split(), "-b", wounded.bootstrap_servers, "--format", "json", timeout_s=30)
    assert ran.code == 0, ran.errors
    if command == "group list":  # the others take over its groups
        assert {row["group"] for row in ran.rows} >= set(GROUPS) or "broker 3 lists no groups" in ran.errors


def test_too_few_replicas_in_sync_are_named(
    wounded: RunningCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also while the writer waits for them."""
    monkeypatch.setattr(produce, "WARNS_AFTER_S", 0.1)
    monkeypatch.setattr(produce, "GIVES_UP_AFTER_S", 2.0)
    writer = produce.RecordWriter(Cluster(wounded.bootstrap_servers, {}), "t", {"acks": "all"})
    for _ in range(3):
        assert writer.write(InputRecord(value=b"v"))
    writer.finish()
    with pytest.raises(Failure) as raised:
        writer.raise_failures()
    obstacle = (
        "partition 0 has 2 in-sync replicas, and min.insync.replicas is 3 (NOT_ENOUGH_REPLICAS); start the brokers of "
        "its other replicas"
    )
    assert capsys.readouterr().err == f"waiting for up to 2 s: {obstacle}\n"
    assert raised.value.message == f"3 records not acknowledged: topic t: {obstacle}"


def test_a_partition_without_a_leader_is_shown(wounded: RunningCluster) -> None:
    shown = run_odradek("topic", "describe", "lost", "-b", wounded.bootstrap_servers)
    assert [line.split() for line in shown.output.splitlines()[4:6]] == [
        ["0", "none", "3", "-", "-", "-"],
        ["1", "1", "1", "1", "0", "0"],
    ]
    ran = run_odradek("consume", "lost", "-e", "-b", wounded.bootstrap_servers)
    assert "lost-0 has no leader" in ran.errors
    assert "not all records could be read: 1 partition or batch is missing" in ran.errors


def test_a_broker_that_does_not_exist_is_named(wounded: RunningCluster) -> None:
    with pytest.raises(ValueError, match="there is no broker 9; the brokers are 1, 2, 3"):
        wounded.kill(9)
    with pytest.raises(ValueError, match="there is no broker 9"):
        wounded.cut(9)


def test_waiting_for_more_brokers_than_there_are_fails(wounded: RunningCluster) -> None:
    ran = run_odradek("cluster", "status", "--wait", "0.1", "--brokers", "4", "-b", wounded.bootstrap_servers)
    assert ran.code == 1
    assert "the cluster has 3 of 4 brokers after 0.1 s" in ran.errors
