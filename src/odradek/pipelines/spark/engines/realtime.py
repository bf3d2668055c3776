"""The realtime engine: Spark's real-time mode, which writes each record as soon as it is processed.

One query writes all topics and the dead letters: each input record is mapped to an array of output records. If a graph
cannot be expressed that way, every output is a branch that reads the source again. Real-time mode runs all tasks of a
query concurrently until the batch ends, so a local Spark needs as many threads as there are tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.spark_version import REALTIME_HINT, realtime_refusal
from odradek.pipelines.operating.fingerprints import REALTIME_FLOW as FLOW
from odradek.pipelines.planning.flow import Flow
from odradek.pipelines.spark.checkpoints import checkpoint_uri
from odradek.pipelines.spark.engines.realtime_branches import Branches, branches_of, refuse_failing
from odradek.pipelines.spark.engines.realtime_tasks import branch_tasks, check_threads, jvm_processors, pass_tasks
from odradek.pipelines.spark.engines.reports import Reports
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.engines.settings import checkpoint_settings, query_settings
from odradek.pipelines.spark.expectations import fail_on
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.one_pass.passing import Pass, whole_pass
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.producers import producer_of, producer_options
from odradek.pipelines.spark.sources import read_once, read_stream
from odradek.pipelines.spark.static_steps import static_violations, with_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.progress import BatchReport
    from odradek.pipelines.spark.topics import Cluster

CHECKPOINT_EVERY = "30 seconds"  # checkpoint interval: the input that is replayed after a failure
AT_ONCE = {"linger.ms": "0"}


class AcceptReads(Protocol):
    """Raises an error if the checkpoint has offsets of other reads of the streams."""

    def __call__(self, *, is_one_pass: bool) -> None: ...


class RealtimeEngine:
    """Starts the single query of a pipeline."""

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        cluster: Cluster,
        report: Callable[[BatchReport], None] = lambda _report: None,
        accept_reads: AcceptReads = lambda **_how: None,
    ) -> None:
        self._accept_reads = accept_reads
        self._report = report
        self._session = session
        self._pipeline = pipeline
        self._cluster = cluster

    def start(self) -> Running:
        if refusal := realtime_refusal():
            raise PipelineError(f"{self._pipeline.name}: {refusal}; {REALTIME_HINT}")
        graph = build_graph(self._pipeline)
        planned = self._planned(graph)
        is_one_pass = isinstance(planned, Pass)
        self._accept_reads(is_one_pass=is_one_pass)
        self._check_threads(is_one_pass=is_one_pass)
        static = static_violations(self._session, self._pipeline, graph, self._load)
        fail_on(static)
        running = Running(Reports({FLOW: planned}, with_first(self._report, static)))
        writer: Any = self._writer(planned)  # missing in PySpark's type annotations
        self._cluster.create_awaited()
        with query_settings(self._session, checkpoint_settings(self._session, self._pipeline)):
            running.add(FLOW, writer.trigger(realTime=CHECKPOINT_EVERY).start())
        return running

    def _check_threads(self, *, is_one_pass: bool) -> None:
        count_tasks = pass_tasks if is_one_pass else branch_tasks
        master = self._session.sparkContext.master or ""
        tasks = count_tasks(self._pipeline, self._cluster)
        check_threads(self._pipeline, tasks, master, jvm_processors(self._session))

    def _planned(self, graph: Graph) -> Pass | Branches:
        pipeline = self._pipeline
        try:
            return self._one_pass(graph)
        except NotLiftable as reason:
            refuse_failing(pipeline, graph, reason)
            return branches_of(self._session, pipeline, graph, self._load)

    def _writer(self, planned: Pass | Branches) -> DataStreamWriter:
        if self._pipeline.has_console:
            return self._named(planned.frame).format("console")
        if isinstance(planned, Pass):
            ((_, every),) = planned.records_in(planned.observed())
        else:
            every = planned.frame
        return self._named(every).format("kafka").options(**producer_options(producer_of(self._pipeline), AT_ONCE))

    def _named(self, frame: DataFrame) -> DataStreamWriter:
        writer = frame.writeStream.queryName(f"{self._pipeline.name}/{FLOW}").outputMode("update")
        return writer.option("checkpointLocation", checkpoint_uri(self._pipeline, FLOW))

    def _one_pass(self, graph: Graph) -> Pass:
        pipeline = self._pipeline
        streams = [each for each in pipeline.sources if each.is_stream]
        if len(streams) != 1:
            raise NotLiftable("sources")
        if pipeline.has_console:
            raise NotLiftable("a console")
        flow = whole_flow(pipeline, graph, streams[0].name)
        return whole_pass(pipeline, flow, self._load(streams[0]))

    def _load(self, source: Source) -> DataFrame:
        """Reads a source. Tables are broadcast: real-time mode runs no other join, and Spark itself broadcasts tables
        that it knows to be small, which those of databases and topics are not."""
        if source.is_stream:
            return read_stream(self._session, source, self._pipeline, self._cluster.partitions_of)
        return F.broadcast(read_once(self._session, source, self._pipeline, self._cluster.partitions_of))


def whole_flow(pipeline: Pipeline, graph: Graph, source: str) -> Flow:
    """A pipeline with one source as a single flow."""
    steps = {each.name for each in pipeline.steps}
    after = tuple(name for name in graph.order if name in steps)
    return Flow(FLOW, source, after=after, sinks=pipeline.sinks, owned=frozenset({source, *after}))
