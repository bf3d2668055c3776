"""`kafka-transactions` agrees with `odradek transaction`, on Apache Kafka as on Odradek: what one shows the other
shows, and what one aborts the other no longer finds.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from tests.clients.wire.hanging import leave_hanging
from tests.commands import run_odradek
from tests.jvm.tools import ToolSession
from tests.wire import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.conftest import Target
    from tests.commands import Ran

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def tools(jvm: None) -> Iterator[ToolSession]:
    with ToolSession() as session:
        yield session


@pytest.fixture
def kafka_transactions(tools: ToolSession, target: Target) -> Callable[..., Rows]:
    """The rows of the table that the tool prints, by its column titles."""

    def run(*arguments: str) -> Rows:
        server = ("--bootstrap-server", target.bootstrap_servers)
        lines = tools.run("kafka-transactions", *server, *arguments).checked().splitlines()
        titles, *rows = [line.split() for line in lines if line.strip()] or [[]]
        return [dict(zip(titles, row, strict=False)) for row in rows]

    return run


@pytest.fixture
def odradek(target: Target) -> Callable[..., Ran]:
    return functools.partial(run_odradek, ODRADEK_BOOTSTRAP_SERVER=target.bootstrap_servers)


@pytest.fixture
def prefix() -> str:
    """The start of transactional ids that no other test uses."""
    return f"t{uuid.uuid4().hex[:10]}"


def transactional_producer(target: Target, transactional_id: str) -> Any:
    settings = {"bootstrap.servers": target.bootstrap_servers, "transactional.id": transactional_id, "log_level": 0}
    producer = confluent_kafka.Producer({**settings, "transaction.timeout.ms": 45_000})
    producer.init_transactions(60)
    return producer


def test_both_list_and_describe_the_same(
    kafka_transactions: Callable[..., Rows], odradek: Callable[..., Ran], target: Target, topic: str, prefix: str
) -> None:
    done, ongoing = (transactional_producer(target, f"{prefix}-{name}") for name in ("done", "ongoing"))
    for producer in (done, ongoing):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, b"value", partition=partition)
        assert producer.flush(30) == 0
    done.commit_transaction(30)

    pattern = f"{prefix}.*"
    shown = {
        (row["TransactionalId"], int(row["Coordinator"]), int(row["ProducerId"]), row["TransactionState"])
        for row in kafka_transactions("list", "--transactional-id-pattern", pattern)
    }
    rows = odradek("transaction", "list", "--pattern", pattern, "--format", "json").rows
    assert {tuple(row.values()) for row in rows} == shown
    assert [(row["transactional_id"], row["state"]) for row in rows] == [
        (f"{prefix}-done", "CompleteCommit"),
        (f"{prefix}-ongoing", "Ongoing"),
    ]
    (only,) = odradek("transaction", "list", "--open-for", "0s", "--pattern", pattern, "--format", "json").rows
    assert only["transactional_id"] == f"{prefix}-ongoing"

    for name in ("done", "ongoing"):
        (row,) = kafka_transactions("describe", "--transactional-id", f"{prefix}-{name}")
        described = odradek("transaction", "describe", f"{prefix}-{name}", "--format", "json").row
        assert row["TransactionalId"] == described["transactional_id"]
        assert row["TransactionState"] == described["state"]
        assert int(row["CoordinatorId"]) == described["coordinator"]
        assert int(row["ProducerId"]) == described["producer_id"]
        assert int(row["ProducerEpoch"]) == described["producer_epoch"]
        assert int(row["TransactionTimeoutMs"]) == described["timeout_ms"] == 45_000
        partitions = [f"{each['topic']}-{each['partition']}" for each in described["partitions"]]
        assert partitions == ([f"{topic}-0", f"{topic}-1"] if name == "ongoing" else [])
        if name == "ongoing":
            assert int(row["CurrentTransactionStartTimeMs"]) == described["start_ms"]
            assert sorted(row["TopicPartitions"].split(",")) == partitions
    ongoing.abort_transaction(30)


def test_both_find_and_abort_hanging_transactions(
    kafka_transactions: Callable[..., Rows], odradek: Callable[..., Ran], target: Target, topic: str, prefix: str
) -> None:
    with connect(target.bootstrap_servers) as wire:
        producers = [leave_hanging(wire, f"{prefix}-{partition}", topic, partition) for partition in (0, 1)]
    ongoing = transactional_producer(target, f"{prefix}-known")  # as old, but its coordinator knows it
    ongoing.begin_transaction()
    ongoing.produce(topic, b"old", partition=0, timestamp=1_700_000_000_000)
    assert ongoing.flush(30) == 0

    shown = kafka_transactions("find-hanging", "--topic", topic, "--max-transaction-timeout", "15")
    found = odradek("transaction", "find-hanging", "--topic", topic, "--format", "json").rows
    assert [
        (each["topic"], each["partition"], each["producer_id"], each["producer_epoch"], each["start_offset"])
        for each in found
    ] == [(topic, partition, each.producer_id, each.epoch, 0) for partition, each in enumerate(producers)]
    assert sorted(
        (
            row["Topic"],
            int(row["Partition"]),
            int(row["ProducerId"]),
            int(row["StartOffset"]),
            int(row["LastTimestamp"]),
        )
        for row in shown
    ) == [
        (each["topic"], each["partition"], each["producer_id"], each["start_offset"], each["last_timestamp_ms"])
        for each in found
    ]

    kafka_transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    (left,) = odradek("transaction", "find-hanging", "--topic", topic, "--format", "json").rows
    assert left["partition"] == 1
    aborted = odradek("transaction", "abort", topic, "--partition", "1", "--start-offset", "0", "--yes")
    assert aborted.code == 0, aborted.errors
    assert kafka_transactions("find-hanging", "--topic", topic, "--max-transaction-timeout", "15") == []
    ongoing.commit_transaction(30)  # what the coordinator knows was left alone
