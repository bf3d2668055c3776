"""Sessions and windows over them have the rows of a batch; windows are written in SQL as Spark's users write them.

The source is a folder of files, of which each is one micro-batch. The expected rows are computed in Python.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import Step
from odradek.pipelines.definition.operations import Aggregation, PythonFunction, Sql, Window
from odradek.pipelines.definition.references import NamedExpression, PythonReference
from odradek.pipelines.definition.vocabulary import Duration, SinkMode
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.session_plans import uses_sessions
from odradek.pipelines.spark.steps import StepBroken, run_step
from tests.pipelines.definition.definitions import sound
from tests.pipelines.spark.file_batches import NOON, give_files, seconds_after_noon

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.operations import Operation
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

GAP_S, DELAY_S = 30, 40
PIPELINE = f"""
warehouse: sqlite:///w.db
sources:
  views:
    files: {{path: views, format: json, options: {{maxFilesPerTrigger: 1}}}}
    stream: true
    schema: "user BIGINT, at TIMESTAMP"
    watermark: {{column: at, delay: {DELAY_S} seconds}}
steps:
  sessions: {{from: views, by: [user], window: {{column: at, gap: {GAP_S} s}}, aggregate: {{n: count(*)}}}}
  minutes: {{from: sessions, window: {{column: window_end, size: 1 minute}}, aggregate: {{n: count(*), rows: sum(n)}}}}
  by_sql:
    sql: |
      select user, session_window.start as window_start, session_window.end as window_end, count(*) as n
      from views group by user, session_window(at, '{GAP_S} seconds')
  over_sql:
    sql: |
      select window.end as window_end, count(*) as n, sum(n) as rows
      from by_sql group by window(window_end, '1 minute')
  tumbling:
    sql: select window.start as window_start, window.end, count(*) as n from views group by window(at, '10 seconds')
"""
ENDS = """
sinks:
  sessions: {from: sessions, table: sessions}
  minutes: {from: minutes, table: minutes}
  by_sql: {from: by_sql, table: by_sql, key: [user, window_start]}
  over_sql: {from: over_sql, table: over_sql}
  tumbling: {from: tumbling, table: tumbling}
views:
  last: {from: sessions, key: [user], order_by: window_end}
"""
OVER_SESSIONS = "sinks: {over_sql: {from: over_sql, table: over_sql}}\n"


def drawn(seed: random.Random, batches: int) -> list[list[tuple[int, float]]]:
    """Views of a few users out of order, none of them late."""
    return [
        [(seed.choice((1, 2, 3)), batch * 60 + seed.uniform(-DELAY_S / 2, DELAY_S / 2 - 1)) for _ in range(8)]
        for batch in range(batches)
    ]


def sessions_of(rows: list[tuple[int, float]]) -> set[tuple[int, str, str, int]]:
    """User, start, end and number of views of each session."""
    found: list[tuple[int, float, float, int]] = []
    for user, at in sorted(rows):
        if found and found[-1][0] == user and at <= found[-1][2]:
            _, start, _, count = found.pop()
            found.append((user, start, at + GAP_S, count + 1))
        else:
            found.append((user, at, at + GAP_S, 1))
    return {(user, shown(start), shown(end), count) for user, start, end, count in found}


def shown(seconds: float) -> str:
    """A time as SQLite has it."""
    return (NOON + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S.%f")


def read(stage: Stage, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(stage.folder / "w.db") as connection:
        return connection.execute(query).fetchall()


def run(stage: Stage, ends: str) -> list[tuple[int, float]]:
    """Runs the steps that lead to these ends, and returns the rows that it was given."""
    batches = drawn(random.Random(5), 3)
    batches[1] += [(4, 60.0), (4, 60.0 + GAP_S), (5, 60.0), (5, 60.001 + GAP_S)]  # the gap exactly, and a little more
    last = [[(99, 1000.0 * n)] for n in (1, 2, 3)]  # advance the watermark past all rows
    objects = [[{"user": user, "at": seconds_after_noon(at)} for user, at in batch] for batch in batches + last]
    give_files(stage.folder / "views", objects)
    stage.run(stage.pipeline(PIPELINE + ends))
    return [row for batch in batches for row in batch]


def per_minute(sessions: set[tuple[int, str, str, int]]) -> dict[str, tuple[int, int]]:
    """The number of sessions that ended in each minute, and of their views."""
    counts = Counter(end[:16] for _, _, end, _ in sessions)
    views = Counter(dict.fromkeys(counts, 0))
    for _, _, end, count in sessions:
        views[end[:16]] += count
    return {minute: (counts[minute], views[minute]) for minute in counts}


def check_windows_over_sessions(stage: Stage, sessions: set[tuple[int, str, str, int]]) -> None:
    over = read(stage, "select n, rows from over_sql where window_end < '2026-01-01 12:15'")
    assert sorted(over) == sorted(per_minute(sessions).values())


def test_windows_over_sessions_count_each_session_once(stage: Stage) -> None:
    rows = run(stage, OVER_SESSIONS)
    check_windows_over_sessions(stage, sessions_of(rows))


@pytest.mark.soak
def test_a_stream_and_a_batch_have_the_same_sessions(stage: Stage) -> None:
    rows = run(stage, ENDS)
    expected = sessions_of(rows)
    for table in ("sessions", "by_sql"):
        found = read(stage, f"select user, window_start, window_end, n from {table} where user < 90")
        assert len(found) == len(expected), table
        assert set(found) == expected, table
    last = {user: max(end for other, _, end, _ in expected if other == user) for user in (1, 2, 3, 4, 5)}
    assert dict(read(stage, "select user, window_end from last where user < 90")) == last
    minutes = read(stage, "select window_start, n, rows from minutes where window_start < '2026-01-01 12:15'")
    assert {start[:16]: (n, total) for start, n, total in minutes} == per_minute(expected)
    check_windows_over_sessions(stage, expected)
    tens = read(stage, "select n from tumbling where window_start < '2026-01-01 12:15'")
    assert sum(n for (n,) in tens) == len(rows)


BY_GAP = Aggregation("a", (NamedExpression("n", "count(*)"),), ("user",), Window("at", gap=Duration(30_000)))
BY_SQL = Sql(
    "select session_window.start as window_start, session_window.end as window_end, user, count(*) as n from a "
    "group by user, session_window(at, '30 seconds')"
)


@pytest.mark.parametrize("operation", [BY_GAP, BY_SQL])
def test_filters_and_sums_of_sessions_are_of_merged_ones(spark: SparkSession, operation: Operation) -> None:
    """Spark's optimizer would move them to the rows of a session."""
    rows = spark.createDataFrame([(1, 0), (1, 20), (1, 90)], "user BIGINT, s BIGINT")
    frame = rows.selectExpr("user", "timestamp_seconds(s) as at").repartition(3, "at")
    sessions = run_step(spark, Step("s", operation), {"a": frame}, SinkMode.APPEND, ".")
    long = sessions.where("window_end - window_start > interval 30 seconds").select("n").collect()
    early = sessions.where("window_start < timestamp_seconds(10)").select("n").collect()
    assert [row[0] for row in (*long, *early)] == [2, 2]
    sums = sessions.groupBy("window_end").agg({"n": "sum"}).selectExpr("unix_seconds(window_end)", "`sum(n)`").collect()
    assert sorted(map(tuple, sums)) == [(50, 2), (120, 1)]


@pytest.mark.parametrize("operation", [BY_GAP, BY_SQL])
def test_sessions_of_a_stream_have_one_filter_barrier(spark: SparkSession, operation: Operation) -> None:
    source = sound("pipeline: p\nsources: {a: {topic: a, schema: user BIGINT}}\nsinks: {o: {from: a, console: true}}\n")
    pipeline = replace(source, steps=(Step("s", operation),))
    rows = spark.readStream.format("rate").load().selectExpr("value as user", "timestamp as at")
    tables = Tables(spark, pipeline, build_graph(pipeline), lambda _source: rows)
    tables.give_rows("a", rows)
    assert tables.rows("s")._jdf.queryExecution().analyzed().toString().count("SPARK_PARTITION_ID") == 1


def sessions_of_users(frame: DataFrame) -> DataFrame:
    sessions = frame.groupBy("user", F.session_window("at", "30 seconds").alias("w")).agg(F.count("*").alias("n"))
    return sessions.select("user", F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end"), "n")


def long_sessions(frame: DataFrame) -> DataFrame:
    return sessions_of_users(frame).where("window_end - window_start > interval 30 seconds")


def sums_by_end(frame: DataFrame) -> DataFrame:
    return sessions_of_users(frame).groupBy("window_end").agg(F.sum("n"))


def many_views(frame: DataFrame) -> DataFrame:
    return sessions_of_users(frame).where("n > 1")


def function_step(function: Callable[[DataFrame], DataFrame]) -> Step:
    return Step("s", PythonFunction(("a",), PythonReference(__name__, function.__name__)))


def three_views(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([(1, 0), (1, 20), (1, 90)], "user BIGINT, s BIGINT")
    return rows.selectExpr("user", "timestamp_seconds(s) as at").repartition(3, "at")


@pytest.mark.parametrize("function", [long_sessions, sums_by_end])
def test_a_function_that_filters_or_groups_its_own_sessions_is_refused(
    spark: SparkSession, function: Callable[[DataFrame], DataFrame]
) -> None:
    streamed = spark.readStream.format("rate").load().selectExpr("value as user", "timestamp as at")
    for frame in (three_views(spark), streamed):
        with pytest.raises(StepBroken, match="in the function that makes them"):
            run_step(spark, function_step(function), {"a": frame}, SinkMode.APPEND, ".")


def test_filters_behind_a_function_with_sessions_are_of_merged_ones(spark: SparkSession) -> None:
    for function in (sessions_of_users, many_views):
        made = run_step(spark, function_step(function), {"a": three_views(spark)}, SinkMode.APPEND, ".")
        long = Sql("select n from s where window_end - window_start > interval 30 seconds")
        found = run_step(spark, Step("l", long), {"s": made}, SinkMode.APPEND, ".").collect()
        assert [row[0] for row in found] == [2]
    made = run_step(spark, Step("s", BY_GAP), {"a": three_views(spark)}, SinkMode.APPEND, ".")
    assert not uses_sessions(made.where("window_end > timestamp_seconds(60)"))
