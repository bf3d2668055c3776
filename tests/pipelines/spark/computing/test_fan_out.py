"""A batch as frames: what is counted, written and refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.plan import CANNOT_COMPUTE
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.spark.computing.fan_out import FanOut
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from collections import Counter

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.frames import RowsByName

pytestmark = pytest.mark.spark

DEFINITION = """
pipeline: p
bootstrap_servers: nowhere:1
dead_letters: letters
warehouse: sqlite:///w.db
sources:
  orders: {topic: orders, schema: "id BIGINT, customer STRING, amount BIGINT"}
  customers: {files: {path: customers.csv, format: csv}, schema: "customer STRING, country STRING"}
steps:
  placed:
    sql: select o.id, 100 / amount as share, country from known o left join customers c on o.customer = c.customer
    expect: {abroad: {check: country <> 'y', otherwise: quarantine}}
  known:
    sql: select id, customer, 12 / amount as n, amount from orders
    expect: {few: {check: id < LIMIT, otherwise: fail}}
sinks:
  placed: {from: placed, topic: out, value: [id, country]}
  keyed: {from: placed, topic: keyed, key: cast(country as int), value: [id]}
  stored: {from: placed, table: stored}
"""
ORDERS: list[Any] = [
    {"id": 1, "customer": "a", "amount": 2},
    {"id": 2, "customer": "b", "amount": 4},
    {"id": 3, "customer": "c", "amount": 0},
    {"id": "text"},
    {"id": 4, "customer": "n", "amount": 4},
]


def plan_of(limit: int) -> Plan:
    problems = Problems()
    plan = checked_plan(sound(DEFINITION.replace("LIMIT", str(limit))), problems)
    assert not problems.errors, str(problems.errors[0])
    return plan


class Written:
    """What a batch writes."""

    def __init__(self) -> None:
        self.records: list[tuple[str, Any]] = []
        self.stored: list[int] = []

    def __call__(self, tables: RowsByName, records: list[tuple[Any, DataFrame]], rows: Counter[str]) -> None:
        self.records = [(row.topic, json.loads(row.value)["id"]) for _, each in records for row in each.collect()]
        self.stored = [row.id for row in tables.rows("placed").collect()]
        rows["stored"] += len(self.stored)


def processed(spark: SparkSession, *, is_whole: bool, limit: int = 100) -> tuple[BatchReport, Written]:
    plan, written = plan_of(limit), Written()
    (flow,) = plan.flows
    assert not flow.is_row_program
    texts = [json.dumps(each).encode() for each in ORDERS]
    rows = [(None, text, "orders", 0, offset, None, 0, None) for offset, text in enumerate(texts)]
    batch = spark.createDataFrame(rows, RECORD_DDL).coalesce(1)
    customers = spark.sql("select * from values ('a', 'x'), ('b', 'y'), ('n', '7') as t(customer, country)")

    def load(source: Source) -> DataFrame:
        return batch if source.name == "orders" else customers

    fan_out = FanOut(plan, flow, lambda _session, source: load(source))
    report = fan_out.whole(spark, written) if is_whole else fan_out(batch, 7, written)
    return report, written


@pytest.mark.more(but="False")
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_batch_is_counted_and_written(spark: SparkSession, is_whole: bool) -> None:
    report, written = processed(spark, is_whole=is_whole)
    assert sorted(written.records, key=repr) == [
        ("keyed", 4),
        ("letters", "text"),
        ("letters", 1),
        ("letters", 2),
        ("letters", 3),
        ("out", 1),
        ("out", 4),
    ]
    assert sorted(written.stored) == [1, 4]
    assert (report.rows, report.rejected) == (5, 1)
    found = {(each.step, each.expectation): each.rows for each in report.violations}
    assert found == {
        ("known", CANNOT_COMPUTE): 1,
        ("known", "few"): 0,
        ("placed", "abroad"): 1,
        ("keyed", CANNOT_COMPUTE): 1,
    }
    wanted = {"stored": 2, "keyed": 1} if is_whole else {"stored": 2, "keyed": 1, "placed": 2}
    assert report.written == wanted
    assert report.number == (0 if is_whole else 7)


def test_nothing_is_written_if_a_row_stops_the_pipeline(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="step 'known': a row does not meet 'few', which stops the pipeline"):
        processed(spark, is_whole=False, limit=4)
