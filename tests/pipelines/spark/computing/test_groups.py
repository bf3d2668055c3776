"""Groups have calls that the rows determine, HAVING as a column, and one event time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.operations import Aggregation, NamedExpression, Window
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.planning.plan import PASSES, GroupSql, OutputMode
from odradek.pipelines.spark.computing.groups import aggregated, group_text, grouped
from odradek.pipelines.spark.frames import event_times_of
from odradek.pipelines.sql.blocks import Part
from odradek.pipelines.sql.query import Query
from tests.pipelines.planning.plans import sound_plan
from tests.pipelines.spark.computing.streams import stream_of, written
from tests.pipelines.spark.file_batches import seconds_after_noon

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ORDERS = "id BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP"
COUNTED = "bigint(size(array_distinct(collect_set(id))))"
BATCHES: list[list[dict[str, Any]]] = [
    [
        {"id": 1, "customer": "a", "amount": 5.0, "at": seconds_after_noon(1)},
        {"id": 1, "customer": "b", "amount": 7.0, "at": seconds_after_noon(2)},
        {"id": 2, "customer": "a", "amount": 1.0, "at": seconds_after_noon(3)},
    ],
    [{"id": 1, "customer": "a", "amount": 2.0, "at": seconds_after_noon(70)}],
    [{"id": 9, "customer": "z", "amount": 0.0, "at": seconds_after_noon(1000)}],
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "select k, count(distinct id) as n from s where x > 1 group by 1 having n > 2",
            f"select k, {COUNTED} as n , (({COUNTED}) > 2) AS {PASSES} from s where x > 1 group by 1 having true",
        ),
        (
            "select window.*, max_by(x, at) from s group by window(at, '1 hour')",
            "select window.*, max_by(x, if((at) is null, null, struct(at, x))) from s group by window(at, '1 hour')",
        ),
    ],
)
def test_calls_and_having_are_written_for_streams(text: str, expected: str) -> None:
    assert group_text(Query(Part(text, 0, {}), lambda _table: None)) == expected


@pytest.mark.spark
def test_windows_of_a_stream_are_those_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    window = Window("at", Duration(60_000))
    aggregates = (NamedExpression("n", "count(distinct id)"), NamedExpression("best", "max_by(customer, amount)"))
    operation = Aggregation("orders", aggregates, ("customer",), window)
    stream = stream_of(spark, tmp_path / "orders", BATCHES, ORDERS, "at")
    made = aggregated(stream.selectExpr("*", "at as again"), operation, "at")
    assert list(event_times_of(made)) == ["window_end"]
    batch = aggregated(spark.read.schema(ORDERS).json(str(tmp_path / "orders")), operation, "at")
    assert made.columns == batch.columns == ["window_start", "window_end", "customer", "n", "best"]
    expected = sorted(tuple(row) for row in batch.collect() if row.customer != "z")
    assert sorted(written(made, tmp_path / "checkpoint")) == expected


SESSIONS = "select customer, session_window.start as window_start, session_window.end as window_end, count(*) as n"


@pytest.mark.more(but="False-True")
@pytest.mark.spark
@pytest.mark.parametrize(("is_sql", "is_stream"), [(False, True), (False, False), (True, False)])
def test_a_filter_sees_whole_sessions(spark: SparkSession, tmp_path: Path, *, is_sql: bool, is_stream: bool) -> None:
    """The rows of a session are in several batches and partitions. Spark would filter those of single rows."""
    stream = stream_of(spark, tmp_path / "orders", BATCHES, ORDERS, "at")
    rows = stream if is_stream else spark.read.schema(ORDERS).json(str(tmp_path / "orders")).repartition(3, "at")
    if is_sql:
        text = f"{SESSIONS} from orders group by customer, session_window(at, '70 seconds')"
        query = Query(Part(text, 0, {}), lambda _table: None)
        sessions = grouped(query, {"orders": rows}, "at", "window_end")
    else:
        counts = (NamedExpression("n", "count(*)"),)
        operation = Aggregation("orders", counts, ("customer",), Window("at", gap=Duration(70_000)))
        sessions = aggregated(rows, operation, "at")
    long = sessions.where("window_end - window_start > interval 70 seconds").select("customer", "n")
    found = written(long, tmp_path / "checkpoint") if is_stream else [tuple(row) for row in long.collect()]
    assert found == [("a", 3)]


@pytest.mark.spark
def test_groups_in_sql_have_a_column_for_having(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "select customer as who, window.end as until, count(distinct id) as n from orders "
        "group by who, window(at, '1 minute') having n >= 2"
    )
    plan = sound_plan(f'steps: {{s: {{sql: "{text}"}}}}\nsinks: {{out: {{from: s, topic: out}}}}\n')
    table = plan.table("s__groups")
    assert isinstance(table.made_by, GroupSql)
    orders = stream_of(spark, tmp_path / "orders", BATCHES, ORDERS, "at")
    made = grouped(table.made_by.query, {"orders": orders}, "at", table.path.event_time)
    assert list(event_times_of(made)) == ["until"]
    found = written(made, tmp_path / "checkpoint", OutputMode.UPDATE)
    assert sorted((who, n, passes) for who, _until, n, passes in found) == [
        ("a", 1, False),
        ("a", 2, True),
        ("b", 1, False),
        ("z", 1, False),
    ]
