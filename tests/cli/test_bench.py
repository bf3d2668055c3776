"""`odradek bench`, on a real cluster and small: that it measures what it says, and says it in both formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.bench import ProduceWorkload

if TYPE_CHECKING:
    from tests.commands import Run


def written(odradek: Run, topic: str) -> int:
    partitions = odradek("topic", "describe", topic, "--format", "json").row["partitions"]
    return sum(partition["latest_offset"] for partition in partitions)


def test_produce_creates_the_topic_and_writes_the_records(odradek: Run, new_name: Any) -> None:
    topic = new_name()
    ran = odradek("bench", "produce", "-t", topic, "-p", "3", "-n", "5000", "--format", "json")
    assert ran.code == 0, ran.errors
    row = ran.row
    assert (row["bench"], row["partitions"], row["size"], row["acks"]) == ("produce", 3, 100, "all")
    assert row["records"] == written(odradek, topic) >= 5000
    assert row["bytes"] == 100 * row["records"]
    assert row["records_per_second"] == pytest.approx(row["records"] / row["seconds"], rel=0.05)
    spread = row["latency_ms"]
    assert 0 < spread["p50"] <= spread["p90"] <= spread["p99"] <= spread["p99.9"] <= spread["max"]


def test_consume_reads_all_that_produce_wrote(odradek: Run, topic: str) -> None:
    options = ("-n", "20000", "--batch-size", "10000", "--compression", "lz4", "--format", "json")
    wrote = odradek("bench", "produce", "-t", topic, *options).row["records"]
    ran = odradek("bench", "consume", "-t", topic, "--format", "json")
    assert ran.code == 0, ran.errors
    assert ran.row["records"] == wrote


@pytest.mark.parametrize("acks", ["0", "1"])
def test_produce_with_other_acks(odradek: Run, topic: str, acks: str) -> None:
    ran = odradek("bench", "produce", "-t", topic, "-n", "2000", "--acks", acks, "--format", "json")
    assert ran.code == 0, ran.errors
    assert ran.row["records"] == written(odradek, topic)


def test_rate_and_duration_are_kept(odradek: Run, topic: str) -> None:
    ran = odradek(
        "bench", "produce", "-t", topic, "--rate", "2000", "--duration", "1s", "--batch-size", "2000",
        "--format", "json",
    )  # fmt: skip
    assert ran.code == 0, ran.errors
    assert 0.9 <= ran.row["seconds"] < 10
    assert ran.row["records_per_second"] < 2400


def test_latency_counts_what_came_through(odradek: Run, topic: str) -> None:
    ran = odradek("bench", "latency", "-t", topic, "--rate", "500", "--duration", "1s", "--format", "json")
    assert ran.code == 0, ran.errors
    assert ran.row["records"] >= 500
    assert 0 < ran.row["latency_ms"]["p50"] <= ran.row["latency_ms"]["max"]


def test_text_says_rates_and_percentiles(odradek: Run, topic: str) -> None:
    ran = odradek("bench", "produce", "-t", topic, "-n", "1000")
    lines = ran.output.splitlines()
    assert lines[0].startswith("produce  1,000 records, 100.0 KB in ")
    assert "records/s" in lines[1]
    assert "p99 " in lines[2]


def test_consume_of_an_empty_topic_says_how_to_fill_it(odradek: Run, topic: str) -> None:
    ran = odradek("bench", "consume", "-t", topic)
    assert ran.code == 1
    assert "odradek bench produce" in ran.errors


def test_a_low_rate_hands_over_few_records_at_once() -> None:
    settings: dict[str, Any] = {
        "topic": "t", "value": b"", "records": None, "duration_ms": 1000, "batch_size": 1, "linger_ms": 0,
        "acks": "all", "compression": "none",
    }  # fmt: skip
    assert ProduceWorkload(rate=None, **settings).chunk_records(1000) == 1000
    assert ProduceWorkload(rate=10, **settings).chunk_records(1000) == 1
    assert ProduceWorkload(rate=50_000, **settings).chunk_records(1000) == 50
