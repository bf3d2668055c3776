"""The lag in the list of groups: of partitions that all have answered, with ends as new as the committed offsets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.admin.cluster_state import PartitionState, read_state
from odradek.admin.groups import (
    ListedGroup,
    PartitionLag,
    read_committed_offsets,
    read_committed_offsets_of,
    unread_records,
)
from odradek.admin.offsets import LATEST, read_offsets
from odradek.console.cluster import groups
from odradek.console.cluster.groups import MOST_LISTED, summarize_lags
from odradek.console.cluster.watch import LAGS_S, Round, pause_s
from odradek.console.models import Series
from odradek.console.views.groups import group_row, last_value

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

    monkeypatch.setattr("odradek.admin.groups.read_committed_offsets_of", committed)
    monkeypatch.setattr(groups, "read_offsets_of", ends)
    names = ["behind", "new", "partly", "refused", "too many"]
    listed = [ListedGroup(each, "Stable", "") for each in names]
    monkeypatch.setattr("odradek.admin.groups.list_groups", lambda _requests: (listed, {}))
    requests: Any = None
    state: Any = SimpleNamespace(
        brokers={}, partitions=[PartitionState("t", index, 1, (1,), (1,)) for index in range(3)]
    )
    assert groups.read_group_lags(requests, state, 4) == {"behind": 20_000}
    assert calls == [names[:4], "ends"]


def test_a_lag_that_is_no_longer_read_is_not_shown() -> None:
    assert last_value([1.0, None, 7.0, None, None]) == 7
    assert last_value([7.0, *[None] * 6]) is None
    assert last_value([7.0, *[None] * 8], 50) is None  # it was not among those of the last reading


@pytest.mark.parametrize("began_s", [0, 3, 9.9])
@pytest.mark.parametrize(
    ("last", "watches"), [(Round(0.1, 0.1), 1), (Round(1.4, 0.7), 12), (Round(14, 7), 1), (Round(9, 0.7), 60)]
)
def test_the_lags_of_the_last_reading_are_shown_until_the_next(last: Round, watches: int, began_s: float) -> None:
    period_s = last.took_s + pause_s(last, LAGS_S, watches)
    read_at_s = began_s + 2 * period_s
    lags = Series(1)
    for lag, time_s in ((500, began_s), (700, began_s + period_s), (900, read_at_s)):
        lags.add("g", time_s, lag)
    for share in range(11):
        age_s = period_s * share / 10
        row = group_row(ListedGroup("g", "Stable", ""), 1, lags, read_at_s + age_s, age_s)
        assert (row.lag, row.trend) == (900, "growing"), f"after {age_s} s of {period_s} s"


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
        lags = groups.describe_group(cluster, snapshot, name).lags.listed
        found.append([(each.topic, each.partition, each.lag, each.failure) for each in lags])
    assert found == [[(topic, 0, 0, ""), (topic, 1, 3, "")]] * 2
    snapshot.ends.clear()  # no broker has answered
    assert groups.last_ends(snapshot, {(topic, 0), (deleted, 0)}) == ({}, {(topic, 0): groups.NO_END})


def test_of_many_partitions_those_with_the_largest_lag_are_listed() -> None:
    ends = {("t", index): index for index in range(1, MOST_LISTED + 2)}
    committed = dict.fromkeys([("t", 0), *ends], 0)
    found = summarize_lags(committed, ends, {("t", 0): "no leader"})
    assert [each.partition for each in found.listed[:2]] == [0, MOST_LISTED + 1]
    assert len(found.listed) == MOST_LISTED
    assert (found.partitions, found.lag, found.unknown, found.behind) == (502, 501 * 502 // 2, 1, 501)
    some = {key: committed[key] for key in [("t", 2), ("t", 1), ("t", 5)]}
    assert [each.lag for each in summarize_lags(some, ends, {}).listed] == [1, 2, 5]


def test_a_lag_is_untimed_if_its_partition_is_not_listed() -> None:
    ends = {("t", index): 1 for index in range(MOST_LISTED + 2)}
    found = summarize_lags(dict.fromkeys(ends, 0), ends, {})
    for each in found.listed:
        each.time_lag_ms = 7
    assert (found.untimed, found.time_lag_ms) == (2, None)
    all_listed = summarize_lags(dict.fromkeys(ends, 1) | {("t", 3): 0}, ends, {})
    all_listed.listed[0].time_lag_ms = 7
    assert (all_listed.untimed, all_listed.time_lag_ms) == (0, 7)


def test_objects_are_made_for_listed_partitions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    original = PartitionLag

    def make(*given: Any, **named: Any) -> Any:
        made.append(given)
        return original(*given, **named)

    monkeypatch.setattr("odradek.admin.groups.PartitionLag", make)
    ends = {(f"t-{topic}", index): 1 for topic in range(1000) for index in range(10)}
    assert summarize_lags(dict.fromkeys(ends, 0), ends, {}).lag == len(ends)
    assert len(made) == MOST_LISTED
