"""Tables of a plan: their rows, and the dead letters of what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.plan import RowSql
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.frames import ORIGIN
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.sessions.failures import PipelineError
from tests.pipelines.definition.definitions import sound
from tests.pipelines.planning.plans import planned
from tests.pipelines.spark.file_batches import seconds_after_noon

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source

pytestmark = pytest.mark.spark

DEFINITION = """
pipeline: p
bootstrap_servers: nowhere:1
dead_letters: letters
sources:
  orders:
    topic: orders
    schema: "id BIGINT, customer STRING, amount BIGINT, at TIMESTAMP"
    columns: {twice: amount * 2}
    watermark: {column: at, delay: 1 minute}
  payments:
    topic: payments
    schema: "id BIGINT, paid BIGINT, paid_at TIMESTAMP"
    watermark: {column: paid_at, delay: 1 minute}
  customers: {topic: customers, stream: false, schema: "customer STRING, country STRING"}
steps:
  known:
    sql: select id, customer, amount, twice, at from orders where amount is not null
    expect: {small: {check: amount < 50, otherwise: quarantine}, even: {check: amount % 2 = 0, otherwise: drop}}
  each: {sql: "select id, word from orders lateral view explode(split(customer, ' ')) t as word where word <> ''"}
  placed: {sql: "select o.*, c.country from known o left join customers c on o.customer = c.customer"}
  chosen: {sql: "select id from known where customer in (select customer from few_customers)"}
  few_customers: {sql: "select * from customers where country = 'x'"}
  few: {sql: "select country, count(*) as n from customers group by country"}
  both:
    sql: >
      select id, amount as n, at from orders where amount > 3
      union all select id, paid as n, paid_at as at from payments
  totals:
    from: known
    window: {column: at, size: 1 minute}
    aggregate: {n: count(*), total: sum(amount)}
    by: [customer]
  grouped:
    sql: >
      select customer, window.end as until, sum(amount) as total from orders
      group by customer, window(at, '1 minute') having total > 4
  unique: {from: orders, deduplicate: {key: [id], within: 1 minute}}
  paid: {from: known, join: {stream: payments, on: [id], within: 1 minute, how: left}}
  settled:
    sql: >
      with p as (select * from payments where paid > 1)
      select o.id, o.amount, p.paid from orders o
      join p on o.id = p.id and p.paid_at between o.at and o.at + interval 1 minute
sinks: {SINKS}
"""
STEPS = ["known", "each", "placed", "chosen", "both", "totals", "grouped", "unique", "paid", "settled"]
ORDERS: list[Any] = [
    {"id": 1, "customer": "a b", "amount": 2, "at": seconds_after_noon(1)},
    {"id": 1, "customer": "a b", "amount": 4, "at": seconds_after_noon(20)},
    {"id": 2, "customer": "c", "amount": 7, "at": seconds_after_noon(30)},
    {"id": 3, "customer": "c", "amount": 60, "at": seconds_after_noon(90)},
    {"id": 4, "amount": 8, "at": seconds_after_noon(95)},
    {"id": "not a number"},
]
PAYMENTS: list[Any] = [
    {"id": 1, "paid": 2, "paid_at": seconds_after_noon(15)},
    {"id": 2, "paid": 1, "paid_at": seconds_after_noon(40)},
    {"id": 4, "paid": 9, "paid_at": seconds_after_noon(400)},
]


def loader(spark: SparkSession) -> Callable[[Source], DataFrame]:
    def records(topic: str, values: list[Any]) -> DataFrame:
        rows = [
            (None, json.dumps(each).encode(), topic, 0, offset, None, 0, None) for offset, each in enumerate(values)
        ]
        return spark.createDataFrame(rows, RECORD_DDL).coalesce(1)

    given = {
        "orders": records("orders", ORDERS),
        "payments": records("payments", PAYMENTS),
        "customers": records("customers", [{"customer": "a b", "country": "x"}, {"customer": "c", "country": "y"}]),
    }
    return lambda source: given[source.name]


def tables_of(spark: SparkSession) -> Tables:
    sinks = ", ".join(f"{each}: {{from: {each}, topic: {each}}}" for each in STEPS)
    pipeline, problems = sound(DEFINITION.replace("SINKS", sinks)), Problems()
    plan = checked_plan(pipeline, problems)
    assert not problems.errors, str(problems.errors[0])
    return Tables(spark, plan, loader(spark))


ROWS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "orders": ("id, twice", [(1, 4), (1, 8), (2, 14), (3, 120), (4, 16)]),
    "known": ("id, amount", [(1, 2), (1, 4), (4, 8)]),
    "each": ("id, word", [(1, "a"), (1, "a"), (1, "b"), (1, "b"), (2, "c"), (3, "c")]),
    "placed": ("id, twice, country", [(1, 4, "x"), (1, 8, "x"), (4, 16, None)]),
    "chosen": ("id", [(1,), (1,)]),
    "few": ("country, n", [("x", 1), ("y", 1)]),
    "both": ("id, n", [(1, 2), (1, 4), (2, 1), (2, 7), (3, 60), (4, 8), (4, 9)]),
    "totals": ("minute(window_start), customer, n, total", [(0, "a b", 2, 6), (1, None, 1, 8)]),
    "grouped": ("minute(until), customer, total", [(1, "a b", 6), (1, "c", 7), (2, "c", 60), (2, None, 8)]),
    "unique": ("id, amount", [(1, 2), (2, 7), (3, 60), (4, 8)]),
    "paid": ("id, amount, paid", [(1, 2, 2), (1, 4, 2), (4, 8, None)]),
    "settled": ("id, amount, paid", [(1, 2, 2)]),
}


def test_each_table_has_its_rows(spark: SparkSession) -> None:
    tables = tables_of(spark)
    found = {name: tables.rows(name).selectExpr(*columns.split(", ")).collect() for name, (columns, _) in ROWS.items()}
    assert {name: sorted(rows, key=repr) for name, rows in found.items()} == {
        name: sorted(rows, key=repr) for name, (_, rows) in ROWS.items()
    }


def test_what_a_table_refuses_is_a_dead_letter(spark: SparkSession) -> None:
    tables = tables_of(spark)
    found = {
        name: [(row.headers[0].value.decode(), json.loads(row.value)["id"]) for row in tables.letters(name).collect()]
        for name in ("orders", "known")
    }
    assert found["known"] == [("expectation 'small' not met: amount < 50", 3)]
    ((reason, key),) = found["orders"]
    assert (reason.partition(":")[0], key) == ("does not fit the schema", "not a number")


@pytest.mark.more
@pytest.mark.parametrize("name", ["placed", "chosen"])
def test_rows_that_are_joined_with_a_static_topic_are_of_the_records_of_the_stream(
    spark: SparkSession, name: str
) -> None:
    made = tables_of(spark).rows(name)
    found = [
        (row.id, row.topic, row.offset) for row in made.select("id", f"{ORIGIN}.topic", f"{ORIGIN}.offset").collect()
    ]
    assert sorted(found) == [(1, "orders", 0), (1, "orders", 1)] + [(4, "orders", 4)] * (name == "placed")


ANY_SQL = """
pipeline: p
bootstrap_servers: nowhere:1
sources: {orders: {topic: orders, schema: "id BIGINT, customer STRING"}}
steps:
  two: {sql: "values (1, 'a'), (2, 'b')"}
  one: {sql: "select 1 as k"}
  outer: {sql: "select id, w from orders lateral view outer explode(split(customer, ' ')) t as w"}
  json: {sql: "select id, j.* from orders lateral view json_tuple(concat('{\\"a\\": ', id, '}'), 'a') j as a"}
  wide: {sql: "select id, stack(2, id, id + 1) from orders"}
  named: {sql: "select id as minus, customer as union from orders"}
sinks: {SINKS}
"""


@pytest.mark.more
def test_what_is_not_plain_is_sql_that_spark_runs(spark: SparkSession) -> None:
    """Whether a SELECT can be computed as columns is known from the plan alone."""
    names = ["outer", "json", "wide", "named"]
    sinks = ", ".join(f"{each}: {{from: {each}, topic: {each}}}" for each in names)
    plan, verdicts = planned("", ANY_SQL.replace("SINKS", sinks))
    assert verdicts == []
    tables = Tables(spark, plan, loader(spark))

    def rows(name: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in tables.rows(name).drop(ORIGIN).collect())

    assert rows("two") == [(1, "a"), (2, "b")]
    assert rows("one") == [(1,)]
    assert rows("outer") == [(1, "a"), (1, "a"), (1, "b"), (1, "b"), (2, "c"), (3, "c"), (4, None)]
    assert rows("json")[0] == (1, "1")
    assert len(rows("wide")) == 10
    assert tables.rows("named").drop(ORIGIN).columns == ["minus", "union"]
    plain = {
        each.name: each.made_by.shape.is_plain for each in plan.tables.values() if isinstance(each.made_by, RowSql)
    }
    assert plain == {"outer": False, "json": False, "wide": False, "named": True}


def test_an_error_names_the_declaration(spark: SparkSession) -> None:
    pipeline = sound(
        """
pipeline: p
bootstrap_servers: nowhere:1
sources: {orders: {topic: orders, schema: "id BIGINT, customer STRING"}}
steps: {s: {sql: "select id from orders", expect: {known: {check: id < 3, otherwise: fail}}}}
sinks: {s: {from: s, topic: s}}
"""
    )
    plan = checked_plan(pipeline, Problems())
    tables = Tables(spark, plan, loader(spark))
    with pytest.raises(PySparkException, match="step 's': a row does not meet 'known', which stops the pipeline"):
        tables.rows("s").collect()

    def load(_source: Source) -> DataFrame:
        raise RuntimeError("the cluster is away")

    with pytest.raises(PipelineError, match=r"source 'orders': .*the cluster is away"):
        Tables(spark, plan, load).rows("s")
