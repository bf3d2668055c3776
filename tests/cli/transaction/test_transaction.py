"""`odradek transaction`, on a real cluster: what it shows, what it aborts, what it refuses.

`tests/clients/test_transaction_tools.py` compares it with `kafka-transactions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from tests.clients.wire.hanging import leave_hanging
from tests.wire import connect

if TYPE_CHECKING:
    from tests.commands import Run

NewName = Callable[[], str]


def begin(bootstrap_server: str, transactional_id: str, topic: str) -> Any:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap_server, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"value", partition=1)
    assert producer.flush(30) == 0
    return producer


@pytest.fixture
def ongoing(bootstrap_server: str, topic: str, new_name: NewName) -> tuple[str, Any]:
    name = new_name()
    return name, begin(bootstrap_server, name, topic)


def test_transactions_are_listed_by_state_producer_and_age(odradek: Run, ongoing: tuple[str, Any]) -> None:
    name, producer = ongoing
    (row,) = odradek("transaction", "list", "--pattern", name, "--format", "json").rows
    assert (row["transactional_id"], row["state"]) == (name, "Ongoing")
    of_producer = odradek("transaction", "list", "--producer-id", str(row["producer_id"]))
    assert name in of_producer.output
    assert "TRANSACTIONAL ID" in of_producer.output
    assert name not in odradek("transaction", "list", "--open-for", "1h").output
    assert name in odradek("transaction", "list", "--state", "ongoing").output
    producer.commit_transaction(30)
    assert name not in odradek("transaction", "list", "--state", "ongoing").output
    assert "no such transactions" in odradek("transaction", "list", "--pattern", "none-like-this").output


def test_a_transaction_is_described(odradek: Run, ongoing: tuple[str, Any], topic: str) -> None:
    name, producer = ongoing
    described = odradek("transaction", "describe", name, "--format", "json").row
    assert (described["state"], described["timeout_ms"]) == ("Ongoing", 60_000)
    assert described["partitions"] == [{"topic": topic, "partition": 1}]
    assert 0 <= described["duration_ms"] < 60_000
    text = odradek("transaction", "describe", name).output
    assert "Ongoing · timeout 1 min · 1 partition" in text
    assert "ago · producer" in text
    producer.abort_transaction(30)
    assert odradek("transaction", "describe", name, "--format", "json").row["partitions"] == []


def test_a_hanging_transaction_is_found_and_aborted(
    odradek: Run, bootstrap_server: str, topic: str, new_name: NewName
) -> None:
    with connect(bootstrap_server) as wire:
        producer = leave_hanging(wire, new_name(), topic, 1)
    found = odradek("transaction", "find-hanging").output
    assert [line.split()[:5] for line in found.splitlines() if topic in line] == [
        [topic, "1", "0", str(producer.producer_id), "0"]
    ]
    assert topic not in odradek("transaction", "find-hanging", "--max-timeout", "2h").output
    ran = odradek("transaction", "abort", topic, "--partition", "1", "--start-offset", "0", "--yes")
    assert ran.output == f"aborted the transaction of producer {producer.producer_id} in {topic}-1\n"
    assert odradek("transaction", "find-hanging", "--topic", topic).output == "no hanging transactions\n"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("describe", "nobody"), 1, "transaction nobody: there is no such transactional id"),
        (("describe", ""), 2, "cannot be empty"),
        (("list", "--pattern", "("), 1, "not a valid regular expression"),
        (("list", "--state", "Sleepy"), 2, "ongoing"),
        (("find-hanging", "--broker-id", "77"), 1, "there is no broker 77"),
        (("find-hanging", "--topic", "no-such-topic"), 1, "there is no such topic"),
        (("abort", "TOPIC", "--partition", "7", "--start-offset", "0", "--yes"), 1, "has no partition 7"),
        (("abort", "TOPIC", "--partition", "0", "--start-offset", "5", "--yes"), 1, "no transaction is open there"),
        (("abort", "TOPIC", "--partition", "0", "--start-offset", "5"), 1, "no transaction is open there"),
        (("abort", "no-such-topic", "--partition", "0", "--start-offset", "5"), 1, "there is no such topic"),
    ],
)
def test_what_cannot_be_done_is_said(
    odradek: Run, topic: str, arguments: tuple[str, ...], code: int, text: str
) -> None:
    ran = odradek("transaction", *(topic if each == "TOPIC" else each for each in arguments))
    assert (ran.code, ran.output) == (code, "")
    assert text in ran.errors


def test_transactional_ids_are_completed(odradek: Run, ongoing: tuple[str, Any]) -> None:
    name, _producer = ongoing
    words = f"odradek transaction describe {name[:-2]}"
    ran = odradek(_ODRADEK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="3")
    assert ran.output.split(",")[-1].strip() == name
