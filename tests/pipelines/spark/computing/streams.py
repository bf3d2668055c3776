"""Streams of small files, of which each is a micro-batch, and the same rows as a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.planning.plan import OutputMode
from tests.pipelines.spark.file_batches import give_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DELAY = "10 seconds"


def stream_of(
    spark: SparkSession, folder: Path, batches: Sequence[Iterable[dict[str, Any]]], schema: str, time: str
) -> DataFrame:
    """A stream with a watermark."""
    folder.parent.mkdir(exist_ok=True)
    give_files(folder, batches)
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))
    return files.withWatermark(time, DELAY)


def written(frame: DataFrame, folder: Path, mode: OutputMode = OutputMode.APPEND) -> list[tuple[Any, ...]]:
    """All rows that the batches of a stream write."""
    found: list[tuple[Any, ...]] = []

    def add(batch: DataFrame, _number: int) -> None:
        found.extend(tuple(row) for row in batch.collect())

    query = frame.writeStream.foreachBatch(add).outputMode(str(mode)).trigger(availableNow=True)
    query.option("checkpointLocation", str(folder)).start().awaitTermination()
    return found
