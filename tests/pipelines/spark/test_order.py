"""`order_by`: however the records fall into batches, the table has the same rows, in every database."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import LatestRows, TableTarget
from odradek.pipelines.definition.operations import Deduplication
from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.spark.deduplication import deduplicate
from odradek.pipelines.spark.hidden_columns import RECORD_NAMES
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sinks.batches import change_of, shown, table_rows
from odradek.pipelines.spark.views import latest_rows
from odradek.pipelines.spark.writing.databases import WarehouseRefused
from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, Warehouse
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    Row = tuple[int, Any, int]  # key, order, and the position of the record

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS: dict[str, tuple[T.DataType, list[Any]]] = {
    "BIGINT": (T.LongType(), [None, -1, 0, 2**40]),
    "STRING": (T.StringType(), [None, "", "a", "B", "b", "é", "z"]),
    "DOUBLE": (T.DoubleType(), [None, math.nan, -math.inf, -0.0, 1.5]),
    "TIMESTAMP": (T.TimestampType(), [None, NOON, NOON + timedelta(microseconds=1), NOON + timedelta(days=-400)]),
}
KEYS = 3


@st.composite
def batches(draw: st.DrawFn, orders: Sequence[Any], most: int) -> list[list[Row]]:
    """Records in batches: each has a key, an order with many ties, and its position in the log."""
    drawn = draw(st.lists(st.tuples(st.integers(1, KEYS), st.sampled_from(orders)), max_size=most))
    rows = [(key, order, position) for position, (key, order) in enumerate(drawn)]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def comes_first(order: Any) -> bool:
    """Null, and NaN, which SQLite stores as null, are the least."""
    return order is None or (isinstance(order, float) and math.isnan(order))


def latest(rows: Iterable[Row]) -> dict[int, int]:
    """The position of the latest record of each key: the greatest order, and of equal ones the last."""
    found: dict[int, Row] = {}
    for row in rows:
        present = found.get(row[0])
        if present is None or comes_first(present[1]) or not (comes_first(row[1]) or row[1] < present[1]):
            found[row[0]] = row
    return {key: position for key, (_, _, position) in found.items()}


def read_positions(warehouse: Warehouse, table: str) -> dict[int, int]:
    with warehouse.engine.begin() as connection:
        return {row[0]: row[1] for row in connection.execute(sa.text(f"select k, v from {table}"))}


@pytest.mark.parametrize("kind", ORDERS)
def test_sqlite_keeps_the_latest_row_of_each_key(tmp_path: Path, kind: str) -> None:
    check_database(Warehouse(f"sqlite:///{tmp_path / 'w.db'}"), kind)


def check_database(warehouse: Warehouse, kind: str) -> None:
    """Row by row, as a batch is applied to the database."""
    type_, orders = ORDERS[kind]
    schema = T.StructType().add("k", T.LongType()).add("o", type_).add("v", T.LongType())
    count = 0

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(batches([each for each in orders if not is_nan(each)], 20))
    def check(cut: list[list[Row]]) -> None:
        nonlocal count
        count += 1
        for number, rows in enumerate(cut):
            warehouse.write(BatchNumber(f"q{count}", number), [TableChange(f"t{count}", schema, rows, ("k",), ("o",))])
        assert read_positions(warehouse, f"t{count}") == latest(row for rows in cut for row in rows)

    check()


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ORDERS)
def test_any_cut_into_batches_gives_the_table_of_one_batch(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """From the rows of Spark to the table; many examples in one frame, distinguished by their keys."""
    warehouse = Warehouse(f"sqlite:///{tmp_path / 'w.db'}")
    many = st.lists(batches(ORDERS[kind][1], 12), min_size=30, max_size=30)
    target = TableTarget("t", ("k",), order_by=("O",))
    ddl = f"k BIGINT, o {kind}, v BIGINT, __origin STRUCT<topic: STRING, partition: INT, offset: BIGINT>"

    @settings(max_examples=1, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(many)
    def check(examples: list[list[list[Row]]]) -> None:
        expected: dict[int, int] = {}
        by_number: dict[int, list[tuple[Any, ...]]] = {}
        for example, cut in enumerate(examples):
            expected |= {example * 10 + key: at for key, at in latest(row for rows in cut for row in rows).items()}
            for number, rows in enumerate(cut):
                by_number.setdefault(number, []).extend(
                    (example * 10 + key, order, at, ("in", key, at)) for key, order, at in rows
                )
        for is_cut in (True, False):
            table = "cut" if is_cut else "whole"
            groups = by_number.values() if is_cut else [[row for rows in by_number.values() for row in rows]]
            for number, rows in enumerate(groups):
                frame = spark.createDataFrame(rows, ddl)
                change = change_of(table_rows(frame, target), table, target.key, target.order_column)
                warehouse.write(BatchNumber(table, number), [change])
            assert read_positions(warehouse, table) == expected

    check()


@pytest.mark.spark
def test_the_row_that_arrived_last_is_kept_in_whatever_order_rows_are_read(spark: SparkSession) -> None:
    """Of the rows of one record the last; rows without an origin are in the order of their arrival."""
    target = TableTarget("t", ("k",))
    ddl = "k BIGINT, v STRING, __origin STRUCT<topic: STRING, partition: INT, offset: BIGINT>"
    later = spark.createDataFrame([(1, "late", ("in", 0, 9)), (2, "a", ("in", 0, 7)), (2, "b", ("in", 0, 7))], ddl)
    earlier = spark.createDataFrame([(1, "early", ("in", 0, 5))], ddl)
    frame = later.coalesce(1).union(earlier.coalesce(1))
    assert sorted(map(tuple, table_rows(frame, target).collect())) == [(1, "late"), (2, "b")]
    latest = latest_rows(frame.drop("__origin"), LatestRows(("k",)))
    assert sorted(map(tuple, latest.collect())) == [(1, "early"), (2, "b")]
    assert len(table_rows(frame.drop("__origin"), target).collect()) == 4


@pytest.mark.spark
@pytest.mark.parametrize("cuts", [[0, 2], [0, 1, 2]])
def test_of_equal_rows_the_last_to_arrive_is_kept_without_an_origin(
    spark: SparkSession, tmp_path: Path, cuts: list[int]
) -> None:
    """Rows of a query with a subquery, of a Python function and of files are in the order of their arrival."""
    warehouse = Warehouse(f"sqlite:///{tmp_path / 'w.db'}")
    target = TableTarget("t", ("k",), order_by=("o",))
    rows = [(1, NOON, 9), (1, NOON, 4)]
    for number, (start, end) in enumerate(pairwise(cuts)):
        frame = spark.createDataFrame(rows[start:end], "k BIGINT, o TIMESTAMP, v BIGINT").coalesce(1)
        change = change_of(table_rows(frame, target), "t", target.key, target.order_column)
        warehouse.write(BatchNumber("q", number), [change])
    assert read_positions(warehouse, "t") == {1: 4}


@pytest.mark.spark
def test_a_batch_reads_files_in_the_order_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads larger files first."""
    for number, size in enumerate((1, 40, 3)):
        file = tmp_path / f"{9 - number}.json"
        file.write_text("".join(f'{{"k": 1, "v": {100 * number + row}}}\n' for row in range(size)))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    files = f"{{path: {tmp_path}, format: json, options: {{maxFilesPerTrigger: 1}}}}"
    source = f"{{files: {files}, stream: true, schema: 'k BIGINT, v BIGINT'}}"
    pipeline = sound(f"pipeline: p\nsources: {{f: {source}}}\nsinks: {{o: {{from: f, table: o, key: [k]}}}}\n")
    frame = read_once(spark, pipeline.sources[0], pipeline, lambda _topic, _origin: 1)
    assert frame.columns == ["k", "v"]
    assert [row.v for row in frame.collect()] == [0, *range(100, 140), 200, 201, 202]
    assert [tuple(row) for row in latest_rows(frame, LatestRows(("k",))).collect()] == [(1, 202)]


@pytest.mark.spark
def test_a_batch_keeps_the_first_row_that_it_reads(spark: SparkSession) -> None:
    """Rows without a record, in both periods of `within`; those of a key share the second."""
    times = [NOON + timedelta(seconds=150), NOON + timedelta(seconds=90)]
    rows = [(key, time, place) for place, time in enumerate(times) for key in range(40)]
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    frame = session.createDataFrame(rows, "k BIGINT, at TIMESTAMP, v BIGINT")
    for within in (None, Duration(60_000)):
        kept = deduplicate(frame, Deduplication("", ("k",), within), "at").collect()
        assert {row.k: row.v for row in kept} == dict.fromkeys(range(40), 0)
        assert len(kept) == 40


@pytest.mark.spark
def test_columns_of_the_record_that_a_sink_names_are_written(spark: SparkSession) -> None:
    record = [f"cast(id as string) as {name}" for name in sorted(RECORD_NAMES)]
    frame = spark.range(2).selectExpr("id", *record)
    kept = table_rows(frame, TableTarget("t", ("_key",), order_by=("_offset",)))
    assert change_of(kept, "t", ("_key",), "_offset").schema.names == ["id", "_key", "_offset"]
    assert table_rows(frame, TableTarget("t", ("_KEY",))).columns == ["id", "_key"]
    assert latest_rows(frame, LatestRows(("_key", "id"), ("_offset",))).columns == ["id", "_key", "_offset"]
    assert shown(frame, ("_partition", "id")).columns == ["id", "_partition"]
    assert shown(frame).columns == ["id"]


@pytest.mark.spark
def test_values_without_a_type_in_sql_are_stored_as_text_and_are_no_order(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "select 1 as id, interval 2 months as m, timestamp'2026-01-02' - timestamp'2026-01-01' as d, time'10:00:00' t"
    )
    warehouse = Warehouse(f"sqlite:///{tmp_path / 'w.db'}")
    warehouse.write(BatchNumber("q", 0), [change_of(frame, "t", ("id",))])
    with warehouse.engine.begin() as connection:
        stored = tuple(connection.execute(sa.text("select * from t")).one())
    assert stored == (1, "INTERVAL '2' MONTH", "INTERVAL '1 00:00:00' DAY TO SECOND", "10:00:00")
    with pytest.raises(WarehouseRefused, match="ordered by d of type interval day to second"):
        change_of(frame, "t", ("id",), "d")
