"""Deduplication: the first row of each key, or of each key in each period of event time.

With `within`, two operators drop the duplicates of a key: one in periods of twice that duration, one in the same
periods shifted by it. Two rows that are less than `within` apart share a period of one kind, so that one is dropped.
The periods depend on the rows alone, so that a stream drops the same rows as a batch, however it is cut into batches.
A key is forgotten when the watermark passes the end of its period, after which only late rows could belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import Deduplication

PERIOD, RANK = "__period", "__rank"
# Spark's mark of a column of event time: state whose key has one is removed when the watermark has passed it. Without
# it, or by another name, the results are the same, and no key is forgotten.
WATERMARK_DELAY = "spark.watermarkDelayMs"


def deduplicate(frame: DataFrame, operation: Deduplication, event_time: str | None) -> DataFrame:
    """Drops duplicates; `event_time` is the column of event time, for `within`."""
    key = list(operation.key)
    if operation.within is None or event_time is None:
        return first_rows(frame, key)
    within_ms = operation.within.milliseconds
    for shift_ms in (0, within_ms):
        end = period_end(frame, event_time, 2 * within_ms, shift_ms)
        frame = first_rows(frame.select("*", end), [*key, PERIOD]).drop(PERIOD)
    return frame


def first_rows(frame: DataFrame, key: list[str]) -> DataFrame:
    """The first row of each key: the first to arrive, which in a batch is the first of its partition."""
    if frame.isStreaming or not has_origin(frame):
        return frame.dropDuplicates(key)
    arrival = [F.col(f"{ORIGIN}.{name}") for name in ("offset", "partition", "topic")]
    ranked = Window.partitionBy(*(F.col(quoted(name)) for name in key)).orderBy(*arrival)
    return frame.withColumn(RANK, F.row_number().over(ranked)).where(F.col(RANK) == 1).drop(RANK)


def period_end(frame: DataFrame, column: str, size_ms: int, shift_ms: int) -> Column:
    """The end of the period of a row; null for a row without event time."""
    size, shift = F.lit(size_ms * 1000), F.lit(shift_ms * 1000)
    micros = F.unix_micros(F.col(quoted(column)).cast("timestamp")) + shift
    end = F.timestamp_micros(micros - F.pmod(micros, size) + size - shift)
    name = next(each for each in frame.columns if each.lower() == column.lower())
    delay = frame.schema[name].metadata.get(WATERMARK_DELAY)
    return end.alias(PERIOD) if delay is None else end.alias(PERIOD, metadata={WATERMARK_DELAY: delay})
