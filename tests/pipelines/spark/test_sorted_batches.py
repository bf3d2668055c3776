"""`deduplicate` keeps the first rows to arrive also in several shuffle partitions, and where rows were mixed."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.operations import Deduplication
from odradek.pipelines.definition.vocabulary import Duration, SinkMode
from odradek.pipelines.spark import deduplication
from odradek.pipelines.spark.deduplication import deduplicate
from odradek.pipelines.spark.engines import standard
from odradek.pipelines.spark.engines.settings import SHUFFLE_PARTITIONS, UNCHECKED
from odradek.pipelines.spark.sessions import private_names
from odradek.pipelines.spark.sessions.private_names import NAMES, OPERATORS
from odradek.pipelines.spark.sorted_batches import sorting_settings
from tests.pipelines.spark.file_batches import give_files, seconds_after_noon

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
warehouse: sqlite:///w.db
sources:
  readings:
    files: {path: in, format: json, options: {maxFilesPerTrigger: 1}}
    stream: true
    schema: "id BIGINT, at TIMESTAMP, x BIGINT"
    watermark: {column: at, delay: 1 hour}
steps: {once: {from: readings, deduplicate: {key: [id], within: 1 minute}}}
sinks: {once: {from: once, table: once}}
"""
OPERATION = Deduplication("", ("id",), Duration(60_000))
MIXED = """
warehouse: sqlite:///w.db
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT, at TIMESTAMP, x BIGINT, other BIGINT"
    watermark: {column: at, delay: 1 hour}
steps:
  halves:
    sql: select id, at, x from readings where x % 2 = 1 union all select id, at, x from readings where x % 2 = 0
  others: {from: readings, deduplicate: {key: [other], within: 1 minute}}
  listed: {sql: "select id, at, x from readings where x in (select id from range(1000))"}
  once: {from: INPUT, deduplicate: {key: [id]WITHIN}}
sinks: {once: {from: once, table: once}}
"""


@pytest.fixture
def divided(spark: SparkSession) -> SparkSession:
    """A session with several shuffle partitions."""
    session = spark.newSession()
    session.conf.set(SHUFFLE_PARTITIONS, "3")
    return session


def drawn(count: int) -> list[dict[str, Any]]:
    draw = random.Random(5)
    times = [seconds_after_noon(draw.randrange(400)) for _ in range(count)]
    return [{"id": draw.randrange(30), "at": at, "x": number} for number, at in enumerate(times)]


def rows_of(folder: Path) -> list[int]:
    with sqlite3.connect(folder / "w.db") as connection:
        found = [x for (x,) in connection.execute("select x from once order by x")]
        connection.execute("delete from once")
    return found


def test_a_stream_keeps_the_rows_of_a_batch(stage: Stage, divided: SparkSession) -> None:
    stage = replace(stage, spark=divided)
    rows = drawn(450)
    give_files(stage.folder / "in", [rows[:150], rows[150:300], rows[300:]])
    stage.run(stage.pipeline(DEFINITION))
    streamed = rows_of(stage.folder)
    stage.run_once(stage.pipeline(DEFINITION))
    assert streamed == rows_of(stage.folder)


@pytest.mark.parametrize(
    ("read", "within"), [("halves", ""), ("halves", ", within: 1 minute"), ("others", ""), ("listed", "")]
)
def test_a_stream_keeps_the_rows_of_a_batch_where_rows_were_mixed(
    stage: Stage, divided: SparkSession, read: str, within: str
) -> None:
    """Behind a union, another deduplication and a join that is written as IN: rows are in the order of records."""
    stage = replace(stage, spark=divided)
    divided.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")  # joins divide the rows by their keys
    stage.create("in", 1)
    stage.produce("in", [{**row, "other": row["x"] * 7 % 200} for row in drawn(450)])
    pipeline = stage.pipeline(MIXED.replace("INPUT", read).replace("WITHIN", within))
    stage.run(pipeline)
    streamed = rows_of(stage.folder)
    stage.run_once(pipeline)
    assert streamed == rows_of(stage.folder)


def test_a_checkpoint_of_batches_that_were_not_sorted_continues(
    stage: Stage, divided: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = replace(stage, spark=divided)
    rows = [{"id": number, "at": seconds_after_noon(10), "x": number} for number in range(40)]
    give_files(stage.folder / "in", [rows])
    with monkeypatch.context() as patched:
        patched.setattr(deduplication, "has_several_partitions", lambda _session: False)
        stage.run(stage.pipeline(DEFINITION))
    (stage.folder / "in" / "1.json").write_text((stage.folder / "in" / "0.json").read_text())
    stage.run(stage.pipeline(DEFINITION))
    assert rows_of(stage.folder) == list(range(40))


def stream_of_types(session: SparkSession) -> DataFrame:
    columns = ("value as id", "timestamp as at", "parse_json('1') as v", "interval '1' month as i", "'abc' as c")
    stream = session.readStream.format("rate").load().selectExpr(*columns).withWatermark("at", "1 minute")
    return stream.withMetadata("c", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})


def test_columns_keep_their_types_and_their_metadata(spark: SparkSession, divided: SparkSession) -> None:
    frames = [deduplicate(stream_of_types(session), OPERATION, "at") for session in (spark, divided)]
    assert frames[0].schema.jsonValue() == frames[1].schema.jsonValue()


def test_spark_checks_the_other_operators_of_a_query(stage: Stage, divided: SparkSession) -> None:
    pipeline = stage.pipeline(DEFINITION)
    names = build_graph(pipeline).upstream("once")

    def once(session: SparkSession) -> DataFrame:
        return deduplicate(stream_of_types(session), OPERATION, "at")

    def settings(session: SparkSession, mode: SinkMode, build: Callable[[], DataFrame]) -> Mapping[str, str]:
        return sorting_settings(session, pipeline, names, mode, build(), build)

    assert settings(divided, SinkMode.APPEND, lambda: once(divided)) == UNCHECKED
    assert settings(stage.spark, SinkMode.APPEND, lambda: once(stage.spark)) == {}
    with pytest.raises(AnalysisException, match="without watermark"):
        settings(divided, SinkMode.APPEND, lambda: once(divided).groupBy("id").count())
    with pytest.raises(AnalysisException, match="imit"):
        settings(divided, SinkMode.UPDATE, lambda: once(divided).limit(3))


def test_a_query_is_compiled_once_more_only_if_it_sorts(
    stage: Stage, divided: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_files(stage.folder / "in", [[{"id": 1, "at": seconds_after_noon(10), "x": 1}]])
    compiling, compiled = standard.stream_of, []

    def counted(*given: Any, **named: Any) -> DataFrame:
        compiled.append(given)
        return compiling(*given, **named)

    monkeypatch.setattr(standard, "stream_of", counted)
    stage.run(stage.pipeline(DEFINITION))
    assert len(compiled) == 1
    replace(stage, spark=divided).run(stage.pipeline(DEFINITION))
    assert len(compiled) == 1 + 2


def test_without_a_name_of_the_check_such_a_query_is_not_checked(
    stage: Stage, divided: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(private_names, "_warned", set())
    monkeypatch.setitem(NAMES, "operator check", replace(NAMES["operator check"], path="odradek.Missing.check"))
    pipeline = stage.pipeline(DEFINITION)
    once = deduplicate(stream_of_types(divided), OPERATION, "at")
    assert sorting_settings(divided, pipeline, ["once"], SinkMode.APPEND, once, lambda: once) == UNCHECKED
    assert OPERATORS.fallback in caplog.text
