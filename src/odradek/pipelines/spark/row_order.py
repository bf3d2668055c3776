"""Puts the rows of a batch in the order of their records, for operators whose result depends on it.

A deduplication keeps the first row of a key, and a processor of keyed state gets the rows of a key one after the other.
A union, a join or another deduplication before them may have put the rows of a batch in another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, quoted
from odradek.pipelines.spark.sorted_batches import may_sort
from odradek.pipelines.spark.stateful_plans import mixes_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

PLACE = "__place"  # a column for the order of rows with the same record, and of rows without one


def in_order_of_records(frame: DataFrame, key: Iterable[str]) -> DataFrame:
    """The rows of each key in the order of their records, of several rows of one record in the order of the frame.

    The frame itself, if its rows have no record, or if they are those of a stream and in their order."""
    is_needed = not frame.isStreaming or (may_sort(frame.sparkSession) and mixes_rows(frame))
    if not is_needed or not has_origin(frame):
        return frame
    placed = frame.withColumn(PLACE, F.monotonically_increasing_id())
    return in_order(placed, key, [*record_order(placed), F.col(PLACE)]).drop(PLACE)


def in_order(frame: DataFrame, key: Iterable[str], order: list[Column]) -> DataFrame:
    """The rows of each key of a batch in this order, also behind the next exchange.

    An exchange keeps the order of the rows of one task: those of a key must be in one."""
    return frame.repartition(*(F.col(quoted(name)) for name in key)).sortWithinPartitions(*order)


def record_order(frame: DataFrame) -> list[Column]:
    return [F.col(f"{ORIGIN}.{name}") for name in ("offset", "partition", "topic")] if has_origin(frame) else []
