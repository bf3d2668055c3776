"""A pipeline that runs on given micro-batches: its flows, their streaming queries and `foreachBatch` are production's.

Only the ends are others: records are read from files, one for each micro-batch, and written to files.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import TimerValues

from odradek.pipelines.definition.model import TableTarget, TopicOrigin
from odradek.pipelines.definition.operations import KeyedState
from odradek.pipelines.definition.vocabulary import Engine, Otherwise, StateClock
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.counts import Violations
from odradek.pipelines.spark.engines.standard import StandardEngine, run_batch
from odradek.pipelines.spark.reading.record_files import add_batch_file, add_records, source_folder
from odradek.pipelines.spark.rehearsal.local_pipeline import FolderCluster
from odradek.pipelines.spark.sessions.user_code import load_module, load_reference
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.warehouse import warehouse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    from odradek.pipelines.definition.model import Pipeline, Source, Step
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.engines.running import Running

END_OF_TIME_MS = 1000 * 86_400_000  # far enough to close every window


class Rehearsal:
    """A run of a pipeline whose ends are in `folder` (see `with_local_ends`).

    `feed` adds a micro-batch: records (dictionaries of Kafka's columns) of topics, and rows of other sources. `run`
    processes what was fed. `advance` moves event time and processing time.
    """

    def __init__(self, session: SparkSession, plan: Plan, folder: Path) -> None:
        self._session = session
        self._plan = plan
        self._pipeline = plan.pipeline
        self._folder = folder
        self._fed = 0
        self._is_behind = False
        self._later_ms = 0  # by how much `advance` has moved processing time, the last time at `_moved_at_ms`
        self._moved_at_ms = 0
        self._violations: Counter[tuple[str, str, Otherwise]] = Counter()
        self._flows: set[str] = set()
        self.written: Counter[str] = Counter()  # rows by sink and view, where they are counted
        self.late_rows: Counter[str] = Counter()  # rows that watermarks declared late, by flow
        for source in plan.pipeline.sources:
            source_folder(folder, source.name).mkdir(parents=True, exist_ok=True)

    def feed(self, given: Mapping[str, Sequence[Any]]) -> None:
        """Adds a micro-batch; sources that are not named have no rows in it."""
        fed = [each for each in self._pipeline.sources if each.is_stream or each.name in given]
        if any(not each.is_stream for each in fed):
            self.run()  # a static source is read in each batch, so that earlier batches must not see these rows
        for source in fed:
            self._add(source, given.get(source.name, ()))
        self._fed += 1
        self._is_behind = True

    def _add(self, source: Source, rows: Sequence[Any]) -> None:
        if isinstance(source.origin, TopicOrigin):
            add_records(self._folder, source.name, self._fed, rows)
        else:
            lines = "".join(f"{json.dumps(row)}\n" for row in rows)
            add_batch_file(
                source_folder(self._folder, source.name), self._fed, lambda path: Path(path).write_text(lines)
            )

    def run(self) -> None:
        """Processes the micro-batches that were added since the last run."""
        if self._is_behind:
            self._is_behind = False
            self._run()

    def _run(self, only: Collection[str] | None = None) -> None:
        """Runs all flows, or those that are named, until they have processed everything."""
        cluster = FolderCluster(self._folder)
        if self._pipeline.engine is Engine.BATCH:
            self._count(run_batch(self._session, self._plan, cluster))
            return
        running = self._started(cluster, only)
        try:
            running.wait(lambda: False)
        finally:
            running.stop()
            self._flows.update(running.queries)
            for flow, query in running.queries.items():
                for progress in query.recentProgress:
                    self.late_rows[flow] += sum(each.numRowsDroppedByWatermark for each in progress.stateOperators)

    def _started(self, cluster: FolderCluster, only: Collection[str] | None) -> Running:
        pipeline = self._with_clock()
        plan = self._plan if pipeline is self._pipeline else plan_again(pipeline)
        engine = StandardEngine(self._session, plan, cluster, self._count)
        return engine.start(until_caught_up=True, only=only)

    def _is_stream(self, step: str) -> bool:
        """Also of an end, which refuses the rows that it cannot store in each batch."""
        table = self._plan.tables.get(step.lower())
        return table is None or table.path.is_stream

    def advance(self, milliseconds: int, *, is_event_time_only: bool = False) -> None:
        """Moves event time and processing time, and lets windows close and timers fire."""
        self.run()
        if not is_event_time_only:
            self._later_ms += milliseconds
        self._moved_at_ms = int(time.time() * 1000) + self._later_ms
        checkpoints = {flow: Path(self._pipeline.checkpoints or "", flow) for flow in self._flows}
        with_state = [
            flow
            for flow, checkpoint in checkpoints.items()
            if add_empty_batch(checkpoint, milliseconds, self._moved_at_ms)
        ]
        if with_state:
            self._run(with_state)

    def finish(self) -> None:
        """Lets event time pass the end of every window."""
        self.advance(END_OF_TIME_MS, is_event_time_only=True)

    def close(self) -> None:
        """Closes the connections to databases."""
        urls = [each.target.url for each in self._pipeline.sinks if isinstance(each.target, TableTarget)]
        for url in {database_url(self._pipeline, each) for each in [*urls, None]}:
            warehouse(url).engine.dispose()

    @property
    def violations(self) -> tuple[Violations, ...]:
        return tuple(Violations(*name, rows) for name, rows in self._violations.items())

    def _count(self, report: BatchReport) -> None:
        self.written.update(report.written)
        for each in report.violations:
            name = each.step, each.expectation, each.otherwise
            # The rows of static steps are counted by each run, so that the last count has all of them.
            self._violations[name] = each.rows + (self._violations[name] if self._is_stream(each.step) else 0)

    def _with_clock(self) -> Pipeline:
        """The pipeline with processors whose clock is as late as `advance` has made it."""
        if not self._later_ms:
            return self._pipeline
        return replace(self._pipeline, steps=tuple(map(self._step_with_clock, self._pipeline.steps)))

    def _step_with_clock(self, step: Step) -> Step:
        operation = step.operation
        if not isinstance(operation, KeyedState) or operation.clock is not StateClock.PROCESSING:
            return step
        directory, reference = self._pipeline.directory, operation.processor
        later = with_later_clock(load_reference(reference, directory), self._later_ms, self._moved_at_ms)
        name = f"{reference.name}_{self._later_ms}_ms_later"
        setattr(load_module(reference, directory), name, later)
        return replace(step, operation=replace(operation, processor=replace(reference, name=name)))


def add_empty_batch(checkpoint: Path, event_time_ms: int, processing_time_ms: int) -> bool:
    """Adds a batch whose watermark is `event_time_ms` later, at a processing time; False if the query has no state.

    A watermark that no row has set stays unset.
    """
    batches = [int(each.name) for each in (checkpoint / "offsets").glob("[0-9]*")]
    if not batches or not (checkpoint / "state").is_dir():
        return False
    last = max(batches)
    version, metadata, *offsets = (checkpoint / "offsets" / str(last)).read_text().split("\n")
    times: dict[str, Any] = json.loads(metadata)
    watermark_ms = int(
        json.loads((checkpoint / "commits" / str(last)).read_text().split("\n")[1])["nextBatchWatermarkMs"]
    )
    times["batchWatermarkMs"] = watermark_ms + event_time_ms if watermark_ms > 0 else 0
    times["batchTimestampMs"] = processing_time_ms
    (checkpoint / "offsets" / str(last + 1)).write_text("\n".join([version, json.dumps(times), *offsets]))
    return True


def with_later_clock(processor: type[StatefulProcessor], later_ms: int, since_ms: int) -> type[StatefulProcessor]:
    """The processor with its processing time moved by `later_ms`, except in batches at `since_ms` or after it."""

    def moved(values: TimerValues) -> TimerValues:
        now_ms = values.getCurrentProcessingTimeInMs()
        return TimerValues(now_ms if now_ms >= since_ms else now_ms + later_ms, values.getCurrentWatermarkInMs())

    def handle_input_rows(self: Any, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Any]:  # noqa: N803 - Spark passes it by this name
        return processor.handleInputRows(self, key, rows, moved(timerValues))

    def handle_expired_timer(
        self: Any,
        key: Any,
        timerValues: TimerValues,  # noqa: N803 - as above
        expiredTimerInfo: Any,  # noqa: N803 - as above
    ) -> Iterator[Any]:
        return processor.handleExpiredTimer(self, key, moved(timerValues), expiredTimerInfo)

    methods = {"handleInputRows": handle_input_rows, "handleExpiredTimer": handle_expired_timer}
    return type(processor.__name__, (processor,), {**methods, "__module__": "__main__"})  # sent to workers by value
