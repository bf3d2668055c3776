"""Reads the progress of the batches that a query has finished since an earlier reading."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryProgress

from odradek.pipelines.spark.sessions.private_names import PROGRESS, or_plainly, private

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

NO_BATCH = -1  # lower than the number of any batch


def progress_after(query: StreamingQuery, number: int) -> list[StreamingQueryProgress]:
    """The progress of batches with a higher number, oldest first; Spark keeps that of the last 100."""
    newest = or_plainly(PROGRESS, lambda: newest_progress(query, number), None)
    return [each for each in query.recentProgress if each.batchId > number] if newest is None else newest


def newest_progress(query: StreamingQuery, number: int) -> list[StreamingQueryProgress]:
    """Converts what is new only: PySpark converts all 100, which takes 38 ms of CPU time."""
    recent = private(query, "query").recentProgress()
    found: list[StreamingQueryProgress] = []
    for index in range(len(recent) - 1, -1, -1):
        if recent[index].batchId() <= number:
            break
        found.append(StreamingQueryProgress.fromJson(json.loads(recent[index].json())))
    return found[::-1]
