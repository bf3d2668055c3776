"""The rows of a table with a key: one of each key of a batch, and the order in which it may replace what is stored.

All rows are compared as they are stored, so that any cut into batches gives the same table: first the columns of
`order_by`, then the others, null being the least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.frames import INTERNAL, ORIGIN, column, has_origin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

POSITION, LATEST = "__position", "__latest"


def whole_order(names: Sequence[str], key: Sequence[str], order_by: Sequence[str]) -> tuple[str, ...]:
    """The columns by which rows of one key are compared: `order_by`, and those that decide a tie."""
    first = [name for name in order_by if name not in key]
    return (*first, *(name for name in names if name not in {*key, *first}))


def latest(frame: DataFrame, key: Sequence[str], order_by: Sequence[str]) -> DataFrame:
    """The greatest row of each key of a batch. Without `order_by` that of the last record, of the rows of one record
    the last; rows without a record are groups, of which each key has one."""
    names = [name for name in frame.columns if name not in INTERNAL]
    keys = [column(name) for name in key]
    if order_by:
        order = whole_order(names, key, order_by)
        if not order:
            return frame.select(*keys).distinct()
        greatest = F.max(F.struct(*map(column, order)))
        rows = frame.groupBy(*keys).agg(greatest.alias(LATEST)).select(*keys, f"{LATEST}.*")
        return rows.select(*map(column, names)).coalesce(1)  # one row of each key is small enough for one job
    if not has_origin(frame):
        return frame
    placed = frame.withColumn(POSITION, F.monotonically_increasing_id())
    arrival = F.struct(F.col(f"{ORIGIN}.offset"), F.col(f"{ORIGIN}.partition"), F.col(POSITION))
    last = F.max_by(F.struct(*map(column, names)), arrival)
    return placed.groupBy(*keys).agg(last.alias(LATEST)).select(f"{LATEST}.*").coalesce(1)
