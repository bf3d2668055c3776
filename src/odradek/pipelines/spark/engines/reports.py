"""Reports each batch from Spark's query progress, with the counts observed in the one-pass plan.

Queries are polled. A listener in Python would be notified at once, but Spark converts every event field by field, which
took a quarter of the CPU time of the rigs pipeline.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from odradek.pipelines.spark.one_pass.passing import OBSERVED
from odradek.pipelines.spark.progress import BatchReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.spark.one_pass.passing import Pass

ASK_EVERY_S = 0.5
NO_BATCH = -1


class Reports:
    """The reports of flows that run in one pass; other flows report from `foreachBatch`."""

    def __init__(self, passes: Mapping[str, Pass], report: Callable[[BatchReport], None]) -> None:
        self._passes = passes
        self._report = report
        self._reported: dict[str, int] = {}  # the last reported batch, by run id of the query
        self._next_s = 0.0

    def turn(self, queries: Mapping[str, StreamingQuery], *, is_last: bool = False) -> None:
        """Reports new batches; rate-limited, so that it can be called often."""
        now_s = time.monotonic()
        if now_s < self._next_s and not is_last:
            return
        self._next_s = now_s + ASK_EVERY_S
        for flow, query in queries.items():
            if flow in self._passes:
                try:
                    self._ask(flow, query)
                except PySparkException:
                    continue  # the query is ending; its failure is reported by Running

    def _ask(self, flow: str, query: StreamingQuery) -> None:
        reported = self._reported.setdefault(str(query.runId), NO_BATCH)
        last = query.lastProgress
        if last is None or last.batchId <= reported:
            return
        is_next = reported != NO_BATCH and last.batchId == reported + 1
        for progress in [last] if is_next else query.recentProgress:
            if progress.batchId > self._reported[str(query.runId)] and "addBatch" in progress.durationMs:
                self._reported[str(query.runId)] = progress.batchId
                self._report(self._report_of(flow, progress))

    def _report_of(self, flow: str, progress: Any) -> BatchReport:
        counts = progress.observedMetrics.get(OBSERVED)
        rejected, violations = self._passes[flow].counted({} if counts is None else counts.asDict())
        seconds = progress.batchDuration / 1000
        return BatchReport(flow, progress.batchId, progress.numInputRows, rejected, violations, seconds)
