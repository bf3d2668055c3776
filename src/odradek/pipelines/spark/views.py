"""Views: warehouse tables that at any time equal the result over a prefix of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import LatestRows, RunningAggregate
from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, quoted, visible_columns
from odradek.pipelines.spark.steps import aggregate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

POSITION = "__position"


def latest_rows(frame: DataFrame, content: LatestRows) -> DataFrame:
    """The latest row of each key in a batch: the greatest `order_by`, null being the least; of equal ones the row that
    arrived last; of the rows of one record, or without an origin record, the last in the order of the frame."""
    names = visible_columns(frame, (*content.key, *([] if content.order_column is None else [content.order_column])))
    order = [] if content.order_column is None else [order_value(frame, content.order_column)]
    if has_origin(frame):
        order += [F.col(f"{ORIGIN}.offset"), F.col(f"{ORIGIN}.partition")]
    row = F.struct(*(F.col(quoted(name)) for name in names))
    latest = F.max_by(row, F.struct(*order, F.col(POSITION)))
    keys = [F.col(quoted(name)) for name in content.key]
    placed = frame.withColumn(POSITION, F.monotonically_increasing_id())
    return placed.groupBy(*keys).agg(latest.alias("__latest")).select("__latest.*")


def order_value(frame: DataFrame, name: str) -> Column:
    """The column by which rows are ordered, with null for NaN, which SQLite stores as null."""
    column = F.col(quoted(name))
    if not isinstance(frame.select(column).schema.fields[0].dataType, T.FloatType | T.DoubleType):
        return column
    return F.when(~F.isnan(column), column)


def running_aggregate(frame: DataFrame, content: RunningAggregate) -> DataFrame:
    return aggregate(frame, Aggregation("", content.aggregates, content.by))


def is_one_group(content: LatestRows | RunningAggregate) -> bool:
    """Whether all rows are one group, so that the view has one row and no key."""
    return isinstance(content, RunningAggregate) and not content.by


def view_key(content: LatestRows | RunningAggregate) -> tuple[str, ...]:
    return content.key if isinstance(content, LatestRows) else content.by


def view_order(content: LatestRows | RunningAggregate) -> str | None:
    return content.order_column if isinstance(content, LatestRows) else None
