"""`odradek cluster info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.broker_requests import DescribedCluster, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState
from odradek.cli.cluster import cluster_facts, with_internal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Run


def test_brokers_and_partitions_are_counted(odradek: Run, topic: str, bootstrap_server: str) -> None:
    facts = odradek("cluster", "info", "--format", "json").row
    (broker,) = facts["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap_server
    assert broker["id"] == facts["controller"]
    assert facts["cluster_id"]
    assert facts["topics"] >= 1
    assert facts["partitions"] >= 2
    assert (facts["partitions_without_leader"], facts["under_replicated_partitions"]) == (0, 0)


def test_the_text_names_the_cluster_and_its_brokers(odradek: Run, topic: str, bootstrap_server: str) -> None:
    cluster_id = odradek("cluster", "info", "--format", "json").row["cluster_id"]
    ran = odradek("cluster", "info")
    assert ran.code == 0
    assert ran.output.startswith(f"{cluster_id}  1 broker · ")
    assert "all partitions have a leader" in ran.output
    assert bootstrap_server in ran.output


def test_partitions_without_leader_or_replicas_are_counted() -> None:
    brokers = {number: KnownBroker(number, "h", 9092, None, False) for number in (1, 2)}
    placed = [(1, (1, 2), (1, 2)), (2, (1, 2), (2,)), (-1, (2,), ())]
    partitions = [PartitionState("t", number, *each) for number, each in enumerate(placed)]
    facts = cluster_facts(ClusterState(DescribedCluster("c", None, brokers), partitions), None)
    counts = ("partitions", "partitions_without_leader", "under_replicated_partitions")
    assert [facts[name] for name in counts] == [3, 1, 2]
    assert [(each["id"], each["leads"], each["replicas"]) for each in facts["brokers"]] == [(1, 1, 2), (2, 1, 3)]


def test_internal_topics_and_partitions_are_counted_apart(
    odradek: Run, topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    assert odradek("produce", topic, "-v", "one").code == 0
    assert odradek("consume", topic, "--group", group, "--until-end").code == 0
    facts = odradek("cluster", "info", "--format", "json").row
    listed = [row["topic"] for row in odradek("topic", "list", "--internal", "--format", "json").rows]
    assert facts["internal_topics"] == sum(name.startswith("__") for name in listed) > 0
    assert 0 < facts["internal_partitions"] <= facts["partitions"] - 2
    assert f" partitions ({facts['internal_partitions']} internal) · " in odradek("cluster", "info").output


def test_the_text_names_internal_ones_only_if_there_are_some() -> None:
    assert (with_internal(51, "partition", 50), with_internal(1, "topic", 0)) == (
        "51 partitions (50 internal)",
        "1 topic",
    )
