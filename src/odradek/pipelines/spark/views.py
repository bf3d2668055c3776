"""Views: warehouse tables that at any time equal the result over a prefix of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Aggregation, LatestRows, RunningAggregate
from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, quoted, visible_columns
from odradek.pipelines.spark.steps import aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import View


def latest_rows(frame: DataFrame, content: LatestRows) -> DataFrame:
    """The latest row of each key in a batch; of rows with equal `order_by` the one that arrived last."""
    names = visible_columns(frame)
    order = [] if content.order_by is None else [F.col(quoted(content.order_by))]
    if has_origin(frame):
        order.append(F.col(f"{ORIGIN}.offset"))
    row = F.struct(*(F.col(quoted(name)) for name in names))
    latest = F.max_by(row, F.struct(*order)) if order else F.last(row)
    keys = [F.col(quoted(name)) for name in content.key]
    return frame.groupBy(*keys).agg(latest.alias("__latest")).select("__latest.*")


def running_aggregate(frame: DataFrame, content: RunningAggregate) -> DataFrame:
    return aggregate(frame, Aggregation("", content.aggregates, content.by))


def view_key(view: View) -> tuple[str, ...]:
    return view.content.key if isinstance(view.content, LatestRows) else view.content.by


def view_order(view: View) -> str | None:
    return view.content.order_by if isinstance(view.content, LatestRows) else None
