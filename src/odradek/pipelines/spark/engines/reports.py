"""Reports each batch from Spark's query progress, with the counts observed in its plan.

Queries are polled. A listener in Python would be notified at once, but Spark converts every event field by field, which
took a quarter of the CPU time of the rigs pipeline.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from odradek.pipelines.spark.computing.counts import BatchReport
from odradek.pipelines.spark.engines.progress import NO_BATCH, progress_after
from odradek.pipelines.spark.observed_counts import (
    OBSERVED,
    observed_violations,
    unparsed_name,
    unparsed_rows,
    written_name,
    written_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.spark.one_pass.passing import Pass

ASK_EVERY_S = 0.5


class Reports:
    """The reports of flows whose query observes counts, as in one pass; others report from `foreachBatch`."""

    def __init__(self, passes: Mapping[str, Pass], report: Callable[[BatchReport], None]) -> None:
        self._passes = passes
        self._report = report
        self._counting: dict[str, Flow] = {}
        self._files: dict[str, str] = {}  # the sink of a flow that Spark itself writes to files
        self._written: dict[tuple[str, int], Mapping[str, int]] = {}  # rows of tables and views, by flow and batch
        self._awaiting: dict[tuple[str, int], BatchReport] = {}  # by flow and batch: counts of the query are missing
        self._reported: dict[str, int] = {}  # the last reported batch, by run id of the query
        self._next_s = 0.0

    def add(self, flow: Flow) -> None:
        """Reports what the query of this flow counts: unparsed records, rows that Spark itself writes to files."""
        if flow.counted:
            self._counting[flow.name] = flow
        if flow.files is not None:
            self._files[flow.name] = flow.files.name

    def note_written(self, flow: str, number: int, rows: Mapping[str, int]) -> None:
        """Takes the rows of tables and views of a batch, to be reported with the counts that its query observes."""
        self._written[flow, number] = rows

    def take(self, report: BatchReport) -> None:
        """Reports a batch from `foreachBatch`, once Spark has reported the counts of its query if there are any."""
        if report.flow in self._counting:
            self._awaiting[report.flow, report.number] = report
        else:
            self._report(report)

    def turn(self, queries: Mapping[str, StreamingQuery], *, is_last: bool = False) -> None:
        """Reports new batches; rate-limited, so that it can be called often."""
        now_s = time.monotonic()
        if now_s < self._next_s and not is_last:
            return
        self._next_s = now_s + ASK_EVERY_S
        for flow, query in queries.items():
            if flow in self._passes or flow in self._counting or flow in self._files:
                try:
                    self._ask(flow, query)
                except PySparkException:
                    continue  # the query is ending; its failure is reported by Running

    def _ask(self, flow: str, query: StreamingQuery) -> None:
        reported = self._reported.setdefault(str(query.runId), NO_BATCH)
        last = query.lastProgress
        if last is None or last.batchId <= reported:
            return
        for progress in progress_after(query, reported):
            if progress.batchId > self._reported[str(query.runId)] and "addBatch" in progress.durationMs:
                self._reported[str(query.runId)] = progress.batchId
                self._report(self._report_of(flow, progress))

    def _report_of(self, flow: str, progress: Any) -> BatchReport:
        metrics = progress.observedMetrics
        found = [metrics[name].asDict() for name in metrics if name.startswith(OBSERVED)]
        observed = {name: count for each in found for name, count in each.items()}
        counted = self._counting[flow].counted if flow in self._counting else ()
        unparsed = sum(observed.get(unparsed_name(each)) or 0 for each in counted)
        awaiting = self._awaiting.pop((flow, progress.batchId), None)
        if awaiting is not None:
            return replace(awaiting, rejected=awaiting.rejected + unparsed)
        counts = self._passes[flow].counts if flow in self._passes else ()
        written = dict(self._written.pop((flow, progress.batchId), {}))
        written |= written_rows(counts, observed)
        if flow in self._files:
            written[self._files[flow]] = observed.get(written_name(self._files[flow])) or 0
        seconds = progress.batchDuration / 1000
        rejected = unparsed_rows(counts, observed) + unparsed
        violations = observed_violations(counts, observed)
        return BatchReport(flow, progress.batchId, progress.numInputRows, rejected, violations, seconds, written)
