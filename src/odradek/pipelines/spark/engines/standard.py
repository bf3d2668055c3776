"""The standard engine: micro-batches. A flow is a streaming query whose batches are written to all of its ends.
`run_batch` computes a plan once, over all existing records or over a range of offsets or times."""

from __future__ import annotations

import functools
import os
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.pipelines.definition.model import FilesTarget, Source
from odradek.pipelines.definition.vocabulary import Delivery, Duration
from odradek.pipelines.operating.checkpoints import checkpoint_uri
from odradek.pipelines.planning.splitting import whole_flow
from odradek.pipelines.spark.computing.counts import OBSERVED, Count, Kind, observing
from odradek.pipelines.spark.computing.fan_out import FanOut, static_violations, without_partitioning
from odradek.pipelines.spark.computing.row_program import (
    EXCLUDED_RULES,
    optimized,
    redundant_rules,
    row_program,
    write_program,
)
from odradek.pipelines.spark.computing.rows import NotCompilable
from odradek.pipelines.spark.engines.flow_queries import (
    checkpoint_settings,
    counts_state_rows,
    keeps_processing_time,
    query_of,
    query_settings,
    settings_of,
)
from odradek.pipelines.spark.engines.progress import Reports
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.reading.sources import read_once, read_stream, source_at
from odradek.pipelines.spark.sessions.private_names import LOG
from odradek.pipelines.spark.writing.batches import outputs_of
from odradek.pipelines.spark.writing.delivery import number_of, run_of, take_over, transactional_write, writes_of
from odradek.pipelines.spark.writing.kafka_records import streamed_to_topics
from odradek.pipelines.spark.writing.warehouse import BatchNumber

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.model import Start
    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.computing.counts import BatchReport, Violations
    from odradek.pipelines.spark.computing.row_program import Records, RowProgram, Write
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.reading.sources import Range
    from odradek.pipelines.spark.writing.topics import Cluster

    Report = Callable[[BatchReport], None]

MOST_THREADS = 32
# State and views cost a commit for each batch, and timers a batch for each trigger: a longer interval saves CPU.
STATE_TRIGGER = Duration(1000)
# With processing-time timers Spark always runs another batch, so that such a stream would never catch up.
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class Prepared(NamedTuple):
    """A query that is ready to start, and its Spark settings."""

    writer: DataStreamWriter
    settings: Mapping[str, str]


class StandardEngine:
    """Starts the flows of a plan; `report` is called with each batch, on a thread of Spark or of `Running.wait`."""

    def __init__(
        self,
        session: SparkSession,
        plan: Plan,
        cluster: Cluster,
        report: Report = lambda _report: None,
        starts: Mapping[str, Start] | None = None,  # of flows whose start a reset has set
    ) -> None:
        self._session, self._plan, self._cluster = session, plan, cluster
        self._report, self._starts = report, starts or {}
        self._slow_flow_count = 0
        self._epoch = 0  # of this run, if it delivers exactly once

    def start(self, *, until_caught_up: bool = False, only: Collection[str] | None = None) -> Running:
        """Starts all flows, or only those that are named."""
        plan, pipeline = self._plan, self._plan.pipeline
        load = functools.partial(self._load, start=None)
        static = static_violations(self._session, plan, load) if only is None else ()
        steps = {each.name: each.owner.name for each in plan.tables.values()}
        self._reports = Reports(with_first(self._report, static), steps)
        self._running = Running(self._reports)
        flows = [each for each in plan.flows if only is None or each.name in only]
        prepared = [(flow, self._prepared(flow)) for flow in flows]
        self._cluster.create_awaited()
        self._epoch = take_over(pipeline, [writes_of(plan, each) for each in flows], self._cluster.id)
        checkpoints = checkpoint_settings(self._session, pipeline)
        try:
            for flow, (writer, own) in prepared:
                triggered = self._triggered(flow, writer, until_caught_up=until_caught_up)
                is_endless = until_caught_up and keeps_processing_time(plan, flow)
                settings = {**checkpoints, **({EMPTY_BATCHES: "false"} if is_endless else {}), **own}
                if not counts_state_rows(pipeline, settings):
                    self._running.uncounted.add(flow.name)
                self._running.begin(flow.name, functools.partial(self._begin, flow, triggered, settings))
        except BaseException:
            self._running.stop()
            raise
        return self._running

    def _begin(self, flow: Flow, writer: DataStreamWriter, settings: Mapping[str, str]) -> StreamingQuery:
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", flow.name)
        with query_settings(self._session, settings):
            return writer.start()

    def _prepared(self, flow: Flow) -> Prepared:
        load = functools.partial(self._load, start=self._starts.get(flow.name))
        writer, own = self._writer(flow, *query_of(self._session, self._plan, flow, load))
        return Prepared(writer, {**own, **settings_of(self._session, self._plan, flow)})

    def _writer(self, flow: Flow, frame: DataFrame, counts: list[Count]) -> Prepared:
        """The query of a flow; `counts` are those that its frame observes."""
        if flow.files is not None and isinstance(flow.files.target, FilesTarget):
            written = Count(Kind.WRITTEN, flow.files.name, "count(1)")
            self._reports.expect(flow.name, [*counts, written], is_whole=True)
            counted = observing(frame, [written], f"{OBSERVED} of {flow.name}")
            return Prepared(self._file_writer(flow, counted, flow.files.target), {})
        program = self._program_of(flow, frame)
        if program is None:
            if counts:
                self._reports.expect(flow.name, counts, is_whole=False)
            writer = self._named(flow, without_partitioning(frame))
            return Prepared(writer.foreachBatch(self._taking(flow, self._fan_out(flow))), {})
        self._reports.expect(flow.name, [*counts, *program.counts], is_whole=True)
        if program.is_direct and self._plan.pipeline.delivery is Delivery.AT_LEAST_ONCE:
            return self._of_records(flow, program)
        return Prepared(
            self._named(flow, program.observed()).foreachBatch(self._taking(flow, self._of_program(flow, program))), {}
        )

    def _program_of(self, flow: Flow, frame: DataFrame) -> RowProgram | None:
        """The program of a flow that is computed row by row; None if it is computed as frames."""
        if not flow.is_row_program:
            return None
        try:
            return row_program(self._plan, flow, frame)
        except NotCompilable as error:
            LOG.warning("flow %s is computed as frames, which takes longer: %s", flow.name, error)
            return None

    def _fan_out(self, flow: Flow) -> Callable[[DataFrame, BatchNumber], None]:
        fan_out = FanOut(self._plan, flow, self._load_static)

        def process(batch: DataFrame, stamp: BatchNumber) -> None:
            self._reports.take(fan_out(batch, stamp.number, writing(self._plan, flow, stamp)))

        return process

    def _of_program(self, flow: Flow, program: RowProgram) -> Callable[[DataFrame, BatchNumber], None]:
        def process(batch: DataFrame, stamp: BatchNumber) -> None:
            rows = write_program(program, flow, batch, writing(self._plan, flow, stamp))
            self._reports.note_written(flow.name, stamp.number, rows)

        return process

    def _of_records(self, flow: Flow, program: RowProgram) -> Prepared:
        """A query that writes with Spark's Kafka sink, so that no row passes through Python."""
        ((producer, records),) = program.records_in(program.observed())
        planned = optimized(records) if program.is_of_topic else records  # plans with state are not optimized at once
        writer = streamed_to_topics(self._named(flow, planned), producer)
        return Prepared(writer, {} if planned is records else {EXCLUDED_RULES: redundant_rules(self._session)})

    def _file_writer(self, flow: Flow, frame: DataFrame, target: FilesTarget) -> DataStreamWriter:
        writer = self._named(flow, frame).format(str(target.format)).options(**target.options)
        writer = writer.option("path", self._plan.pipeline.below(target.path))
        return writer.partitionBy(*target.partition_by) if target.partition_by else writer

    def _named(self, flow: Flow, frame: DataFrame) -> DataStreamWriter:
        pipeline = self._plan.pipeline
        writer = frame.writeStream.queryName(f"{pipeline.name}/{flow.name}").outputMode(str(flow.mode))
        return writer.option("checkpointLocation", checkpoint_uri(pipeline, flow.name))

    def _taking(
        self, flow: Flow, process: Callable[[DataFrame, BatchNumber], None]
    ) -> Callable[[DataFrame, int], None]:
        run, running = run_of(self._plan.pipeline, flow.name, self._cluster.id), self._running

        def take_batch(batch: DataFrame, number: int) -> None:
            try:
                running.refuse_after_failure(flow.name)
                process(batch, number_of(batch, flow.name, number, self._epoch, run))
            except BaseException as error:
                running.note(flow.name, error)
                raise

        return take_batch

    def _triggered(self, flow: Flow, writer: DataStreamWriter, *, until_caught_up: bool) -> DataStreamWriter:
        """Spark starts batches at multiples of the interval: equal intervals of several flows would start together."""
        if until_caught_up:
            return writer.trigger(availableNow=True)
        pipeline = self._plan.pipeline
        trigger = pipeline.trigger or Duration(0)
        if flow.uses_state_trigger or not isinstance(self._plan.table(flow.root).made_by, Source):
            self._slow_flow_count += 1
            least = (pipeline.state_trigger or STATE_TRIGGER).milliseconds
            trigger = max(trigger, Duration(least * (9 + self._slow_flow_count) // 10))
        return writer.trigger(processingTime=trigger.spark)

    def _load(self, source: Source, start: Start | None) -> DataFrame:
        read = read_stream if source.is_stream else read_once
        return read(self._session, source_at(source, start), self._plan.pipeline, self._cluster.partitions_of)

    def _load_static(self, session: SparkSession, source: Source) -> DataFrame:
        return read_once(session, source, self._plan.pipeline, self._cluster.partitions_of)


def writing(plan: Plan, flow: Flow, stamp: BatchNumber) -> Write:
    """Writes a batch to the ends of a flow."""

    def write(tables: RowsByName, records: Records, rows: Counter[str]) -> None:
        in_transactions = transactional_write(plan.pipeline, writes_of(plan, flow), stamp)
        for write_output in outputs_of(plan, flow, tables, records, stamp, in_transactions, rows):
            write_output()

    return write


def with_first(report: Report, violations: tuple[Violations, ...]) -> Report:
    """Reports batches, with these violations in the first report; called from several threads."""
    pending = [violations] if violations else []

    def report_batch(batch: BatchReport) -> None:
        with suppress(IndexError):  # another thread may have taken them
            batch = replace(batch, violations=batch.violations + pending.pop())
        report(batch)

    return report_batch


def threads_for(plan: Plan) -> int:
    """Threads of a local Spark: tasks are not preempted, and those of one query must not wait for another's."""
    return min(MOST_THREADS, (os.cpu_count() or 1) * max(1, len(plan.flows)))


def run_batch(session: SparkSession, plan: Plan, cluster: Cluster, span: Range | None = None) -> BatchReport:
    """Reads, computes and writes everything; each run counts as one batch with its own checkpoint id."""
    pipeline, flow = plan.pipeline, whole_flow(plan)

    def load(session: SparkSession, source: Source) -> DataFrame:
        is_ranged = source.is_stream or not plan.streams  # a static topic is read whole, as in every batch of a stream
        return read_once(session, source, pipeline, cluster.partitions_of, span if is_ranged else None)

    def write(tables: RowsByName, records: Records, rows: Counter[str]) -> None:
        cluster.create_awaited()  # the queries are analysed
        epoch = take_over(pipeline, [writes_of(plan, flow)], cluster.id)
        stamp = BatchNumber(str(uuid.uuid4()), 0, epoch, run_of(pipeline, flow.name, cluster.id))
        writing(plan, flow, stamp)(tables, records, rows)

    return FanOut(plan, flow, load).whole(session, write)
