"""The lag of a group in time: known as soon as a partition has answered, and never zero for want of an answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from odradek.admin import groups
from odradek.admin.cluster import Cluster
from odradek.admin.groups import PartitionLag, add_time_lags, count_untimed, longest_time_lag

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
AT_ONCE_S = PATIENCE_S / 2  # well below the patience of the reader


@pytest.fixture(autouse=True)
def patient_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take seconds for what is read at once."""
    monkeypatch.setattr(groups, "PATIENCE_S", PATIENCE_S)


def begin_transaction(bootstrap_server: str, topic: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "of a transaction", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


@pytest.mark.parametrize(
    ("times", "longest", "untimed"),
    [([0, 500], 500, 0), ([0, None], None, 1), ([None, None], None, 1), ([0, 0], 0, 0)],
)
def test_the_longest_lag_is_unknown_if_that_of_a_partition_behind_is(
    times: list[int | None], longest: int | None, untimed: int
) -> None:
    """The first partition is caught up, the second has unread records."""
    first, second = times
    lags = [PartitionLag("t", 0, 10, 10, None, first), PartitionLag("t", 1, 10, 100_000, None, second)]
    assert (longest_time_lag(lags), count_untimed(lags)) == (longest, untimed)


def test_a_partition_that_ends_with_a_marker_has_no_unread_record(
    bootstrap_server: str, topic: str, new_name: Callable[[], str]
) -> None:
    begin_transaction(bootstrap_server, topic, new_name()).commit_transaction(PATIENCE_S)
    lags = [PartitionLag(topic, 0, committed_offset=1, end_offset=2)]
    began_at = time.monotonic()
    assert add_time_lags(Cluster(bootstrap_server, {}), lags) == set()
    assert time.monotonic() - began_at < AT_ONCE_S
    assert lags[0].time_lag_ms == 0


def test_a_record_of_an_open_transaction_counts(bootstrap_server: str, topic: str, new_name: Callable[[], str]) -> None:
    producer = begin_transaction(bootstrap_server, topic, new_name())
    try:
        lags = [PartitionLag(topic, 0, committed_offset=0, end_offset=1), PartitionLag(topic, 1, 0, 0)]
        time.sleep(0.05)  # a measured time: the age of the record
        began_at = time.monotonic()
        add_time_lags(Cluster(bootstrap_server, {"isolation.level": "read_committed"}), lags)
        assert time.monotonic() - began_at < AT_ONCE_S
        assert (lags[0].time_lag_ms or 0) >= 50
        assert lags[1].time_lag_ms == 0
    finally:
        producer.abort_transaction(PATIENCE_S)
