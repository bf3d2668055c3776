"""What the ends of a batch write: whatever the cut into batches, tables have what one batch of all rows gives."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from odradek.pipelines.definition.model import ConsoleTarget, Pipeline
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.plan import End, OutputMode
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.spark.computing.fan_out import FanOut
from odradek.pipelines.spark.computing.keyed_rows import SHUFFLE_PARTITIONS
from odradek.pipelines.spark.computing.row_program import row_program, write_program
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.writing.batches import outputs_of, rows_of, write_rows
from odradek.pipelines.spark.writing.lakehouse import upsert_merge
from odradek.pipelines.spark.writing.latest_rows import latest
from odradek.pipelines.spark.writing.stored_values import as_stored
from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, warehouse
from tests.pipelines.definition.definitions import define
from tests.pipelines.spark.computing.streams import stream_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.computing.row_program import Records
    from odradek.pipelines.spark.frames import RowsByName

pytestmark = pytest.mark.spark

HEAD = """
pipeline: p
bootstrap_servers: nowhere:1
dead_letters: letters
warehouse: sqlite:///w.db
sources:
  events:
    topic: events
    schema: "k STRING, n BIGINT, d DOUBLE, at TIMESTAMP, m MAP<STRING, BIGINT>"
  timed: {topic: timed, schema: "k STRING, n BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
"""


@dataclass
class Written:
    """Writes the outputs of batches to the tables of a folder, and keeps the records."""

    plan: Plan
    flow: Flow
    number: int = 0
    letters: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, tables: RowsByName, records: Records, rows: Counter[str]) -> None:
        stamp = BatchNumber("q", self.number)
        for write in outputs_of(self.plan, self.flow, tables, (), stamp, None, rows):
            write()
        for _, frame in records:
            for row in frame.where("topic = 'letters'").collect():
                headers = {each.key: each.value.decode() for each in row.headers}
                self.letters.append((headers["odradek-step"], headers["odradek-reason"]))
        self.number += 1


def plan_of(folder: Path, text: str) -> Plan:
    pipeline, problems = define(HEAD.replace("w.db", f"/{folder}/w.db") + text).pipeline, Problems()
    assert pipeline is not None
    plan = checked_plan(pipeline, problems)
    assert not problems.errors, str(problems.errors[0])
    return plan


def stored(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder / "w.db") as connection:
        return connection.execute(query).fetchall()


def write_records(spark: SparkSession, plan: Plan, batches: Sequence[Sequence[dict[str, Any]]]) -> Written:
    """Writes batches of records of the source by the row program of the only flow."""
    (flow,) = plan.flows
    written, offsets = Written(plan, flow), itertools.count()
    for records in batches:
        values = [json.dumps(each).encode() for each in records]
        rows = [(None, value, "events", 0, next(offsets), None, 0, None) for value in values]
        program = row_program(plan, flow, spark.createDataFrame(rows, RECORD_DDL).coalesce(1))
        write_program(program, flow, program.observed(), written)
    return written


ROWS = [
    {"n": 0, "d": 5.0, "m": {"z": 9}},
    {"n": 1, "d": 2.0, "m": {"b": 1, "a": 2}},
    {"n": 1, "d": "NaN", "m": {"z": 9}},
    {"n": 1, "d": 2.0, "m": {"a": 2, "b": 2}},
]
ORDERS = {f"k{number}": order for number, order in enumerate(itertools.permutations(ROWS))}


def test_a_keyed_table_has_one_row_whatever_the_order_of_arrival(spark: SparkSession, tmp_path: Path) -> None:
    """The greatest n, then the greatest other columns: NaN is null, maps are compared by their sorted entries. Each key
    has the rows in another order, of which one is in each batch; then all are in one."""
    plan = plan_of(
        tmp_path,
        """
sinks:
  latest: {from: events, table: latest, key: k, order_by: [n]}
  last: {from: events, table: last, key: k}
""",
    )
    cut = [[{"k": key, **order[number]} for key, order in ORDERS.items()] for number in range(len(ROWS))]
    for batches in (cut, [list(itertools.chain(*cut))]):
        write_records(spark, plan, batches)
        assert set(stored(tmp_path, "select n, d, m from latest")) == {(1, 2.0, '{"a":2,"b":2}')}
        last = {key: (order[-1]["n"], order[-1]["m"]) for key, order in ORDERS.items()}
        found = {key: (n, json.loads(m)) for key, n, m in stored(tmp_path, "select k, n, m from last")}
        assert found == last
        (tmp_path / "w.db").unlink()
        warehouse.cache_clear()


def test_rows_that_a_table_cannot_store_are_dead_letters_of_their_end(spark: SparkSession, tmp_path: Path) -> None:
    """A null in the key, and a time beyond the year 9999; -0.0 is written as 0.0."""
    plan = plan_of(
        tmp_path,
        """
steps: {dated: {sql: "select k, d, timestamp_micros(n) as at from events"}}
sinks:
  dated: {from: dated, table: dated}
  keyed: {from: dated, table: keyed, key: k}
  changed: {from: dated, table: changed, changes: {key: k, sequence: at, deletes: "cast(k as int) = 1"}}
""",
    )
    last = 253402300799999999
    values = [("1", last), ("2", last + 1), (None, 0), ("3", -62135596800000000), ("x", 0)]
    written = write_records(spark, plan, [[{"k": k, "n": n, "d": -0.0} for k, n in values]])
    times = {("1", "9999-12-31 23:59:59.999999"), ("3", "0001-01-01 00:00:00.000000")}
    epoch = "1970-01-01 00:00:00.000000"
    assert set(stored(tmp_path, "select k, at from dated")) == {*times, (None, epoch), ("x", epoch)}
    assert set(stored(tmp_path, "select k, at from keyed")) == {*times, ("x", epoch)}
    assert set(stored(tmp_path, "select k, at from changed")) == {("3", "0001-01-01 00:00:00.000000")}
    assert stored(tmp_path, "select distinct d || '' from dated") == [("0.0",)]
    refused = Counter(step for step, reason in written.letters if reason.startswith("cannot be stored: "))
    assert refused == {"dated": 1, "keyed": 2, "changed": 3}


def group_rows(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    ddl = "ended TIMESTAMP, k STRING, c BIGINT, last BIGINT, __passes BOOLEAN"
    edges = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(9)]
    windows = [(edges[at + 1], k, c, last, passes) for at, k, c, last, passes in rows]
    return spark.createDataFrame(windows, ddl).coalesce(1)


FLAT = "select ended as until, k as who, c, last from few"


@pytest.mark.more(but="True-where c < 8")
@pytest.mark.parametrize("behind", ["where c < 8", "lateral view explode(filter(array(1, 2), i -> c < 8)) t as i"])
@pytest.mark.parametrize("is_program", [True, False])
def test_groups_that_are_not_written_any_more_are_deleted(
    spark: SparkSession, tmp_path: Path, behind: str, is_program: bool
) -> None:
    """By HAVING, by a step behind the groups, and because a value cannot be stored any more."""
    plan = plan_of(
        tmp_path,
        f"""
steps:
  few:
    sql: >
      select window.end as ended, k, count(*) as c, max(n) as last from timed
      group by window(at, '1 minute'), k having c >= 2
  flat: {{sql: "{FLAT} {behind}"}}
  dated: {{sql: "select *, timestamp_micros(last) as at from flat"}}
sinks: {{few: {{from: dated, table: few, key: [until, who], order_by: last}}}}
""",
    )
    (flow,) = [each for each in plan.flows if each.ends]
    assert flow.mode is OutputMode.UPDATE
    written, too_late = Written(plan, flow), 253402300800000000
    batches: list[list[tuple[Any, ...]]] = [
        [(0, "a", 2, 0, True), (0, "b", 3, 0, True), (1, "a", 1, 0, False), (1, "b", 4, 0, True), (2, "a", 2, 0, True)],
        [(0, "a", 8, 0, True), (1, "b", 5, -1, True), (2, "a", 3, too_late, True), (3, None, 3, 0, True)],
    ]
    for number, rows in enumerate(batches):
        batch = group_rows(spark, *rows)
        if is_program:
            program = row_program(plan, flow, batch)
            write_program(program, flow, program.observed(), written)
        else:
            FanOut(plan, flow, lambda session, _source: session.range(0))(batch, number, written)
    found = stored(tmp_path, "select until, who, c from few order by until")
    assert [(until[14:16], who, n) for until, who, n in found] == [("01", "b", 3), ("02", "b", 5)]
    assert {step for step, _ in written.letters} == {"few"}


def test_a_view_of_all_rows_has_one_row(spark: SparkSession, tmp_path: Path) -> None:
    text = "views: {total: {from: events, aggregate: {n: count(*), at: timestamp_micros(max(n))}}}"
    plan = plan_of(tmp_path, text)
    (flow,) = [each for each in plan.flows if each.ends]
    written = Written(plan, flow)
    for number, last in ((1, 7), (2, 8), (3, 253402300800000000)):
        batch = spark.sql(f"select {number}L as n, timestamp_micros({last}) as at")
        program = row_program(plan, flow, batch)
        write_program(program, flow, program.observed(), written)
        assert [row[0] for row in stored(tmp_path, "select n from total")] == ([number] if number < 3 else [])


@pytest.mark.more(but="DECIMAL(20, 4)-values1")
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BOOLEAN", ["false", "true"]),
        ("DECIMAL(20, 4)", ["-1.5", "1", "1234567890123456.7891"]),
        ("STRING", ["''", "'B'", "'a'", "'é'", "'\U0001f600'"]),
        ("BINARY", ["x''", "x'00'", "x'ff'"]),
        ("DATE", ["date'0001-01-01'", "date'9999-12-31'"]),
        ("TIMESTAMP_NTZ", ["timestamp_ntz'0001-01-01 00:00:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"]),
        (
            "STRUCT<a: MAP<STRING, BIGINT>>",
            ["named_struct('a', map('b', 1, 'a', 2))", "named_struct('a', map('b', 9))"],
        ),
    ],
)
def test_the_greatest_value_of_any_type_is_kept(
    spark: SparkSession, tmp_path: Path, kind: str, values: list[str]
) -> None:
    """Null is the least. Of two batches that Spark compares, the database keeps the greater row."""
    ordered, url = ["null", *values], f"sqlite:///{tmp_path / 'w.db'}"
    for number, batch in enumerate((ordered[-2:], ordered[:-1], ordered[:1])):
        made = " union all ".join(f"select 1 as k, cast({value} as {kind}) as v" for value in batch)
        rows, schema = as_stored(spark.sql(made), ["k", "v"], "sqlite")
        changed = TableChange("t", schema, rows_of(latest(rows, ["k"], ["v"])), ("k",), ("v",))
        warehouse(url).write(BatchNumber("q", number), [changed])
        assert len(stored(tmp_path, "select v from t")) == 1
    (kept,) = stored(tmp_path, "select v from t")
    last, schema = as_stored(spark.sql(f"select 2 as k, cast({values[-1]} as {kind}) as v"), ["k", "v"], "sqlite")
    warehouse(url).write(None, [TableChange("t", schema, rows_of(last), ("k",))])
    assert stored(tmp_path, "select v from t where k = 2") == [kept]


def test_the_console_reads_all_rows_of_a_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark fails a batch whose state is not read in all partitions."""
    session = spark.newSession()
    session.conf.set(SHUFFLE_PARTITIONS, "3")
    rows = [{"id": number, "at": "2026-01-01T12:00:00Z"} for number in range(60)]
    counts = stream_of(session, tmp_path / "rows", [rows], "id BIGINT, at TIMESTAMP", "at").groupBy("id").count()

    def write(batch: DataFrame, number: int) -> None:
        tables: Any = SimpleNamespace(of_end=lambda _end: batch)
        write_rows(Pipeline("p"), End("screen", "counts", ConsoleTarget()), tables, number)

    query = counts.writeStream.foreachBatch(write).outputMode("update").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    shown = capsys.readouterr().out
    assert "-- screen, batch 0" in shown
    assert "only showing top 20 rows" in shown


def test_the_merge_of_a_lakehouse_is_a_statement_of_spark(spark: SparkSession) -> None:
    """It is parsed, and refused because there is no such table."""
    for has_lost in (False, True):
        merge = upsert_merge("`no where`", "`arriving 1`", ["a b"], ["a b", "c"], has_lost=has_lost)
        assert merge.count("DELETE") == has_lost
        with pytest.raises(AnalysisException) as refused:
            spark.sql(merge)
        assert refused.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
