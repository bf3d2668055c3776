"""Groups of many topics are read with few requests, and partitions that do not answer do not hide the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from odradek.admin.cluster import Cluster
from odradek.admin.groups import PartitionLag, count_untimed, read_ends
from odradek.admin.resets import Goal, choose_partitions, plan_moves
from odradek.cli.group import as_object, print_group, total_lag
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.offsets import Key
    from odradek.admin.wire import KeptConnections
    from odradek.protocol.schema import Request

TOPICS = 1_000
MOST_CALLS = 5  # 2,000 partitions, or 1,000 topics, to a request


class FakeCalls:
    """A cluster with topics of two partitions. `errors` by partition; a partition with the error None has no leader."""

    def __init__(self, errors: Mapping[Key, int | None] | None = None) -> None:
        self.calls = 0
        self.errors = errors or {}

    def __call__(self, _address: object, request: Request, *_rest: object) -> Any:
        self.calls += 1
        if isinstance(request, MetadataRequest):
            brokers = [MetadataResponseBroker(node_id=1, host="localhost", port=1)]
            topics = [self._topic(each.name or "") for each in request.topics or ()]
            return MetadataResponse(brokers=brokers, topics=topics)
        assert isinstance(request, ListOffsetsRequest)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name, partitions=[self._offset(topic.name, each) for each in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name.startswith("deleted"):
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        leaders = {each: -1 if self.errors.get((name, each), 0) is None else 1 for each in (0, 1)}
        partitions = [MetadataResponsePartition(partition_index=each, leader_id=id_) for each, id_ in leaders.items()]
        return MetadataResponseTopic(name=name, partitions=partitions)

    def _offset(self, topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        error = self.errors.get((topic, asked.partition_index), 0)
        assert error is not None, "a request for a partition without a leader waits for its timeout"
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error, offset=100)


def cluster_of(calls: FakeCalls) -> Cluster:
    cluster = Cluster("localhost:1", {})
    cluster.connections = cast("KeptConnections", calls)
    return cluster


def test_ends_of_many_topics_are_read_with_few_requests() -> None:
    calls = FakeCalls()
    ends, failures = read_ends(cluster_of(calls), [(f"t-{topic}", each) for topic in range(TOPICS) for each in (0, 1)])
    assert (len(ends), failures) == (2 * TOPICS, {})
    assert calls.calls <= MOST_CALLS


def test_a_reset_of_many_topics_is_planned_with_few_requests() -> None:
    calls = FakeCalls()
    cluster = cluster_of(calls)
    keys = choose_partitions(cluster, [f"t-{topic}" for topic in range(TOPICS)], [])
    assert len(plan_moves(cluster, {}, keys, Goal("time", 1_000))) == 2 * TOPICS
    assert calls.calls <= 3 * MOST_CALLS


def test_partitions_that_do_not_answer_do_not_hide_the_others() -> None:
    calls = FakeCalls({("t", 1): None, ("slow", 0): ErrorCode.KAFKA_STORAGE_ERROR})
    ends, failures = read_ends(
        cluster_of(calls), [("t", 0), ("t", 1), ("t", 7), ("slow", 0), ("slow", 1), ("deleted", 0)]
    )
    assert ends == {("t", 0): 100, ("slow", 1): 100}
    assert failures.keys() == {("t", 1), ("slow", 0)}
    assert failures["t", 1] == "no leader"


def test_a_reset_names_the_partition_without_a_leader() -> None:
    with pytest.raises(Failure, match="t-1 has no leader, and its offsets are not known; name the partitions"):
        plan_moves(cluster_of(FakeCalls({("t", 1): None})), {}, [("t", 0), ("t", 1)], Goal("latest"))


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
