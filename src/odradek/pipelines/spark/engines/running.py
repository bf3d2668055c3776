"""A running pipeline, as every engine returns it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.spark.engines.progress import Reports

POLL_S = 0.1
LATE_WORKER = "Python worker failed to connect back"  # a message of Spark
LATE_STARTS = 5


class PipelineFailed(PipelineError):
    """A flow failed; the message names it and the cause."""


class FlowStopped(PipelineError):
    """Another flow of the pipeline has failed, so this one writes nothing more."""


class Running:
    """The streaming queries of a pipeline, which are stopped together."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self.queries: dict[str, StreamingQuery] = {}
        self.uncounted: set[str] = set()  # flows in whose state Spark does not count the rows
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._late_starts: Counter[str] = Counter()
        self._failures: dict[str, BaseException] = {}
        self._stopped: set[str] = set()  # flows that were refused a batch after the failure of another
        self._lock = threading.Lock()

    def add(self, flow: str, query: StreamingQuery) -> None:
        self.queries[flow] = query

    def note(self, flow: str, error: BaseException) -> None:
        """Records the exception of a failed batch; Spark itself reports it wrapped in its own."""
        with self._lock:
            if isinstance(error, FlowStopped):
                self._stopped.add(flow)
            else:
                self._failures.setdefault(flow, error)

    def refuse_after_failure(self, flow: str) -> None:
        """Raises if another flow has failed: what this flow would write may depend on the cause."""
        with self._lock:
            failed = [name for name, error in self._failures.items() if LATE_WORKER not in str(error)]
        if failed and flow not in failed:
            raise FlowStopped(f"flow {failed[0]} failed; the batch is not written")

    def begin(self, flow: str, start: Callable[[], StreamingQuery]) -> None:
        self._starts[flow] = start
        self.add(flow, start())

    @property
    def is_active(self) -> bool:
        return any(query.isActive for query in self.queries.values())

    def wait(self, is_stopped: Callable[[], bool], each_turn: Callable[[], None] = lambda: None) -> None:
        """Waits until `is_stopped`, until all flows are done, or until one fails."""
        while not is_stopped():
            is_active = self.is_active  # before the late flows: one that ends in between is restarted in the next turn
            if self._restart_late_flows():
                continue
            if not is_active:
                break
            self._reports.turn(self.queries)
            each_turn()
            self.raise_failure()
            time.sleep(POLL_S)
        self.raise_failure()

    def _restart_late_flows(self) -> bool:
        """Restarts flows whose Python process started too late; returns whether there were any."""
        late = [flow for flow, query in self.queries.items() if self._started_too_late(flow, query)]
        for flow in late:
            self._late_starts[flow] += 1
            with self._lock:
                self._failures.pop(flow, None)
            self.begin(flow, self._starts[flow])
        return bool(late)

    def _started_too_late(self, flow: str, query: StreamingQuery) -> bool:
        """Whether Spark ended the query because the process of its keyed state did not connect within ten seconds."""
        if query.isActive or flow not in self._starts or self._late_starts[flow] >= LATE_STARTS:
            return False
        return LATE_WORKER in str(query.exception())

    def raise_failure(self) -> None:
        for flow, query in self.queries.items():
            if query.isActive or flow in self._stopped or self._started_too_late(flow, query):
                continue
            error = query.exception()
            if error is not None:
                self.note(flow, error)
                cause = self._failures.get(flow, error)
                raise PipelineFailed(f"{flow}: {plain_message(cause)}") from cause

    def stop(self) -> None:
        """Stops every flow, all at the same time; an unfinished batch is replayed by the next run."""

        def stop(query: StreamingQuery) -> None:
            with suppress(PySparkException):  # it did not stop in time; stopping the Spark session ends it
                query.stop()

        with ThreadPoolExecutor(max(1, len(self.queries))) as pool:
            list(pool.map(stop, self.queries.values()))
        self._reports.turn(self.queries, is_last=True)
