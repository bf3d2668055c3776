"""Groups of many topics are read with few requests, and partitions that do not answer do not hide the others."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from odradek.admin.cluster import Cluster
from odradek.admin.groups.reset_plan import choose_partitions, offsets_at_time, read_bounds
from odradek.admin.groups.state import PartitionLag, read_ends
from odradek.admin.groups.time_lag import count_untimed
from odradek.cli.group.text import as_object, print_group, total_lag
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

TOPICS = 1_000
MOST_CALLS = 5  # 2,000 partitions, or 1,000 topics, to a request


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class FakeAdmin:
    """Topics of two partitions. `errors` by partition; a partition with the error None has no leader."""

    def __init__(self, errors: Mapping[tuple[str, int], int | None] | None = None) -> None:
        self.calls = 0
        self.errors = errors or {}

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        self.calls += 1
        return {name: done(self._topic(name)) for name in topics.topic_names}

    def _topic(self, name: str) -> Any:
        if name.startswith("deleted"):
            return KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        leaders = {each: None if self.errors.get((name, each), 0) is None else 1 for each in (0, 1)}
        return SimpleNamespace(
            name=name, partitions=[SimpleNamespace(id=each, leader=leader) for each, leader in leaders.items()]
        )

    def list_offsets(self, specs: Any, **_options: Any) -> dict[Any, Future[Any]]:
        self.calls += 1
        errors = {each: self.errors.get((each.topic, each.partition), 0) for each in specs}
        assert None not in errors.values(), "a request for a partition without a leader waits for its timeout"
        return {
            each: done(KafkaException(KafkaError(error)) if error else SimpleNamespace(offset=100))
            for each, error in errors.items()
        }


def cluster_of(admin: FakeAdmin) -> Cluster:
    cluster = Cluster("localhost:1", {})
    cluster.admin = lambda: admin  # type: ignore[assignment, method-assign, return-value]  # a fake in its place
    return cluster


def test_ends_of_many_topics_are_read_with_few_requests() -> None:
    admin = FakeAdmin()
    ends, failures = read_ends(cluster_of(admin), [(f"t-{topic}", each) for topic in range(TOPICS) for each in (0, 1)])
    assert (len(ends), failures) == (2 * TOPICS, {})
    assert admin.calls <= MOST_CALLS


def test_a_reset_of_many_topics_is_planned_with_few_requests() -> None:
    admin = FakeAdmin()
    cluster = cluster_of(admin)
    keys = choose_partitions(cluster, [f"t-{topic}" for topic in range(TOPICS)], [])
    bounds = read_bounds(cluster, keys)
    assert len(bounds) == len(offsets_at_time(cluster, bounds, 1_000)) == 2 * TOPICS
    assert admin.calls <= 2 * MOST_CALLS


def test_partitions_that_do_not_answer_do_not_hide_the_others() -> None:
    admin = FakeAdmin({("t", 1): None, ("slow", 0): KafkaError._TIMED_OUT})
    ends, failures = read_ends(
        cluster_of(admin), [("t", 0), ("t", 1), ("t", 7), ("slow", 0), ("slow", 1), ("deleted", 0)]
    )
    assert ends == {("t", 0): 100, ("slow", 1): 100}
    assert failures.keys() == {("t", 1), ("slow", 0)}
    assert failures["t", 1] == "no leader"


def test_a_reset_names_the_partition_without_a_leader() -> None:
    with pytest.raises(Failure, match="t-1 has no leader, and its offsets are not known; name the partitions"):
        read_bounds(cluster_of(FakeAdmin({("t", 1): None})), [("t", 0), ("t", 1)])


def test_the_lag_is_unknown_with_the_end_of_a_partition(capsys: pytest.CaptureFixture[str]) -> None:
    lags = [PartitionLag("t", 0, 10, 100, time_lag_ms=5), PartitionLag("t", 1, 10, None, failure="no leader")]
    state: Any = SimpleNamespace(
        name="g", state="Empty", kind="classic", assignor="", coordinator="kafka:9092", members=[]
    )
    assert total_lag(lags) is None
    assert count_untimed(lags) == 1
    assert (as_object(state, lags)["lag"], as_object(state, lags)["time_lag_ms"]) == (None, None)
    print_group(state, lags)
    shown = capsys.readouterr().out
    assert "lag unknown" in shown
    assert "t-1: end not known: no leader" in shown
