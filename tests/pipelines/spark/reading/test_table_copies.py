"""A table of a database is read once for a batch, and cached for a time with `refresh`."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import JdbcOrigin, Pipeline, Source
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.reading.table_copies import BatchSources
from odradek.pipelines.spark.sessions.jars import SQLITE, JarsMissing, driver_jar
from tests.pipelines.spark.file_batches import give_files

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _driver() -> None:
    try:
        driver_jar(SQLITE)
    except JarsMissing as error:
        pytest.skip(str(error))


def insert(file: Path, name: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("create table if not exists pumps (name text)")
        connection.execute("insert into pumps values (?)", (name,))


def read(session: SparkSession, file: Path, refresh: Duration | None) -> DataFrame:
    source = Source("pumps", JdbcOrigin(f"jdbc:sqlite:{file}", "pumps", refresh=refresh), is_stream=False)
    return read_once(session, source, Pipeline("p"), lambda _topic, _origin: 0)


def names(frame: DataFrame) -> list[str]:
    return sorted(row["name"] for row in frame.collect())


def test_a_table_is_read_again_only_after_its_time(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pumps.db"
    insert(file, "a")
    first = read(spark, file, Duration(3_600_000))
    assert names(first) == ["a"]
    insert(file, "b")
    assert names(read(spark, file, None)) == ["a", "b"]
    assert names(first) == ["a"]
    assert names(read(spark.newSession(), file, Duration(3_600_000))) == ["a"]  # sessions of queries share the copy


def test_batches_share_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that copied the table again would read it again, as it does here after the time of `refresh`."""
    file = tmp_path / "pumps.db"
    insert(file, "a")
    loads: list[Source] = []

    def batch(milliseconds: int) -> tuple[BatchSources, DataFrame]:
        session = spark.newSession()

        def load(source: Source) -> DataFrame:
            loads.append(source)
            return read_once(session, source, Pipeline("p"), lambda _topic, _origin: 0)

        sources = BatchSources(session, load)
        origin = JdbcOrigin(f"jdbc:sqlite:{file}", "pumps", refresh=Duration(milliseconds))
        return sources, sources.read(Source("pumps", origin, is_stream=False))

    first, rows = batch(3_600_000)
    assert names(rows) == ["a"]
    first.unpersist()
    insert(file, "b")
    second, rows = batch(3_600_000)
    assert (names(rows), len(loads)) == (["a"], 1)
    second.unpersist()
    short, rows = batch(1)
    assert names(rows) == ["a", "b"]
    time.sleep(0.002)  # a measured time: longer than `refresh`
    insert(file, "c")
    later, fresh = batch(1)
    assert (names(rows), names(fresh)) == (["a", "b"], ["a", "b", "c"])  # a batch keeps its copy
    short.unpersist()
    later.unpersist()


@pytest.mark.more
def test_queries_that_were_planned_before_get_the_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pumps.db"
    insert(file, "a")
    frame = read(spark, file, Duration(300))
    assert names(frame) == ["a"]
    insert(file, "b")
    give_up_at = time.monotonic() + PATIENCE_S
    while names(frame) != ["a", "b"]:
        assert time.monotonic() < give_up_at


def test_a_stream_joins_the_copy(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pumps.db"
    insert(file, "a")
    records = tmp_path / "records"
    records.mkdir()
    stream = spark.readStream.schema("name STRING, n INT").json(str(records))
    joined = stream.join(read(spark, file, Duration(3_600_000)), "name")

    def run_with(name: str) -> list[str]:
        (records / f"{name}.json").write_text(f'{{"name": "{name}", "n": 1}}\n')
        writer = joined.writeStream.format("json").trigger(availableNow=True).outputMode("append")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "out"))
        assert query.awaitTermination(int(PATIENCE_S))
        return names(spark.read.json(str(tmp_path / "out"), "name STRING, n INT"))

    assert run_with("a") == ["a"]
    insert(file, "b")
    assert run_with("b") == ["a"]  # the copy does not have it


CHANGING_SINK = """
import sqlite3
import time


def change(rows, _batch):
    rows.count()
    with sqlite3.connect(FILE) as connection:
        connection.execute("update customers set name = 'new' where id = 7")
        connection.execute("delete from customers where id = 8")
    time.sleep(0.5)  # a measured time: longer than `refresh`
"""
JOINED = """
    dead_letters: "@dead"
    sources:
      pay: {{files: {{path: in, format: json}}, stream: true, schema: "id BIGINT, amount BIGINT"}}
      customers: {{jdbc: {{url: "jdbc:sqlite:{file}", table: customers}}{refresh}}}
    steps:
      named:
        sql: select p.*, c.name from pay p left join customers c using (id)
        expect: {{known: {{check: name is not null, otherwise: quarantine}}}}
    sinks:
      changing: {{from: named, python: "changing:change"}}
      out: {{from: named, topic: "@out"}}
"""


@pytest.mark.more
@pytest.mark.parametrize(
    "refresh",
    [
        pytest.param("", id="each batch"),
        pytest.param(', refresh: "100 ms"', id="refresh", marks=pytest.mark.soak),
    ],
)
def test_all_jobs_of_a_batch_see_the_same_rows(stage: Stage, refresh: str) -> None:
    file = stage.folder / "customers.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table customers (id integer, name text)")
        connection.execute("insert into customers values (7, 'old'), (8, 'old')")
    (stage.folder / "changing.py").write_text(CHANGING_SINK.replace("FILE", repr(str(file))))
    give_files(stage.folder / "in", [[{"id": 7, "amount": 1}, {"id": 8, "amount": 2}]])
    stage.run(stage.pipeline(JOINED.format(file=file, refresh=refresh)))
    found = sorted((each.json["id"], each.json["name"]) for each in stage.read("out"))
    assert found == [(7, "old"), (8, "old")]
    assert stage.read("dead") == []
