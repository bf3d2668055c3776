"""Joins of streams, declared and in SQL, have the rows of a batch, and those of plain Spark SQL."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.operations import StreamJoin
from odradek.pipelines.definition.vocabulary import Duration, StreamJoinKind
from odradek.pipelines.planning.plan import PairSql, RowSql
from odradek.pipelines.spark.computing.sql_steps import row_by_row
from odradek.pipelines.spark.computing.stream_joins import Match, join_streams, pairs_of
from odradek.pipelines.spark.frames import event_times_of
from odradek.pipelines.spark.sessions.failures import PipelineError
from tests.pipelines.planning.plans import planned, sound_plan
from tests.pipelines.spark.computing.streams import stream_of, written
from tests.pipelines.spark.file_batches import seconds_after_noon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ORDERS = "id BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP"
PAYMENTS = "id BIGINT, paid DOUBLE, paid_at TIMESTAMP"
WITHIN = Duration(3_000)
KINDS = list(StreamJoinKind)


def drawn(names: tuple[str, str], seed: int) -> list[list[dict[str, Any]]]:
    """Two batches of rows of a few ids, some without id, and one that advances the watermark past all of them."""
    draw = random.Random(seed)
    value, time = names

    def row(key: int | None, number: int, seconds: int) -> dict[str, Any]:
        return {"id": key, value: 10.0 * number, time: seconds_after_noon(seconds)}

    batches = [
        [row(draw.choice((1, 2, 3, None)), number, 5 * batch + draw.randrange(9)) for number in range(6)]
        for batch in range(2)
    ]
    return [*batches, [row(99, 0, 1000)], [row(98, 0, 2000)]]


def frames_of(spark: SparkSession, folder: Path, *, is_stream: bool) -> tuple[DataFrame, DataFrame]:
    orders = stream_of(spark, folder / "orders", drawn(("amount", "at"), 1), ORDERS, "at")
    payments = stream_of(spark, folder / "payments", drawn(("paid", "paid_at"), 2), PAYMENTS, "paid_at")
    if is_stream:
        return orders, payments
    return spark.read.schema(ORDERS).json(str(folder / "orders")), spark.read.schema(PAYMENTS).json(
        str(folder / "payments")
    )


def of_interest(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without the rows that advance the watermark, the last of which stay in the state."""
    return sorted((row for row in rows if not {98, 99} & set(row)), key=repr)


def expected(spark: SparkSession, folder: Path, sql: str) -> list[tuple[Any, ...]]:
    orders, payments = frames_of(spark, folder, is_stream=False)
    orders.createOrReplaceTempView("orders")
    payments.createOrReplaceTempView("payments")
    return of_interest([tuple(row) for row in spark.sql(sql).collect()])


@pytest.mark.more(but="full")
@pytest.mark.parametrize("how", KINDS)
def test_a_declared_join_has_the_rows_of_sql(spark: SparkSession, tmp_path: Path, how: StreamJoinKind) -> None:
    is_stream = how is StreamJoinKind.FULL
    wanted = expected(
        spark,
        tmp_path,
        f"select coalesce(o.id, p.id) as id, customer, amount, at, paid, paid_at from orders o {how} join payments p "
        "on o.id = p.id and abs(unix_micros(at) - unix_micros(paid_at)) <= 3000000",
    )
    operation = StreamJoin("orders", "payments", ("id",), WITHIN, how)
    orders, payments = frames_of(spark, tmp_path / "again", is_stream=is_stream)
    joined = join_streams(orders, payments, operation, ("at", "paid_at"))
    found = written(joined, tmp_path / "checkpoint") if is_stream else [tuple(row) for row in joined.collect()]
    assert of_interest(found) == wanted


@pytest.mark.more(but="left-time1")
@pytest.mark.parametrize(("how", "time"), [("inner", ["at"]), ("left", ["at"]), ("right", ["paid_at"]), ("full", [])])
def test_a_row_has_the_event_time_of_the_side_that_is_kept(
    spark: SparkSession, tmp_path: Path, how: str, time: list[str]
) -> None:
    orders, payments = frames_of(spark, tmp_path, is_stream=True)
    for within in (WITHIN, None):
        operation = StreamJoin("orders", "payments", ("id",), within, StreamJoinKind(how))
        joined = join_streams(orders.selectExpr("*", "at as again"), payments, operation, ("at", "paid_at"))
        assert list(event_times_of(joined)) == (time if within is not None else [])


QUERIES = {
    "on": "select o.amount + p.paid as total, p.* from orders o join payments p "
    "on o.id = p.id and p.paid_at between o.at and o.at + interval 3 seconds and o.amount > p.paid",
    "using": "select *, id + 1 as next, p.id as other from orders i join payments p using (id) "
    "where paid_at between at - interval 2 seconds and at and id > 1",
    "comma": "select o.*, paid from orders o, payments p where p.id = o.id and paid_at > at - interval 2 seconds "
    "and paid_at < at + interval 2 seconds and paid <> amount",
}


@pytest.mark.more(but="on")
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_a_join_in_sql_has_the_rows_of_spark(spark: SparkSession, tmp_path: Path, text: str) -> None:
    plan = sound_plan(f'steps: {{s: {{sql: "{text}"}}}}\nsinks: {{out: {{from: s, topic: out}}}}\n')
    pairs, made = plan.table("s__pairs").made_by, plan.table("s").made_by
    assert isinstance(pairs, PairSql)
    assert isinstance(made, RowSql)
    wanted = expected(spark, tmp_path, text)
    orders, payments = frames_of(spark, tmp_path / "again", is_stream=False)
    joined = pairs_of(orders, payments, Match.of_pairs(pairs.shape), ("at", "paid_at"))
    found = row_by_row(made, {"s__pairs": joined})
    assert of_interest([tuple(row) for row in found.collect()]) == wanted
    assert found.columns == spark.sql(text).columns


SAME_NAMES = """
pipeline: p
sources:
  orders: {topic: orders, schema: "id BIGINT, amount DOUBLE, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  payments: {topic: payments, schema: "id BIGINT, paid DOUBLE, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
"""


@pytest.mark.more(but="full")
@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_columns_of_using_have_the_value_of_the_side_that_has_one(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    """The alias `i` begins the name of the column `id`, which is not qualified by it."""
    text = (
        f"select id, i.id as own, at, amount, paid, id * 2 as twice from orders i {how} join payments p using (id, at)"
    )
    plan = planned(f'steps: {{s: {{sql: "{text}"}}}}\nsinks: {{out: {{from: s, topic: out}}}}\n', SAME_NAMES)[0]
    pairs, made = plan.table("s__pairs").made_by, plan.table("s").made_by
    assert isinstance(pairs, PairSql)
    assert isinstance(made, RowSql)
    assert plan.path("s").event_time == (None if how == "full" else "at")
    orders, payments = frames_of(spark, tmp_path, is_stream=False)
    frames = {"orders": orders.drop("customer"), "payments": payments.withColumnRenamed("paid_at", "at")}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    joined = pairs_of(frames["orders"], frames["payments"], Match.of_pairs(pairs.shape), ("at", "at"))
    found = row_by_row(made, {"s__pairs": joined})
    assert of_interest([tuple(row) for row in found.collect()]) == of_interest(
        list(map(tuple, spark.sql(text).collect()))
    )
    assert found.columns == spark.sql(text).columns


def test_columns_that_became_known_with_the_streams_are_checked(spark: SparkSession) -> None:
    operation = StreamJoin("a", "b", ("id",), WITHIN)
    left, right = spark.sql("select 1 as id, now() as at, 2 as N"), spark.sql("select 1 as id, now() as other, 2 as n")
    with pytest.raises(PipelineError, match="both sides of the join have the column 'n'"):
        join_streams(left, right, operation, ("at", "other"))
    right = spark.sql("select 1 as id, localtimestamp() as other")
    with pytest.raises(PipelineError, match=r"'at' \(timestamp\) and 'other' \(timestamp_ntz\) have different types"):
        join_streams(left, right, operation, ("at", "other"))
