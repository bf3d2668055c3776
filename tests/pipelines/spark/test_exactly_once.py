"""Exactly once end to end: topics, tables, views and files of one pipeline, with open and aborted transactions in its
source and with batches that fail while their outputs are written."""

from __future__ import annotations

import itertools
import json
import sqlite3
import uuid
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from odradek.pipelines.spark.engines import standard
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.writing.batches import outputs_of
from tests.pipelines.committed import committed_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.pipelines.spark.stage import Stage

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(900)]

PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Numbers(StatefulProcessor):
    def init(self, handle):
        self.last = handle.getValueState("last", "i BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        i = self.last.get()[0] if self.last.exists() else 0
        for row in rows:
            i += 1
            yield Row(k=str(key[0]), n=row.n, i=i)
        self.last.update((i,))
"""
DEFINITION = """
delivery: exactly_once
dead_letters: "@dead"
warehouse: sqlite:///warehouse.db
sources: {a: {topic: "@in", schema: "k STRING, n BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}}
steps:
  good: {sql: "select k, n, at from a", expect: {positive: {check: n > 0, otherwise: quarantine}}}
  exploded: {sql: "select k, explode(array(n, n * 10)) as n from good"}
  totals: {from: good, by: [k], aggregate: {c: count(*), s: sum(n)}}
  windows: {from: good, by: [k], window: {column: at, size: 10 minutes}, aggregate: {c: count(*)}}
  numbered: {from: good, state: {key: [k], processor: "processor:Numbers"}, schema: "k STRING, n BIGINT, i BIGINT"}
  distinct: {from: good, deduplicate: {key: [n], within: 10 minutes}}
sinks:
  good_topic: {from: good, topic: "@good", key: k}
  second_producer: {from: good, topic: "@second", key: k, kafka: {linger.ms: "1"}}
  exploded_topic: {from: exploded, topic: "@exploded", key: k}
  good_table: {from: good, table: goods}
  totals_topic: {from: totals, topic: "@totals", key: k, mode: update}
  totals_table: {from: totals, table: totals, key: [k]}
  windows_topic: {from: windows, topic: "@windows", key: k}
  numbered_topic: {from: numbered, topic: "@numbered", key: k}
  numbered_table: {from: numbered, table: numbers}
  distinct_topic: {from: distinct, topic: "@distinct", key: k}
  good_files: {from: good, files: {path: files, format: parquet}}
views:
  totals_view: {from: good, by: [k], aggregate: {c: count(*), s: sum(n)}}
"""
PARTITIONS = 3
TIMEOUT_MS = 800_000  # of a transaction that stays open while the pipeline runs


def row(n: int, minute: int, k: str | None = None) -> dict[str, Any]:
    return {"k": k or "abc"[n % 3], "n": n, "at": f"2026-01-01T10:{minute:02d}:00Z"}


def send_open(stage: Stage, values: Iterable[Any]) -> Producer:
    """Sends values in a transaction that stays open."""
    settings = {"transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": TIMEOUT_MS}
    producer = Producer({"bootstrap.servers": stage.bootstrap_servers, **settings})
    producer.init_transactions()
    producer.begin_transaction()
    for number, value in enumerate(values):
        data = value if isinstance(value, bytes) else json.dumps(value)
        producer.produce(stage.topic("in"), data, partition=number % PARTITIONS)
    producer.flush()
    return producer


def fail_before(monkeypatch: pytest.MonkeyPatch, function: str, number: int) -> None:
    """Makes the call with this number of a function that writes outputs fail. Outputs that precede it in its batch are
    written."""
    numbers = itertools.count(1)  # of all flows, which write in several threads

    def outputs(*about: Any) -> list[partial[None]]:
        return [partial(write_or_fail, each) for each in outputs_of(*about)]

    def write_or_fail(write: partial[None]) -> None:
        if write.func.__name__ == function and next(numbers) == number:
            raise OSError(f"{function} fails")
        write()

    monkeypatch.setattr(standard, "outputs_of", outputs)


def values_in(stage: Stage, topic: str) -> list[Any]:
    found = committed_records(stage.bootstrap_servers, stage.topic(topic))
    return [json.loads(each.value() or b"null") for each in found]


def table(stage: Stage, name: str) -> Counter[tuple[Any, ...]]:
    connection = sqlite3.connect(stage.folder / "warehouse.db")
    try:
        return Counter(map(tuple, connection.execute(f'select * from "{name}"')))
    finally:
        connection.close()


def counted(found: Iterable[Any], *names: str) -> Counter[Any]:
    return Counter(tuple(each[name] for name in names) for each in found)


def test_every_output_has_every_row_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    (stage.folder / "processor.py").write_text(PROCESSOR)
    stage.create("in", PARTITIONS)
    pipeline = stage.pipeline(DEFINITION, name=f"p{uuid.uuid4().hex[:8]}")
    first = [row(n, n % 5) for n in range(1, 20)]
    send_open(stage, first).commit_transaction()
    send_open(stage, [row(n, 1) for n in range(500, 510)]).abort_transaction()
    stage.run(pipeline)

    second = [row(n, 10 + n % 5) for n in range(20, 40)]
    send_open(stage, [*second, b"{not JSON", row(-5, 3)]).commit_transaction()
    send_open(stage, [row(n, 1) for n in range(600, 610)]).abort_transaction()
    open_rows = [row(n, 30) for n in range(40, 50)]
    is_open = send_open(stage, open_rows)
    behind = [row(n, 31) for n in range(50, 55)]
    send_open(stage, behind).commit_transaction()
    for function, number in (("write", 1), ("write_tables", 2), ("write", 3)):
        with monkeypatch.context() as context:
            fail_before(context, function, number)
            with pytest.raises(PipelineFailed):
                stage.run(pipeline)
    stage.run(pipeline)

    is_open.commit_transaction()
    last = [row(100, 59, "a"), row(101, 59, "b")]
    send_open(stage, last).commit_transaction()
    stage.run(pipeline)
    stage.run(pipeline)
    check_outputs(stage, [*first, *second, *open_rows, *behind, *last])


def check_outputs(stage: Stage, rows: Sequence[dict[str, Any]]) -> None:
    once = counted(rows, "n")
    for topic in ("good", "second", "distinct", "numbered"):
        assert counted(values_in(stage, topic), "n") == once, topic
    assert counted(values_in(stage, "exploded"), "n") == once + Counter((each["n"] * 10,) for each in rows)
    assert len(committed_records(stage.bootstrap_servers, stage.topic("dead"))) == 2
    per_key = Counter(each["k"] for each in rows)
    numbers = Counter((k, i + 1) for k, count in per_key.items() for i in range(count))
    assert counted(values_in(stage, "numbered"), "k", "i") == numbers
    totals = Counter((k, count, sum(each["n"] for each in rows if each["k"] == k)) for k, count in per_key.items())
    assert table(stage, "totals") == totals
    assert table(stage, "totals_view") == totals
    changes = counted(values_in(stage, "totals"), "k", "c", "s")
    assert set(changes.values()) == {1}
    assert Counter(max(each for each in changes if each[0] == k) for k in per_key) == totals
    assert Counter((n,) for (_, n, *_) in table(stage, "goods").elements()) == once
    assert Counter((n,) for (_, n, *_) in table(stage, "numbers").elements()) == once
    closed = [{**each, "ten": each["at"][:15]} for each in rows if each["at"] < "2026-01-01T10:50"]
    found = [{**each, "ten": each["window_start"][:15]} for each in values_in(stage, "windows")]
    assert counted(found, "k", "ten", "c") == Counter(
        (*each, count) for each, count in counted(closed, "k", "ten").items()
    )
    files = stage.spark.read.parquet(str(stage.folder / "files")).select("n").collect()
    assert Counter(map(tuple, files)) == once
