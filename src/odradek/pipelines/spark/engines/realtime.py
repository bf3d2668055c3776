"""The realtime engine: Spark's real-time mode, which writes each record as soon as it is processed.

One query writes all topics and the dead letters: each input record is mapped to an array of output records. Real-time
mode runs all tasks of a query concurrently until the batch ends, so a local Spark needs as many threads as there are
tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.checks_engines import STANDARD_HINT
from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.spark_version import REALTIME_HINT, realtime_refusal
from odradek.pipelines.operating.checkpoints import checkpoint_uri
from odradek.pipelines.operating.fingerprints import REALTIME_FLOW as FLOW
from odradek.pipelines.planning.flow import Flow
from odradek.pipelines.spark.engines.realtime_tasks import check_threads, jvm_processors, tasks_of
from odradek.pipelines.spark.engines.reports import Reports
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.engines.settings import checkpoint_settings, query_settings
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.reading.sources import read_stream
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.kafka_records import producer_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.one_pass.passing import Pass
    from odradek.pipelines.spark.writing.topics import Cluster

CHECKPOINT_EVERY = "30 seconds"  # checkpoint interval: the input that is replayed after a failure
AT_ONCE = {"linger.ms": "0"}


class RealtimeEngine:
    """Starts the single query of a pipeline."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        cluster: Cluster,
        report: Callable[[BatchReport], None] = lambda _report: None,
    ) -> None:
        self._report = report
        self._session = session
        self._pipeline = pipeline
        self._cluster = cluster

    def start(self) -> Running:
        pipeline = self._pipeline
        if refusal := realtime_refusal():
            raise PipelineError(f"{pipeline.name}: {refusal}; {REALTIME_HINT}")
        made = self._one_pass(build_graph(pipeline))
        master, processors = self._session.sparkContext.master or "", jvm_processors(self._session)
        check_threads(pipeline, tasks_of(pipeline, self._cluster), master, processors)
        running = Running(Reports({FLOW: made}, self._report))
        writer: Any = self._writer(made)  # missing in PySpark's type annotations
        self._cluster.create_awaited()
        with query_settings(self._session, checkpoint_settings(self._session, pipeline)):
            running.add(FLOW, writer.trigger(realTime=CHECKPOINT_EVERY).start())
        return running

    def _one_pass(self, graph: Graph) -> Pass:
        pipeline = self._pipeline
        source = next(each for each in pipeline.sources if each.is_topic_stream)
        records = read_stream(self._session, source, pipeline, self._cluster.partitions_of)
        try:
            return whole_pass(pipeline, whole_flow(pipeline, graph, source.name), records)
        except NotLiftable as part:
            raise PipelineError(
                f"{pipeline.name}: the realtime engine cannot run SQL that is not known to give each row by itself: "
                f"{part}; write it in another way, or {STANDARD_HINT}"
            ) from part

    def _writer(self, made: Pass) -> DataStreamWriter:
        ((producer, records),) = made.records_in(made.observed())
        writer = records.writeStream.queryName(f"{self._pipeline.name}/{FLOW}").outputMode("update")
        writer = writer.option("checkpointLocation", checkpoint_uri(self._pipeline, FLOW))
        return writer.format("kafka").options(**producer_options(producer, AT_ONCE))


def whole_flow(pipeline: Pipeline, graph: Graph, source: str) -> Flow:
    """A pipeline with one source as a single flow."""
    steps = {each.name for each in pipeline.steps}
    after = tuple(name for name in graph.order if name in steps)
    return Flow(FLOW, source, after=after, sinks=pipeline.sinks, owned=frozenset({source, *after}))
