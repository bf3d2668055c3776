"""The state of a cluster: what needs attention, and how it is shown."""

from __future__ import annotations

import click

from odradek.admin.broker_requests import DescribedCluster, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState
from odradek.cli.cluster import status_lines, status_object


def partition(
    index: int, leader: int, in_sync: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3), **rest: tuple[int, ...]
) -> PartitionState:
    return PartitionState("t", index, leader, replicas, in_sync, 2, **rest)


def state(*partitions: PartitionState, fenced: tuple[int, ...] = ()) -> ClusterState:
    brokers = {number: KnownBroker(number, "h", 9091 + number, None, number in fenced) for number in (1, 2, 3)}
    return ClusterState(DescribedCluster("id", 2, brokers), partitions)


def text(found: ClusterState, limit: int | None = None) -> str:
    return click.unstyle("\n".join(status_lines(found, limit)))


def test_each_problem_is_recognised() -> None:
    assert partition(0, 1, (1, 2, 3)).problems == []
    assert partition(0, 2, (1, 2, 3)).problems == ["not on the preferred leader"]
    assert partition(0, 1, (1, 2)).problems == ["under-replicated"]
    assert partition(0, 1, (1,)).problems == ["under min ISR", "under-replicated"]
    assert partition(0, -1, ()).problems == ["offline", "under min ISR", "under-replicated"]


def test_a_single_replica_is_not_under_a_minimum_of_two() -> None:
    assert partition(0, 1, (1,), (1,)).problems == []


def test_replicas_that_are_being_added_do_not_count_as_missing() -> None:
    moving = partition(0, 1, (1, 2), (1, 2, 3), adding=(3,), removing=(1,))
    assert moving.problems == []
    assert moving.target == (2, 3)


def test_a_fenced_broker_is_not_healthy() -> None:
    assert state(partition(0, 1, (1, 2, 3))).is_healthy
    assert not state(partition(0, 1, (1, 2, 3)), fenced=(3,)).is_healthy
    assert not state(partition(0, 1, (1, 2))).is_healthy
    assert state(partition(0, 2, (1, 2, 3))).is_healthy


def test_the_worst_partitions_are_shown_first() -> None:
    found = state(partition(0, 1, (1, 2)), partition(1, -1, ()), partition(2, 1, (1,)), fenced=(3,))
    shown = text(found)
    assert shown.startswith(
        "id  2 of 3 brokers running · 1 topic · 3 partitions\n1 partition offline, 2 partitions under"
    )
    assert shown.index("t-1") < shown.index("t-2") < shown.index("t-0")
    assert "and 1 more; --all shows them" in text(found, 2)


def test_the_object_has_counts_of_each_broker() -> None:
    found = status_object(state(partition(0, 1, (1, 2)), partition(1, 2, (1, 2, 3))))
    assert [(each["leads"], each["replicas"], each["in_sync"]) for each in found["brokers"]] == [
        (1, 2, 2),
        (1, 2, 2),
        (0, 2, 1),
    ]
    assert [each["partition"] for each in found["under_replicated"]] == [0]
    assert [each["partition"] for each in found["not_on_preferred_leader"]] == [1]


def test_replicas_on_a_broker_that_is_not_registered_are_shown() -> None:
    assert "not registered" in text(state(partition(0, 1, (1,), (1, 9))))
