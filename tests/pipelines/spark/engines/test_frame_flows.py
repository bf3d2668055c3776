"""Flows that are computed as frames: with joins, unions and Python steps, and with state before their batches."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.spark.computing.keyed_rows import SHUFFLE_PARTITIONS
from odradek.pipelines.spark.frames import RECORD_NAMES
from tests.pipelines.spark.engines.folder_stage import FolderStage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.spark.computing.counts import BatchReport

pytestmark = pytest.mark.spark

SOURCES = """
pipeline: p
sources:
  orders:
    topic: orders
    schema: "id BIGINT, k STRING, n BIGINT, at TIMESTAMP"
    watermark: {column: at, delay: 10 seconds}
  payments:
    topic: payments
    schema: "id BIGINT, paid BIGINT, paid_at TIMESTAMP"
    watermark: {column: paid_at, delay: 10 seconds}
  labels: {files: {path: labels.json, format: json}, schema: "k STRING, label STRING"}
"""
STEPS = {
    "frames": """
steps:
  named:
    sql: select id, try_divide(12, n) as share, label from orders left join labels using (k)
    expect: {many: {check: share > 1, otherwise: drop}}
  both: {sql: "select id, n from orders union all select id, paid as n from payments"}
  known:
    sql: select * from labels
    expect:
      not first: {check: label <> 'first', otherwise: drop}
      is short: {check: length(label) < 6, otherwise: warn}
  second: {sql: select * from orders join known using (k)}
sinks:
  named: {from: named, table: named}
  second: {from: second, table: second}
  both: {from: both, topic: both}
""",
    "state": """
steps:
  counted:
    sql: >
      select k, window.start as since, count(*) as events from orders
      group by k, window(at, '1 minute') having count(*) > 1
  totals: {from: orders, aggregate: {n: count(*), total: sum(n)}, by: [k]}
  unique: {from: orders, deduplicate: {key: [id], within: 1 minute}}
  settled: {from: orders, join: {stream: payments, on: [id], within: 1 minute, how: left}}
sinks:
  counted: {from: counted, topic: counted}
  few: {from: counted, table: few, key: [k, since]}
  totals: {from: totals, table: totals, key: [k]}
  unique: {from: unique, topic: unique, value: [id, n]}
  settled: {from: settled, topic: settled, value: [id, paid]}
""",
}
UNIQUE = """
steps: {unique: {from: orders, deduplicate: {key: [id], within: 1 minute}}}
sinks: {unique: {from: unique, topic: unique, value: [id]}}
"""


def at(seconds: int) -> str:
    return f"2026-01-01T12:{seconds // 60:02}:{seconds % 60:02}Z"


def order(number: int, k: str, n: int, seconds: int) -> dict[str, Any]:
    return {"id": number, "k": k, "n": n, "at": at(seconds)}


FED: list[dict[str, Any]] = [
    {
        "orders": [order(1, "a", 2, 0), order(1, "a", 9, 1), order(2, "b", 20, 5), {"id": 7, "k": "x", "n": 4}],
        "payments": [{"id": 1, "paid": 5, "paid_at": at(2)}],
    },
    {"orders": [order(3, "a", 0, 30), order(4, "c", 6, 70)], "payments": [{"id": 4, "paid": 6, "paid_at": at(80)}]},
    {"orders": [order(5, "b", 3, 300)], "payments": [{"id": 9, "paid": 1, "paid_at": at(300)}]},
    {"orders": [order(6, "b", 3, 302)], "payments": [{"id": 8, "paid": 1, "paid_at": at(302)}]},
]


def staged(spark: SparkSession, folder: Path, steps: str, engine: str) -> FolderStage:
    (folder / "labels.json").write_text('{"k": "a", "label": "first"}\n{"k": "b", "label": "second"}\n')
    stage = FolderStage(spark, folder, f"{SOURCES}\nengine: {engine}\n{steps}")
    for each in FED:
        stage.feed(**each)
    return stage


def run(spark: SparkSession, folder: Path, steps: str, engine: str) -> tuple[FolderStage, list[BatchReport]]:
    stage = staged(spark, folder, steps, engine)
    reports = [stage.run_once()] if engine == "batch" else stage.run()
    return stage, reports


@pytest.mark.more(but="standard")
@pytest.mark.parametrize("engine", ["standard", "batch"])
def test_joins_and_unions_are_computed_batch_by_batch(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    stage, reports = run(spark, tmp_path, STEPS["frames"], engine)
    named = [(row[0], row[2]) for row in stage.rows("named")]
    assert named == [(1, "first"), (1, "first"), (4, None), (5, "second"), (6, "second")]
    assert len(stage.records("both")) == 11
    assert [row[1] for row in stage.rows("second")] == [2, 5, 6]
    unmet, checked = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in (each for report in reports for each in report.violations):
        unmet[each.step, each.expectation] += each.rows
        checked[each.step, each.expectation] += each.checked
    assert unmet["orders", "no event time"] == 1
    known = [("known", "not first"), ("known", "is short")]  # of a static step, whose rows are counted once
    assert [(unmet[each], checked[each]) for each in known] == [(1, 2), (1, 2)]
    stage.close()


@pytest.mark.more(but="standard")
@pytest.mark.parametrize("engine", ["standard", "batch"])
def test_state_is_kept_between_batches(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    stage, _ = run(spark, tmp_path, STEPS["state"], engine)
    assert stage.rows("totals") == [("a", 3, 11), ("b", 3, 26), ("c", 1, 6)]
    assert [row[0] for row in stage.rows("few")] == ["a", "b"]
    assert {(each["k"], each["events"]) for each in stage.records("counted")} >= {("a", 3)}
    assert sorted({each["id"] for each in stage.records("unique")}) == [1, 2, 3, 4, 5, 6]
    settled = Counter((each["id"], each["paid"]) for each in stage.records("settled"))
    assert settled == Counter(
        {(1, 5): 2, (4, 6): 1, (2, None): 1, (3, None): 1} | ({(5, None): 1, (6, None): 1} if engine == "batch" else {})
    )
    stage.close()


@pytest.fixture
def three_partitions(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(SHUFFLE_PARTITIONS) or "1"
    spark.conf.set(SHUFFLE_PARTITIONS, "3")
    yield
    spark.conf.set(SHUFFLE_PARTITIONS, before)


@pytest.mark.more
@pytest.mark.usefixtures("three_partitions")
def test_duplicates_are_found_in_any_partition(spark: SparkSession, tmp_path: Path) -> None:
    """With several partitions, the batches of `within` are sorted, and Spark checks the query without the sort."""
    stage, reports = run(spark, tmp_path, UNIQUE, "standard")
    assert Counter(each["id"] for each in stage.records("unique")) == dict.fromkeys(range(1, 7), 1)
    assert sum((Counter(each.written) for each in reports), Counter()) == {"unique": 6}


NUMBERED = """
steps:
  halves: {sql: "select k, explode(array(n, n + 0.5D)) as x from orders where k is not null"}
  numbered: {from: halves, state: {key: [k], processor: "numbering:Numbered"}, schema: "k STRING, x DOUBLE, i BIGINT"}
sinks: {numbered: {from: numbered, topic: numbered}}
"""
PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Numbered(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "i BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        i = self.count.get()[0] if self.count.exists() else 0
        for row in rows:
            i += 1
            yield Row(k=key[0], x=row.x, i=i)
        self.count.update((i,))
"""


@pytest.mark.more(but="standard")
@pytest.mark.usefixtures("three_partitions")
@pytest.mark.parametrize("engine", ["standard", "batch"])
def test_a_processor_gets_the_rows_of_a_key_in_the_order_of_their_records(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    (tmp_path / "numbering.py").write_text(PROCESSOR)
    fed = [
        [order(number, "abc"[number % 3], number * 7 % 30, number) for number in range(start, start + 15)]
        for start in (0, 15)
    ]
    stage = FolderStage(spark, tmp_path, f"{SOURCES}\nengine: {engine}\n{NUMBERED}")
    for batch in fed:
        stage.feed(orders=batch)
    stage.run_once() if engine == "batch" else stage.run()
    found = sorted((each["k"], each["i"], each["x"]) for each in stage.records("numbered"))
    rows = [row for batch in fed for row in batch]
    assert found == [
        (k, number + 1, x)
        for k in "abc"
        for number, x in enumerate(row["n"] + half for row in rows if row["k"] == k for half in (0, 0.5))
    ]


MOVED = """
steps:
  few: {sql: "select id, at from orders where k = 'a'"}
  counted: {from: few, aggregate: {n: count(*)}, window: {column: at, size: 1 minute}}
  settled: {from: payments, join: {stream: orders, on: [id], within: 1 minute, how: left}}
sinks:
  counted: {from: counted, topic: counted, value: [n]}
  settled: {from: settled, topic: settled, value: [id, n]}
"""


@pytest.mark.more
def test_rows_that_a_step_removes_move_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """Also rows without the key of a join. The last order is late."""
    stage = FolderStage(spark, tmp_path, f"{SOURCES}\n{MOVED}")
    stage.feed(
        orders=[order(1, "a", 1, 0), {"k": "b", "at": at(300)}],
        payments=[{"id": 2, "paid_at": at(0)}, {"paid_at": at(300)}],
    )
    stage.feed(orders=[order(3, "b", 1, 301)], payments=[{"id": 3, "paid_at": at(301)}])
    stage.feed(orders=[order(4, "a", 1, 5)], payments=[{"id": 4, "paid_at": at(302)}])
    stage.run()
    assert stage.records("counted") == [{"n": 1}]
    assert {"id": 2, "n": None} in stage.records("settled")


SHOWN = """
steps:
  plain: {sql: "select id, k, to_json(struct(*)) as shown from orders"}
  chosen: {sql: "select id, to_json(struct(*)) as shown from orders where k in (select k from labels)"}
  counted: {from: plain, aggregate: {shown: "max(to_json(struct(*)))"}, by: [k]}
  seen: {from: plain, python: "seeing:names", schema: "shown STRING"}
sinks:
  plain: {from: plain, topic: plain, value: ["to_json(struct(*))"], format: text}
  chosen: {from: chosen, topic: chosen}
  counted: {from: counted, topic: counted, mode: update}
  seen: {from: seen, topic: seen}
"""
SEEING = """
from pyspark.sql import functions as F


def names(frame):
    return frame.select(F.lit(" ".join(frame.columns)).alias("shown"))
"""


@pytest.mark.more
def test_internal_columns_are_not_seen(spark: SparkSession, tmp_path: Path) -> None:
    """By a star in SQL, in an aggregate and in an expression of a sink, and by functions."""
    (tmp_path / "seeing.py").write_text(SEEING)
    stage = staged(spark, tmp_path, SHOWN, "batch")
    stage.run_once()
    whole = {"id", "k", "n", "at", *RECORD_NAMES} - {"_key"}  # which is null
    assert {name: json.loads(stage.records(name)[0]["shown"]).keys() for name in ("plain", "chosen", "counted")} == {
        "plain": whole,
        "chosen": whole,
        "counted": {"id", "k", "shown"},
    }
    assert {each["shown"] for each in stage.records("seen")} == {"id k shown"}
