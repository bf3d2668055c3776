"""What running queries have done: a report of each batch with its counts, their progress, the ends of their topics.

Queries are polled. A listener in Python would be notified at once, but Spark converts every event field by field, which
took a quarter of the CPU time of the rigs pipeline.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__
from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import StreamingQueryProgress

from odradek.conventions.client_properties import UntranslatableSetting
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.operating.spark_progress import progress_event
from odradek.pipelines.spark.computing.counts import (
    OBSERVED,
    BatchReport,
    Count,
    Kind,
    total,
    violations,
    written,
)
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.private_names import PROGRESS, or_plainly, private
from odradek.pipelines.spark.writing.topics import reads_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.operating.status import Offsets
    from odradek.pipelines.spark.writing.topics import Cluster

ASK_EVERY_S = 1.0
REPORT_EVERY_S = 0.5
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


@dataclass(slots=True)
class _Counted:
    """What is known of a flow whose query observes counts."""

    counts: Sequence[Count]
    is_whole: bool  # the query counts everything but the rows of tables; otherwise `foreachBatch` reports the rest
    rows: dict[int, Mapping[str, int]] = field(default_factory=dict)  # of tables, by batch
    awaiting: dict[int, BatchReport] = field(default_factory=dict)  # by batch
    reported: dict[str, int] = field(default_factory=dict)  # the last reported batch, by run id of the query


class Reports:
    """Reports the batches of all flows. The counts that a query observes come with Spark's progress."""

    def __init__(self, report: Callable[[BatchReport], None], steps: Mapping[str, str]) -> None:
        self._report = report
        self._steps = steps  # the declared step of each hidden table
        self._counted: dict[str, _Counted] = {}
        self._next_s = 0.0

    def expect(self, flow: str, counts: Sequence[Count], *, is_whole: bool) -> None:
        """Waits for the counts that the query of a flow observes."""
        self._counted[flow] = _Counted(counts, is_whole)

    def note_written(self, flow: str, number: int, rows: Mapping[str, int]) -> None:
        """Takes the rows of tables of a batch, to be reported with the counts that its query observes."""
        self._counted[flow].rows[number] = rows

    def take(self, report: BatchReport) -> None:
        """Reports a batch from `foreachBatch`, once Spark has reported the counts of its query if there are any."""
        if report.flow in self._counted:
            self._counted[report.flow].awaiting[report.number] = report
        else:
            self._report(report)

    def turn(self, queries: Mapping[str, StreamingQuery], *, is_last: bool = False) -> None:
        """Reports new batches; rate-limited, so that it can be called often."""
        now_s = time.monotonic()
        if now_s < self._next_s and not is_last:
            return
        self._next_s = now_s + REPORT_EVERY_S
        for flow, query in queries.items():
            if flow in self._counted:
                try:
                    self._ask(flow, self._counted[flow], query)
                except PySparkException:
                    continue  # the query is ending; its failure is reported by Running

    def _ask(self, flow: str, counted: _Counted, query: StreamingQuery) -> None:
        run = str(query.runId)
        reported = counted.reported.setdefault(run, NO_BATCH)
        last = query.lastProgress
        if last is None or last.batchId <= reported:
            return
        for progress in progress_after(query, reported):
            if progress.batchId > counted.reported[run] and "addBatch" in progress.durationMs:
                counted.reported[run] = progress.batchId
                report = self._report_of(flow, counted, progress)
                if report is not None:
                    self._report(report)

    def _report_of(self, flow: str, counted: _Counted, progress: Any) -> BatchReport | None:
        metrics = progress.observedMetrics
        found = [metrics[name].asDict() for name in metrics if name.startswith(OBSERVED)]
        observed = {name: rows for each in found for name, rows in each.items()}
        refused = total(Kind.REFUSED, counted.counts, observed) or 0
        unmet = violations(counted.counts, observed, self._steps)
        if not counted.is_whole:
            report = counted.awaiting.pop(progress.batchId, None)
            if report is None:  # a batch without rows, or of an earlier run
                return None
            return replace(report, rejected=report.rejected + refused, violations=(*report.violations, *unmet))
        rows = {**counted.rows.pop(progress.batchId, {}), **written(counted.counts, observed)}
        seconds = progress.batchDuration / 1000
        return BatchReport(flow, progress.batchId, progress.numInputRows, refused, unmet, seconds, rows)


class ProgressWatch:
    """Sends an event for new progress of each query, and one for the end offsets of its topics."""

    def __init__(
        self, pipeline: Pipeline, cluster: Cluster, queries: Mapping[str, StreamingQuery], send: Callable[[Event], None]
    ) -> None:
        self._queries, self._cluster = queries, cluster
        self._send = send
        self._origins = [each.origin for each in pipeline.sources if isinstance(each.origin, TopicOrigin)]
        self._positions: dict[str, Offsets] = {}
        self._batches: dict[str, int] = {}  # the last batch sent, by flow
        self._next_s = 0.0

    def turn(self) -> None:
        """Polls and sends events; rate-limited, so that it can be called often."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + ASK_EVERY_S
        for flow, query in self._queries.items():
            try:
                self._ask(flow, query)
            except PySparkException:
                continue  # the query is ending; its failure is reported by Running
        topics = {topic for each in self._positions.values() for topic in each}
        ends = topic_ends(self._cluster, self._origins, topics)
        for flow, positions in self._positions.items():
            self._send(
                {"kind": "ends", "flow": flow, "offsets": {topic: ends[topic] for topic in positions if topic in ends}}
            )

    def _ask(self, flow: str, query: StreamingQuery) -> None:
        last = query.lastProgress
        if last is None:
            return
        before = self._batches.get(flow, NO_BATCH)
        if last.batchId > before + 1:  # every batch is sent, because its late rows are counted
            for each in progress_after(query, before):
                if each.batchId < last.batchId:
                    self._send(progress_event(flow, each))
        self._batches[flow] = last.batchId
        event = progress_event(flow, last)
        self._positions[flow] = event["positions"]
        self._send(event)


def topic_ends(cluster: Cluster, origins: Iterable[TopicOrigin], topics: Collection[str]) -> Offsets:
    """The end offsets of topics at the brokers of their sources; without those whose brokers do not respond in time."""
    wanted: dict[Cluster, set[str]] = {}
    found: dict[str, dict[int, int]] = {}
    for origin in origins:
        named = {each for each in topics if reads_topic(origin, each)}
        if named:
            with suppress(PipelineError, UntranslatableSetting):
                wanted.setdefault(cluster.at(origin), set()).update(named)
    for home, names in wanted.items():
        with suppress(KafkaException, PipelineError, TimeoutError):
            found = {**home.offsets(names, OffsetSpec.latest()), **found}  # type: ignore[no-untyped-call]  # confluent_kafka has no types here
    return {topic: {str(each): offset for each, offset in offsets.items()} for topic, offsets in found.items()}
