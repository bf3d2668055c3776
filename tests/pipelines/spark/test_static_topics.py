"""Streams that are joined with topics with `stream: false`: rows have the origin of the stream's record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, is_divided
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.writing.databases import reading
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

SOURCES_AND_STEPS = """
sources:
  rows: {topic: "@in", schema: "id BIGINT, product BIGINT"}
  products: {topic: "@products", schema: "product BIGINT, name STRING", stream: false}
steps:
  known: {sql: "select product, name from products"}
  direct: {sql: "select r.id, p.name from rows r join products p on r.product = p.product"}
  through: {sql: "select r.id, k.name from rows r join known k on r.product = k.product"}
  chosen: {sql: "select id, product from rows where product in (select product from products)"}
  step: {from: rows, join: {table: known, on: [product]}}
"""
PRODUCTS = [{"product": number, "name": f"p{number}"} for number in range(20)]
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


def record(topic: str, offset: int, value: dict[str, Any]) -> tuple[Any, ...]:
    return (None, json.dumps(value).encode(), topic, 0, offset, None, 0, [])


def test_the_origin_is_that_of_the_stream(spark: SparkSession) -> None:
    definition = SOURCES_AND_STEPS.replace("@", "")
    pipeline = sound(f"pipeline: p\n{definition}sinks: {{o: {{from: direct, topic: o}}}}\n")
    records = {
        "rows": [record("in", 7, {"id": 1, "product": 3})],
        "products": [record("products", at, each) for at, each in enumerate(PRODUCTS)],
    }

    def load(source: Source) -> DataFrame:
        return spark.createDataFrame(records[source.name], RECORD_DDL)

    tables = Tables(spark, pipeline, build_graph(pipeline), load)
    for name in ("direct", "through", "chosen", "step"):
        assert has_origin(tables.rows(name)), name
        assert [tuple(row) for row in tables.rows(name).select(f"{ORIGIN}.topic", f"{ORIGIN}.offset").collect()] == [
            ("in", 7)
        ]
    assert has_origin(tables.rows("known"))
    divided = {name: is_divided(tables.rows(name)) for name in ("direct", "through", "chosen", "step")}
    assert divided == {"direct": False, "through": False, "chosen": False, "step": True}  # as in earlier releases


@pytest.mark.soak
def test_the_row_that_arrived_last_is_kept_behind_a_join_with_a_topic(stage: Stage) -> None:
    for name in ("in", "products"):
        stage.create(name)
    stage.produce("products", PRODUCTS)
    stage.produce("in", [{"id": number % 4, "product": 19 - number} for number in range(20)])
    ends = "".join(f"  {name}: {{from: {name}, table: {name}, key: [id]}}\n" for name in ("direct", "through"))
    pipeline = stage.pipeline(f"warehouse: sqlite:///w.db\n{SOURCES_AND_STEPS}sinks:\n{ends}")
    before = stage.spark.conf.get(BROADCAST)
    assert before is not None
    stage.spark.conf.set(BROADCAST, "-1")  # a join that shuffles does not keep the order of rows
    try:
        stage.run(pipeline)
    finally:
        stage.spark.conf.set(BROADCAST, before)
    for table in ("direct", "through"):
        with reading(f"sqlite:///{stage.folder / 'w.db'}") as connection:
            found = sorted(tuple(row) for row in connection.execute(sa.text(f"select id, name from {table}")))
        assert found == [(0, "p3"), (1, "p2"), (2, "p1"), (3, "p0")], table
