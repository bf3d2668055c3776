"""`order_by`: however the records fall into batches, the table has the same rows, in every database."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, Warehouse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

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
