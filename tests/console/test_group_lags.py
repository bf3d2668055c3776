"""The lag in the list of groups: of partitions that all have answered, with ends as new as the committed offsets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.cli.client.cluster_state import PartitionState
from odradek.cli.client.group_lag import unread_records
from odradek.cli.framework.failure import Failure
from odradek.console.cluster import group_lags
from odradek.console.views.groups import last_value

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
    committed = {"behind": {FIRST: 10_000}, "partly": {FIRST: 10_000, SECOND: 1}, "new": {}}
    calls = []

    def finish(_cluster: Any, name: str, _future: Any) -> dict[tuple[str, int], int]:
        calls.append(name)
        if name == "refused":
            raise Failure("refused")
        return committed[name]

    def ends(_requests: Any, _brokers: Any, partitions: list[PartitionState], _timestamp: int) -> Any:
        calls.append("ends")
        assert [each.index for each in partitions] == [0, 1]
        return {FIRST: 30_000}

    monkeypatch.setattr(group_lags, "request_offsets", lambda _cluster, name: calls.append(f"request {name}"))
    monkeypatch.setattr(group_lags, "finish_offsets", finish)
    monkeypatch.setattr(group_lags, "read_offsets_of", ends)
    names = ["behind", "new", "partly", "refused", "too many"]
    cluster: Any = SimpleNamespace(group_names=lambda: names)
    requests: Any = None
    state: Any = SimpleNamespace(
        brokers={}, partitions=[PartitionState("t", index, 1, (1,), (1,)) for index in range(3)]
    )
    assert group_lags.read_total_lags(cluster, requests, state, 4) == {"behind": 20_000}
    assert calls == [*(f"request {name}" for name in names[:4]), *names[:4], "ends"]


def test_a_lag_that_is_no_longer_read_is_not_shown() -> None:
    assert last_value([1.0, None, 7.0, None, None]) == 7
    assert last_value([7.0, *[None] * 6]) is None
