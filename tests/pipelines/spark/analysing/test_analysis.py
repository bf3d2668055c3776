"""What Spark says of definitions before they run, with the place in the text of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from odradek.pipelines.definition.places import Problems
from odradek.pipelines.spark.analysing.analysis import analysed
from tests.pipelines.planning.plans import planned, sound_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from odradek.pipelines.definition.model import Source

pytestmark = pytest.mark.spark


class Nothing(StatefulProcessor):
    """Makes no rows."""

    def init(self, handle: Any) -> None:
        """Has no state."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 - the names of Spark
        return iter(())

    def close(self) -> None:
        """Holds nothing."""


def test_keys_of_keyed_state_are_exact(spark: SparkSession) -> None:
    state = f"{{key: amount, processor: '{__name__}:Nothing', order: any}}, schema: id BIGINT"
    _, problems = found(spark, definition(f"{{from: orders, state: {state}}}"))
    assert [each.partition(";")[0] for each in problems] == [
        "15:34: error OP013: the key column 'amount' of step 's' is DOUBLE, which is not exact"
    ]


DATABASE = """
pipeline: p
sources:
  orders: {topic: orders, schema: "id BIGINT, customer STRING", watermark: {column: _timestamp, delay: 1 minute}}
  customers: {jdbc: {url: "jdbc:sqlite:c.db", table: customers}}
"""


def found(spark: SparkSession, text: str) -> tuple[dict[str, StructType], list[str]]:
    """What is reported of a definition that the plan accepts."""
    problems = Problems()
    analysis = analysed(spark, sound_plan(text), problems, columns_of_database)
    return analysis, [str(each).removeprefix("p.yml:") for each in problems]


def columns_of_database(source: Source) -> DataFrame:
    raise AssertionError(f"{source.name} is read")


def definition(step: str, sink: str = "topic: out") -> str:
    return f"steps:\n  s: {step}\nsinks: {{out: {{from: s, {sink}}}}}\n"


def test_tables_have_the_columns_that_spark_gives_them(spark: SparkSession) -> None:
    analysis, problems = found(
        spark,
        """
        steps:
          hourly:
            sql: >
              select customer, window.end as until, count(distinct id) as n, sum(amount) as total from ORDERS
              group by customer, window(at, '1 hour') having n > 1
          paid:
            sql: >
              with p as (select * from payments where paid > 0)
              select o.*, p.paid, upper(o.customer) as name from orders o
              join p on o.id = p.id and p.paid_at between o.at and o.at + interval 1 hour
          placed: {sql: "select o.id, c.country from Orders o left join customers c using (customer)"}
          each: {sql: "select id, int(w) + 1 as n from orders lateral view explode(split(customer, ' ')) t as w"}
        sinks:
          hourly: {from: hourly, table: hourly, key: [customer, until]}
          paid: {from: paid, topic: paid, key: "concat(name, '-', id)"}
          placed: {from: placed, topic: placed}
          each: {from: each, topic: each}
        """,
    )
    assert problems == []
    shown = {name: schema.simpleString() for name, schema in analysis.items()}
    assert shown["hourly"] == "struct<customer:string,until:timestamp,n:bigint,total:double>"
    assert shown["each"].startswith("struct<id:bigint,n:int,")
    assert shown["placed"].startswith("struct<id:bigint,country:string,")


@pytest.mark.parametrize(
    ("step", "sink", "verdict"),
    [
        ('{sql: "select id, date_add(customer, 1) as d from orders"}', "topic: out",
         "15:33: error OP016: step 's' casts the STRING orders.customer implicitly"),
        ('{sql: "select id, size(amount) as n from orders"}', "topic: out", "15:24: error OD05: Cannot resolve"),
        ('{sql: "select id, nosuch(amount) as n from orders"}', "topic: out", "15:24: error OD05: Cannot resolve"),
        ("{from: orders, aggregate: {n: sum(size(id))}, by: [customer]}", "{table: out, key: customer}",
         "15:36: error OD05: Cannot resolve"),
        ('{sql: "select id, amount * 2 as twice from orders"}', "topic: out, key: size(twice)",
         "16:41: error OD05: Cannot resolve"),
        ('{sql: "select id, sqrt(amount) as root from orders"}', "table: out, key: root, order_by: id",
         "16:41: error OP013: the key column 'root' of sink 'out' is DOUBLE, which is not exact"),
        ('{sql: "select *, id from orders"}', "table: out",
         "15:13: error OD05: 's' has two columns of one name"),
        ("{from: orders, aggregate: {ID: count(*)}, by: [id]}", "{table: out, key: id}",
         "15:3: error OD05: Reference `id` is ambiguous, could be"),
        ('{sql: "select id, current_date - date(at) as age from orders"}', "table: out, key: id, order_by: age",
         "16:55: error OD05: the column 'age' of sink 'out' is INTERVAL DAY, by which no row is newer"),
        ('{sql: "select id, map(id, id) as m from orders"}', "table: out, key: id, order_by: m",
         "16:55: error OD05: the column 'm' of sink 'out' is MAP<BIGINT,BIGINT>, by which no row is newer"),
    ],
)  # fmt: skip
def test_what_spark_refuses_is_reported_where_it_is_written(
    spark: SparkSession, step: str, sink: str, verdict: str
) -> None:
    sink = sink.strip("{}")
    _, problems = found(spark, definition(step, sink))
    assert [each[: len(verdict)] for each in problems] == [verdict]


CASTS = {
    "totals": """steps: {s: {sql: "select sum(customer) as n from orders group by window(at, '1 hour')"}}""",
    "declared": "steps: {s: {from: orders, aggregate: {n: avg(customer)}, window: {column: at, size: 1 hour}}}",
    "joined": 'steps: {s: {sql: "select o.id from orders o join payments p on o.customer = p.id and at = paid_at"}}',
    "pairs": """steps:
  named: {sql: "select customer as id, at from orders"}
  s: {from: named, join: {stream: payments, on: id, within: 1 hour}}""",
}


@pytest.mark.parametrize("steps", CASTS.values(), ids=CASTS)
def test_casts_of_text_that_are_not_written_are_refused(spark: SparkSession, steps: str) -> None:
    _, problems = found(spark, f"{steps}\nsinks: {{out: {{from: s, topic: out}}}}\n")
    assert [("OP016" in each, "casts the STRING" in each) for each in problems] == [(True, True)], problems


def test_a_view_of_casts_is_refused(spark: SparkSession) -> None:
    _, problems = found(spark, "views: {v: {from: orders, aggregate: {n: sum(customer)}, by: [id]}}")
    assert any("error OP016: view 'v' casts the STRING" in each for each in problems), problems


STEPS = """
from pyspark.sql import functions as F

def rows(orders):
    return orders.select("id", "at")

def counted(orders):
    return orders.groupBy("id").count()

def random(orders):
    return orders.select("id", F.rand().alias("r"))

def whole(orders):
    return orders.where(orders.amount < orders.count())
"""


def test_state_randomness_and_actions_of_python_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "analysed_steps.py").write_text(STEPS)
    monkeypatch.syspath_prepend(tmp_path)
    verdicts = {
        name: found(spark, definition(f"{{from: orders, python: analysed_steps:{name}}}"))[1]
        for name in ("rows", "counted", "random", "whole")
    }
    assert verdicts["rows"] == []
    assert verdicts["counted"][0].startswith(
        "15:3: error OP019: step 's' keeps state in Python: its plan has Aggregate"
    )
    assert verdicts["random"][0].startswith("15:3: error OP019: step 's' uses rand() in Python")
    assert verdicts["whole"][0].startswith("15:3: error OD05: Queries with streaming sources must be executed")
    assert verdicts["whole"][0].endswith("and no action such as count() or collect()")


def test_a_table_without_declared_columns_is_asked_for_them(spark: SparkSession) -> None:
    step = 'steps: {s: {sql: "select id, name from orders join customers using (customer)"}}'
    plan, verdicts = planned(f"{step}\nsinks: {{out: {{from: s, topic: o}}}}", DATABASE)
    assert verdicts == []
    problems = Problems()
    analysed(spark, plan, problems, lambda _source: spark.sql("select 'a' as customer, 1 as other"))
    (problem,) = problems
    assert (problem.code, "name" in problem.message, problem.place.line) == ("OD05", True, 6)

    def away(source: Source) -> DataFrame:
        raise RuntimeError(f"{source.name} is away")

    problems = Problems()
    analysed(spark, plan, problems, away)
    (problem,) = problems
    assert problem.message.startswith("source 'customers': RuntimeError: customers is away")
