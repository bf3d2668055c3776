"""A pipeline that runs: what every engine gives back."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipelines.spark.failures import PipelineError, plain_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.1
INITIALIZING = "Initializing sources"  # Spark's words


class PipelineFailed(PipelineError):
    """A flow ended by itself; the message says which and why."""


class Running:
    """The streaming queries of a pipeline: they run together, and end together."""

    def __init__(self) -> None:
        self.queries: dict[str, StreamingQuery] = {}
        self._failures: dict[str, BaseException] = {}
        self._lock = threading.Lock()

    def add(self, flow: str, query: StreamingQuery) -> None:
        self.queries[flow] = query

    def note(self, flow: str, error: BaseException) -> None:
        """What a batch died of; Spark tells it wrapped in its own words."""
        with self._lock:
            self._failures.setdefault(flow, error)

    def await_sources(self, flow: str) -> None:
        """A source in Python is a process that Spark gives ten seconds to start: they had better start one by one."""
        query = self.queries[flow]
        while query.isActive and query.status["message"] == INITIALIZING:
            time.sleep(POLL_S)  # a poll's pause

    @property
    def is_active(self) -> bool:
        return any(query.isActive for query in self.queries.values())

    def wait(self, is_stopped: Callable[[], bool], each_turn: Callable[[], None] = lambda: None) -> None:
        """Until told to stop, until all flows are done, or until one fails."""
        while not is_stopped() and self.is_active:
            each_turn()
            self.raise_failure()
            time.sleep(POLL_S)
        self.raise_failure()

    def raise_failure(self) -> None:
        for flow, query in self.queries.items():
            if query.isActive:
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
