"""The standard engine: micro-batches. A flow is a streaming query whose batches `foreachBatch` writes to all sinks."""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import FilesTarget, RunningAggregate
from odradek.pipelines.definition.operations import KeyedState
from odradek.pipelines.definition.vocabulary import Delivery, Duration, SinkMode, StateClock
from odradek.pipelines.operating.checkpoints import checkpoint_uri
from odradek.pipelines.planning import failing_steps
from odradek.pipelines.planning.flow import state_interval
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import streaming_names
from odradek.pipelines.spark.batch_numbers import number_of
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.engines.reports import Reports
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.engines.settings import (
    checkpoint_settings,
    counts_state_rows,
    query_settings,
    state_settings,
)
from odradek.pipelines.spark.fan_out import FanOut, without_partitioning
from odradek.pipelines.spark.flow_writes import writes_of
from odradek.pipelines.spark.function_steps import stand_in, with_analysed_functions
from odradek.pipelines.spark.observed_counts import OBSERVED, unparsed_counts, written_name
from odradek.pipelines.spark.one_pass.batches import write_batch
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.one_pass.planning import EXCLUDED_RULES, optimized, redundant_rules
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.reading.records import decoded
from odradek.pipelines.spark.reading.sources import is_topic, read_once, read_source, source_at
from odradek.pipelines.spark.sinks.batches import shown
from odradek.pipelines.spark.sorted_batches import sorting_settings
from odradek.pipelines.spark.stateful_plans import keeps_state
from odradek.pipelines.spark.static_steps import static_violations, with_first
from odradek.pipelines.spark.steps import StepBroken
from odradek.pipelines.spark.views import running_aggregate
from odradek.pipelines.spark.writing.kafka_records import streamed_to_topics
from odradek.pipelines.spark.writing.run_takeover import run_of, take_over

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source, Start, Step
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.one_pass.passing import Pass
    from odradek.pipelines.spark.writing.topics import Cluster
    from odradek.pipelines.spark.writing.warehouse import BatchNumber

MOST_THREADS = 32
# With processing-time timers Spark always runs another batch, so that such a stream would never catch up.
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class Prepared(NamedTuple):
    """A query that is ready to start, and its Spark settings."""

    writer: DataStreamWriter
    settings: Mapping[str, str]


class StandardEngine:
    """Starts the flows of a pipeline; `report` is called with each batch, on a thread of Spark."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        cluster: Cluster,
        report: Callable[[BatchReport], None] = lambda _report: None,
        starts: Mapping[str, Start] | None = None,  # of flows whose start a reset has set
    ) -> None:
        self._session = session
        self._pipeline = pipeline
        self._cluster_id = cluster.id
        self._partitions = cluster.partitions_of
        self._create_topics = cluster.create_awaited
        self._report = report
        self._starts = starts or {}
        self._slow_flow_count = (
            0  # Spark starts batches at multiples of the interval; equal intervals would start at the same time
        )
        self._epoch = 0  # of this run, if it delivers exactly once

    def start(self, *, until_caught_up: bool = False, only: Collection[str] | None = None) -> Running:
        """Starts all flows, or only those that are named."""
        self._pipeline = with_analysed_functions(self._session, self._pipeline)
        graph = build_graph(self._pipeline)
        passes: dict[str, Pass] = {}
        load = functools.partial(self._load, start=None)
        static = [] if only is not None else static_violations(self._session, self._pipeline, graph, load)
        reports = Reports(passes, with_first(self._report, static))
        running = Running(reports)
        flows = [each for each in split_flows(self._pipeline, graph) if only is None or each.name in only]
        for flow in flows:
            reports.add(flow)
        self._reports = reports
        prepared = [(flow, self._prepared(flow, graph, running, passes)) for flow in flows]
        self._create_topics()
        self._epoch = take_over(self._pipeline, [writes_of(self._pipeline, each) for each in flows], self._cluster_id)
        checkpoints = checkpoint_settings(self._session, self._pipeline)
        try:
            for flow, (writer, own) in prepared:
                triggered = self._triggered(flow, writer, until_caught_up=until_caught_up)
                is_endless = until_caught_up and keeps_processing_time(self._pipeline, graph, flow)
                endless = {EMPTY_BATCHES: "false"} if is_endless else {}
                has_join = any(State.STREAM_JOIN in each for each in states_of(self._pipeline, graph, flow))
                state = state_settings(self._pipeline, has_join=has_join)
                settings = {**checkpoints, **endless, **state, **own}
                if not counts_state_rows(self._pipeline, settings):
                    running.uncounted.add(flow.name)
                running.begin(flow.name, functools.partial(self._begin, flow, triggered, settings))
        except BaseException:
            running.stop()
            raise
        return running

    def _begin(self, flow: Flow, writer: DataStreamWriter, settings: Mapping[str, str]) -> StreamingQuery:
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", flow.name)
        with query_settings(self._session, settings):
            return writer.start()

    def _prepared(self, flow: Flow, graph: Graph, running: Running, passes: dict[str, Pass]) -> Prepared:
        load = functools.partial(self._load, start=self._starts.get(flow.name))
        build = functools.partial(stream_of, self._session, self._pipeline, graph, flow, load)
        frame, names = build(), graph.upstream(flow.root)
        sorting = sorting_settings(self._session, self._pipeline, names, flow.mode, frame, build)
        writer, own = self._single(flow, graph, running, passes, frame)
        return Prepared(writer, {**own, **sorting})

    def _single(
        self, flow: Flow, graph: Graph, running: Running, passes: dict[str, Pass], frame: DataFrame
    ) -> Prepared:
        """A query that computes one flow."""
        if flow.files is not None and isinstance(flow.files.target, FilesTarget):
            return Prepared(self._file_writer(flow, frame, flow.files.target), {})
        try:
            made = passes[flow.name] = self._pass_of(flow, graph, frame)
        except NotLiftable:
            self._check_steps(flow, graph, frame)
            fan_out = FanOut(self._pipeline, graph, flow, self._load_static)

            def plan_and_write(batch: DataFrame, stamp: BatchNumber) -> None:
                self._reports.take(fan_out(batch, stamp.number, stamp))

            writer = self._named(flow, without_partitioning(frame))
            return Prepared(writer.foreachBatch(self._taker(flow, running, plan_and_write)), {})
        if made.is_direct and self._pipeline.delivery is Delivery.AT_LEAST_ONCE:
            return self._of_records(flow, made)
        return Prepared(self._named(flow, made.observed()).foreachBatch(self._pass_writer(flow, running, made)), {})

    def _pass_of(self, flow: Flow, graph: Graph, frame: DataFrame) -> Pass:
        """Raises `NotLiftable` if the flow cannot be computed in one pass."""
        is_checked_before = bool(failing_steps.in_query(self._pipeline, graph, flow))
        return replace(whole_pass(self._pipeline, flow, frame), is_checked_before=is_checked_before)

    def _pass_writer(self, flow: Flow, running: Running, made: Pass) -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, stamp: BatchNumber) -> None:
            self._reports.note_written(flow.name, stamp.number, write_batch(self._pipeline, flow, made, batch, stamp))

        return self._taker(flow, running, write)

    def _check_steps(self, flow: Flow, graph: Graph, frame: DataFrame) -> None:
        """Analyses the steps that run in each batch: reports errors at the start, and refuses state among them."""
        pipeline = self._pipeline
        tables = Tables(self._session, pipeline, graph, functools.partial(self._load, start=None), flow.mode)
        source = next((each for each in pipeline.sources if each.name == flow.root), None)
        if flow.aggregate is not None or (source is not None and not is_topic(source)):
            tables.give_rows(flow.root, stand_in(frame))
        elif source is not None:
            tables.give_decoded(flow.root, decoded(stand_in(frame), source))
        else:
            tables.give_rows_before_expectations(flow.root, stand_in(frame))
        for step in pipeline.steps:
            if step.name in flow.after and keeps_state(tables.rows(step.name), if_unknown=False):
                raise StepBroken(
                    f"{step.place}: step '{step.name}' keeps state that validate did not find, so that it would be "
                    "computed for each batch by itself; write it as an aggregate, deduplicate or Python step"
                )

    def _named(self, flow: Flow, frame: DataFrame) -> DataStreamWriter:
        mode = "append" if flow.mode is SinkMode.APPEND else "update"
        checkpoint = checkpoint_uri(self._pipeline, flow.name)
        writer = frame.writeStream.queryName(f"{self._pipeline.name}/{flow.name}").outputMode(mode)
        return writer.option("checkpointLocation", checkpoint)

    def _file_writer(self, flow: Flow, frame: DataFrame, target: FilesTarget) -> DataStreamWriter:
        rows = F.count(F.lit(1)).alias(written_name(flow.files.name if flow.files else flow.name))
        counted = frame.observe(f"{OBSERVED} of {flow.name}", rows)
        writer = self._named(flow, counted).format(str(target.format)).options(**target.options)
        writer = writer.option("path", self._pipeline.below(target.path))
        return writer.partitionBy(*target.partition_by) if target.partition_by else writer

    def _of_records(self, flow: Flow, made: Pass) -> Prepared:
        """A query that writes with Spark's Kafka sink, so that no row passes through Python."""
        ((producer, records),) = made.records_in(made.observed())
        planned = optimized(records) if made.is_of_topic else records  # plans with state are not optimized in advance
        writer = streamed_to_topics(self._named(flow, planned), producer)
        return Prepared(writer, {} if planned is records else {EXCLUDED_RULES: redundant_rules(self._session)})

    def _taker(
        self, flow: Flow, running: Running, write: Callable[[DataFrame, BatchNumber], None]
    ) -> Callable[[DataFrame, int], None]:
        def take_batch(batch: DataFrame, number: int) -> None:
            try:
                running.refuse_after_failure(flow.name)
                run = run_of(self._pipeline, flow.name, self._cluster_id)
                write(batch, number_of(batch, flow.name, number, self._epoch, run))
            except BaseException as error:
                running.note(flow.name, error)
                raise

        return take_batch

    def _triggered(self, flow: Flow, writer: DataStreamWriter, *, until_caught_up: bool) -> DataStreamWriter:
        if until_caught_up:
            return writer.trigger(availableNow=True)
        trigger = self._pipeline.trigger or Duration(0)
        least = state_interval(flow, self._pipeline)
        if least is not None:
            self._slow_flow_count += 1
            trigger = max(trigger, Duration(least.milliseconds * (9 + self._slow_flow_count) // 10))
        return writer.trigger(processingTime=trigger.spark)

    def _load(self, source: Source, start: Start | None) -> DataFrame:
        return read_source(self._session, source_at(source, start), self._pipeline, self._partitions)

    def _load_static(self, batch: DataFrame, source: Source) -> DataFrame:
        return read_once(batch.sparkSession, source, self._pipeline, self._partitions)


def threads_for(pipeline: Pipeline) -> int:
    """Threads of a local Spark: tasks are not preempted, and those of one query must not wait for another's."""
    flows = split_flows(pipeline, build_graph(pipeline))
    return min(MOST_THREADS, (os.cpu_count() or 1) * max(1, len(flows)))


def stream_of(
    session: SparkSession, pipeline: Pipeline, graph: Graph, flow: Flow, load: Callable[[Source], DataFrame]
) -> DataFrame:
    """The streaming part of a flow, up to its root; the root's records are parsed and checked in each batch."""
    counts = {name: unparsed_counts(name) for name in flow.counted}
    tables = Tables(session, pipeline, graph, load, flow.mode, counts)
    if flow.aggregate is not None and isinstance(flow.aggregate.content, RunningAggregate):
        return running_aggregate(tables.rows(flow.root), flow.aggregate.content)
    if flow.files is not None and isinstance(flow.files.target, FilesTarget):
        return shown(tables.rows(flow.root), flow.files.target.partition_by)
    source = next((each for each in pipeline.sources if each.name == flow.root), None)
    if source is None:
        return tables.rows_before_expectations(flow.root)
    return load(source) if is_topic(source) else tables.rows(flow.root)


def states_of(pipeline: Pipeline, graph: Graph, flow: Flow) -> list[State]:
    """The state of each step that the query of a flow computes."""
    streaming = streaming_names(pipeline, graph)
    return [state_of(each, streaming) for each in steps_of(pipeline, graph, flow)]


def keeps_processing_time(pipeline: Pipeline, graph: Graph, flow: Flow) -> bool:
    operations = [each.operation for each in steps_of(pipeline, graph, flow)]
    return any(isinstance(each, KeyedState) and each.clock is StateClock.PROCESSING for each in operations)


def steps_of(pipeline: Pipeline, graph: Graph, flow: Flow) -> list[Step]:
    """The steps that the query of a flow computes."""
    names = graph.upstream(flow.root)
    return [each for each in pipeline.steps if each.name in names]
