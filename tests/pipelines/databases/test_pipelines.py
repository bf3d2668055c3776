"""Pipelines that read from databases and write to them, on a real broker."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.query_tables import table_names
from odradek.pipelines.spark.querying import answer_by_database
from odradek.pipelines.spark.reading.jdbc import DRIVERS
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.jars import JarsMissing, driver_jar
from odradek.pipelines.spark.writing.warehouse import warehouse
from tests.pipelines.spark.stage import Stage, renamed

if TYPE_CHECKING:
    from tests.pipelines.databases.server import Server

pytestmark = pytest.mark.spark

DEFINITION = """
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT, pump BIGINT, at TIMESTAMP, price DECIMAL(20, 4), meter STRUCT<unit: STRING, zero: DOUBLE>"
    watermark: {column: at, delay: 10 seconds}
  pumps: {jdbc: {url: "%(jdbc)s", table: pumps}}
  fields: {jdbc: {url: "jdbc:sqlite:fields.db", query: "select pump, field from fields where pump < 10"}}
steps:
  named: {sql: select * from readings left join pumps using (pump)}
  placed: {sql: select * from named left join fields using (pump)}
sinks:
  rows: {from: placed, table: rows, key: [id], order_by: at}
views:
  last: {from: placed, key: [pump], order_by: at}
  totals: {from: readings, by: [pump], aggregate: {events: count(*), whole: sum(price)}}
"""


@pytest.fixture(autouse=True)
def _drivers() -> None:
    try:
        for each in DRIVERS.values():
            driver_jar(each.jar)
    except JarsMissing as error:
        pytest.skip(str(error))


def reading(number: int, pump: int, second: int, price: str) -> bytes:
    record = {"id": number, "pump": pump, "at": f"2026-01-01T12:00:{second:02}Z", "meter": {"unit": "bar", "zero": 0.5}}
    return json.dumps(record).replace("}}", f'}}, "price": {price}}}').encode()


@pytest.mark.soak
def test_tables_are_joined_and_views_kept(stage: Stage, postgres: Server, database: str) -> None:
    postgres.execute("create table pumps (pump bigint, name text, since timestamptz)", database)
    postgres.execute("insert into pumps values (1, 'Ada', '2020-01-01 00:00:00+00')", database)
    with sqlite3.connect(stage.folder / "fields.db") as connection:
        connection.execute("create table fields (pump bigint, field text)")
        connection.execute("insert into fields values (1, 'north'), (2, 'south'), (11, 'east')")
    connection.close()
    stage.create("in", 1)
    text = DEFINITION % {"jdbc": postgres.jdbc_url(database)}
    url = postgres.url(database)
    pipeline = renamed(stage.pipeline(f"warehouse: sqlite:///w.db\n{text}"), warehouse=url)
    stage.produce("in", [reading(1, 1, 0, "1.0001"), reading(2, 2, 1, "12345678901234.5678")])
    stage.run(pipeline)
    stage.produce("in", [reading(3, 1, 2, "2"), reading(4, 1, 1, "3"), reading(1, 1, 0, "9")])
    stage.run(pipeline)
    rows = postgres.execute("select id, name, field, price::text, meter from rows order by id", database)
    meter = '{"unit":"bar","zero":0.5}'
    assert rows == [
        (1, "Ada", "north", "9.0000", meter),
        (2, None, "south", "12345678901234.5678", meter),
        (3, "Ada", "north", "2.0000", meter),
        (4, "Ada", "north", "3.0000", meter),
    ]
    assert postgres.execute("select pump, id from last order by 1", database) == [(1, 3), (2, 2)]
    totals = "select pump, events, whole::text from totals order by 1"
    assert postgres.execute(totals, database) == [(1, 4, "15.0001"), (2, 1, "12345678901234.5678")]
    check_queries(stage, url)
    warehouse(url).engine.dispose()


def check_queries(stage: Stage, url: str) -> None:
    """Checks that queries return the same tables."""
    assert sorted(table_names(url)) == ["last", "pumps", "rows", "totals"]
    found = answer_by_database("select id, cast(price as varchar) as price from rows order by id", url)
    assert [row["price"] for row in found.rows][:2] == ["9.0000", "12345678901234.5678"]


def test_a_database_that_cannot_be_read_is_reported_with_its_source(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [reading(1, 1, 0, "1")])
    text = DEFINITION % {"jdbc": "jdbc:postgresql://127.0.0.1:1/d"}
    pipeline = stage.pipeline(f"warehouse: sqlite:///w.db\n{text}")
    with pytest.raises(
        PipelineError, match=r"pipeline.yml:\d+:\d+: source 'pumps': .*Connection to 127.0.0.1:1 refused"
    ):
        stage.run_once(pipeline)
