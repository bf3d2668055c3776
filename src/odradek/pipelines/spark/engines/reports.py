"""Tells of each batch from Spark's own progress events, with what was counted in one pass."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from odradek.pipelines.spark.one_pass.passing import OBSERVED
from odradek.pipelines.spark.progress import BatchReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.pipelines.spark.one_pass.passing import Pass

PATIENCE_S = 5.0


class Reports(StreamingQueryListener):
    """Listens for the queries of one pipeline. Spark's events come on a thread of their own, and late."""

    def __init__(self, pipeline: str, passes: Mapping[str, Pass], report: Callable[[BatchReport], None]) -> None:
        self._prefix = f"{pipeline}/"
        self._passes = passes
        self._report = report
        self._names: dict[str, str] = {}  # of queries that have not ended, by their run
        self._is_over = threading.Condition()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        if (event.name or "").startswith(self._prefix):
            with self._is_over:
                self._names[str(event.runId)] = event.name.removeprefix(self._prefix)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        flow = self._names.get(str(progress.runId))
        made = None if flow is None else self._passes.get(flow)
        if flow is None or made is None:
            return
        counts = progress.observedMetrics.get(OBSERVED)
        rejected, violations = made.counted({} if counts is None else counts.asDict())
        seconds = progress.batchDuration / 1000
        self._report(BatchReport(flow, progress.batchId, progress.numInputRows, rejected, violations, seconds))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing came."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        with self._is_over:
            self._names.pop(str(event.runId), None)
            self._is_over.notify_all()

    def wait_for_the_last(self) -> None:
        """Until the events of all queries that have ended are here."""
        with self._is_over:
            self._is_over.wait_for(lambda: not self._names, PATIENCE_S)
