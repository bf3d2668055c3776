"""The lag in the list of groups: of partitions that all have answered, with ends as new as the committed offsets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from odradek.cli.client.broker_requests import BrokerRequests
from odradek.cli.client.cluster import Cluster
from odradek.cli.client.cluster_state import PartitionState, read_state
from odradek.cli.client.committed_offsets import read_committed_offsets, read_committed_offsets_of
from odradek.cli.client.group_lag import unread_records
from odradek.cli.client.partition_offsets import LATEST, read_offsets
from odradek.cli.group.state import PartitionLag
from odradek.console.cluster import group_lags, groups
from odradek.console.views.groups import MOST_LISTED, last_value, listed_lags

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, SECOND = ("t", 0), ("t", 1)


@pytest.mark.parametrize(
    ("ends", "existing", "lag"),
    [
        ({FIRST: 5_000, SECOND: 5_000}, {FIRST, SECOND}, 8_000),
        ({FIRST: 5_000}, {FIRST, SECOND}, None),  # the leader of the second is away
        ({FIRST: 5_000}, {FIRST}, 4_000),  # the second was deleted
        ({FIRST: 500, SECOND: 1_010}, {FIRST, SECOND}, 10),
        ({}, set(), 0),
    ],
)
def test_the_lag_of_a_group_is_unknown_with_the_end_of_a_partition(ends: Any, existing: Any, lag: int | None) -> None:
    assert unread_records({FIRST: 1_000, SECOND: 1_000}, ends, existing) == lag


def test_ends_are_read_after_the_committed_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group whose offsets are refused is left out, as is one with a partition that does not answer."""
    calls: list[object] = []

    def committed(_requests: Any, names: list[str]) -> dict[str, dict[tuple[str, int], int]]:
        calls.append(names)
        return {"behind": {FIRST: 10_000}, "partly": {FIRST: 10_000, SECOND: 1}, "new": {}}

    def ends(_requests: Any, _brokers: Any, partitions: list[PartitionState], _timestamp: int) -> Any:
        calls.append("ends")
        assert [each.index for each in partitions] == [0, 1]
        return {FIRST: 30_000}

    monkeypatch.setattr(group_lags, "read_committed_offsets_of", committed)
    monkeypatch.setattr(group_lags, "read_offsets_of", ends)
    names = ["behind", "new", "partly", "refused", "too many"]
    cluster: Any = SimpleNamespace(group_names=lambda: names)
    requests: Any = None
    state: Any = SimpleNamespace(
        brokers={}, partitions=[PartitionState("t", index, 1, (1,), (1,)) for index in range(3)]
    )
    assert group_lags.read_total_lags(cluster, requests, state, 4) == {"behind": 20_000}
    assert calls == [names[:4], "ends"]


def test_a_lag_that_is_no_longer_read_is_not_shown() -> None:
    assert last_value([1.0, None, 7.0, None, None]) == 7
    assert last_value([7.0, *[None] * 6]) is None


def commit(bootstrap_server: str, group: str, *offsets: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": group})
    consumer.commit(offsets=list(offsets), asynchronous=False)
    consumer.close()


def test_committed_offsets_of_many_groups_are_read_at_once(
    bootstrap_server: str, topic: str, new_name: Callable[[], str]
) -> None:
    first, second, unknown = new_name(), new_name(), new_name()
    commit(bootstrap_server, first, TopicPartition(topic, 0, 7), TopicPartition(topic, 1, 9))
    commit(bootstrap_server, second, TopicPartition(topic, 1, 0))
    requests = BrokerRequests(Cluster(bootstrap_server, {}))
    wanted = {first: {(topic, 0): 7, (topic, 1): 9}, second: {(topic, 1): 0}}
    assert read_committed_offsets_of(requests, [first, second, unknown]) == wanted | {unknown: {}}
    assert {name: read_committed_offsets(requests, name) for name in wanted} == wanted


def test_a_group_with_many_partitions_has_the_same_lags(
    bootstrap_server: str,
    topic: str,
    produce: Callable[..., None],
    new_name: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, deleted = new_name(), new_name()
    produce(topic, *(b"record" for _ in range(5)), partition=1)
    cluster = Cluster(bootstrap_server, {})
    commit(bootstrap_server, name, TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 2))
    requests = BrokerRequests(cluster)
    state = read_state(requests)
    snapshot: Any = SimpleNamespace(state=state, ends=read_offsets(requests, state, LATEST))
    found = []
    for most in (groups.MOST_LOOKED_UP, 1):
        monkeypatch.setattr(groups, "MOST_LOOKED_UP", most)
        lags = groups.describe_group(cluster, snapshot, name).lags
        found.append([(each.topic, each.partition, each.lag, each.failure) for each in lags])
    assert found == [[(topic, 0, 0, ""), (topic, 1, 3, "")]] * 2
    snapshot.ends.clear()  # no broker has answered
    assert groups.last_ends(snapshot, {(topic, 0), (deleted, 0)}) == ({}, {(topic, 0): groups.NO_END})


def test_of_many_partitions_those_with_the_largest_lag_are_listed() -> None:
    lags = [PartitionLag("t", index, 0, index) for index in range(MOST_LISTED + 2)]
    lags[0].failure = "no leader"
    listed = listed_lags(lags)
    assert [each.partition for each in listed[:2]] == [0, MOST_LISTED + 1]
    assert len(listed) == MOST_LISTED
    assert listed_lags(lags[:5]) == lags[:5]
