"""A pipeline that runs: what every engine gives back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipelines.spark.failures import PipelineError, plain_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.spark.engines.reports import Reports

POLL_S = 0.1
INITIALIZING, LATE_WORKER = "Initializing sources", "Python worker failed to connect back"  # Spark's words
LATE_STARTS = 5
SOURCES_S = 60.0


class PipelineFailed(PipelineError):
    """A flow ended by itself; the message says which and why."""


class Running:
    """The streaming queries of a pipeline: they run together, and end together."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self.queries: dict[str, StreamingQuery] = {}
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._late_starts: Counter[str] = Counter()
        self._failures: dict[str, BaseException] = {}
        self._lock = threading.Lock()

    def add(self, flow: str, query: StreamingQuery) -> None:
        self.queries[flow] = query

    def note(self, flow: str, error: BaseException) -> None:
        """What a batch died of; Spark tells it wrapped in its own words."""
        with self._lock:
            self._failures.setdefault(flow, error)

    def begin(self, flow: str, start: Callable[[], StreamingQuery]) -> None:
        self._starts[flow] = start
        self.add(flow, start())

    def await_sources(self, flow: str) -> None:
        """A source in Python is a process, and several that start at once would keep each other from being in time.

        One that takes very long may be waiting for its brokers, and the others need not wait with it.
        """
        query = self.queries[flow]
        give_up_at = time.monotonic() + SOURCES_S
        while query.isActive and query.status["message"] == INITIALIZING and time.monotonic() < give_up_at:
            time.sleep(POLL_S)  # a poll's pause

    @property
    def is_active(self) -> bool:
        return any(query.isActive for query in self.queries.values())

    def wait(self, is_stopped: Callable[[], bool], each_turn: Callable[[], None] = lambda: None) -> None:
        """Until told to stop, until all flows are done, or until one fails."""
        while not is_stopped():
            if self._begin_again():
                continue
            if not self.is_active:
                break
            self._reports.turn(self.queries)
            each_turn()
            self.raise_failure()
            time.sleep(POLL_S)
        self.raise_failure()

    def _begin_again(self) -> bool:
        """Whether a flow had to be."""
        late = [flow for flow, query in self.queries.items() if self._was_late(flow, query)]
        for flow in late:
            self._late_starts[flow] += 1
            with self._lock:
                self._failures.pop(flow, None)
            self.begin(flow, self._starts[flow])
            self.await_sources(flow)
        return bool(late)

    def _was_late(self, flow: str, query: StreamingQuery) -> bool:
        """Whether Spark gave it up because a Python process of its own was not there within ten seconds."""
        if query.isActive or flow not in self._starts or self._late_starts[flow] >= LATE_STARTS:
            return False
        return LATE_WORKER in str(query.exception())

    def raise_failure(self) -> None:
        for flow, query in self.queries.items():
            if query.isActive or self._was_late(flow, query):
                continue
            error = query.exception()
            if error is not None:
                cause = self._failures.get(flow, error)
                raise PipelineFailed(f"{flow}: {plain_message(cause)}") from cause

    def stop(self) -> None:
        """Ends every flow; what a batch has not finished comes again."""
        for query in self.queries.values():
            try:
                query.stop()
            except PySparkException:
                continue  # it did not end in time, and Spark's session ends it
        self._reports.turn(self.queries, is_last=True)
