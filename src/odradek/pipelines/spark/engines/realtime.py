"""The realtime engine: Spark's real-time mode, which writes each record as soon as it is processed.

One query writes all topics and the dead letters: each input record is mapped to an array of output records. If a graph
cannot be expressed that way, every output is a branch that reads the source again. Real-time mode runs all tasks of a
query concurrently for minutes, so a local Spark needs as many threads as there are tasks.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import ConsoleTarget, TopicOrigin, TopicTarget
from odradek.pipelines.definition.spark_version import REALTIME_HINT, realtime_refusal
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.operating.fingerprints import REALTIME_FLOW as FLOW
from odradek.pipelines.planning.flow import Flow
from odradek.pipelines.planning.streams import streaming_names
from odradek.pipelines.spark.checkpoints import checkpoint_uri
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.engines.reports import Reports
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.engines.settings import checkpoint_settings, query_settings
from odradek.pipelines.spark.expectations import has_quarantine, quarantined
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.producers import producer_of, producer_options
from odradek.pipelines.spark.records import rejects_of
from odradek.pipelines.spark.sinks.batches import shown
from odradek.pipelines.spark.sinks.topics import records_of
from odradek.pipelines.spark.sources import is_topic, read_once, read_stream
from odradek.pipelines.spark.static_steps import static_violations, with_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.one_pass.passing import Pass
    from odradek.pipelines.spark.progress import BatchReport
    from odradek.pipelines.spark.topics import Cluster

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
        self._partitions = cluster.partitions_of
        self._create_topics = cluster.create_awaited

    def start(self) -> Running:
        if refusal := realtime_refusal():
            raise PipelineError(f"{self._pipeline.name}: {refusal}; {REALTIME_HINT}")
        passes: dict[str, Pass] = {}
        writer: Any = self._writer(passes)  # missing in PySpark's type annotations
        static = static_violations(self._session, self._pipeline, build_graph(self._pipeline), self._load)
        running = Running(Reports(passes, with_first(self._report, static)))
        self._create_topics()
        with query_settings(self._session, checkpoint_settings(self._session, self._pipeline)):
            running.add(FLOW, writer.trigger(realTime=CHECKPOINT_EVERY).start())
        return running

    def _writer(self, passes: dict[str, Pass]) -> DataStreamWriter:
        pipeline = self._pipeline
        graph = build_graph(pipeline)
        tables = functools.partial(Tables, self._session, pipeline, graph, self._load)
        consoles = [sink for sink in pipeline.sinks if isinstance(sink.target, ConsoleTarget)]
        if consoles:
            return self._named(shown(tables().rows(consoles[0].input))).format("console")
        try:
            made = passes[FLOW] = self._one_pass(graph)
            ((_, every),) = made.records_in(made.observed())
        except NotLiftable as reason:
            refuse_failing(pipeline, reason)
            every = functools.reduce(DataFrame.unionByName, branches(pipeline, tables))
        return self._named(every).format("kafka").options(**producer_options(producer_of(pipeline), AT_ONCE))

    def _named(self, frame: DataFrame) -> DataStreamWriter:
        writer = frame.writeStream.queryName(f"{self._pipeline.name}/{FLOW}").outputMode("update")
        return writer.option("checkpointLocation", checkpoint_uri(self._pipeline, FLOW))

    def _one_pass(self, graph: Graph) -> Pass:
        pipeline = self._pipeline
        streams = [each for each in pipeline.sources if each.is_stream]
        if len(streams) != 1:
            raise NotLiftable("sources")
        flow = whole_flow(pipeline, graph, streams[0].name)
        return whole_pass(pipeline, flow, self._load(streams[0]))

    def _load(self, source: Source) -> DataFrame:
        read = read_stream if source.is_stream else read_once
        return read(self._session, source, self._pipeline, self._partitions)


def refuse_failing(pipeline: Pipeline, reason: NotLiftable) -> None:
    """Refuses expectations that stop the pipeline: branches run independently, so the others would go on."""
    for step in pipeline.steps:
        for each in step.expectations:
            if each.otherwise is Otherwise.FAIL:
                raise PipelineError(
                    f"{step.place}: the realtime engine cannot stop at rows of step '{step.name}' that do not meet "
                    f"'{each.name}', because the pipeline cannot run in one pass ({reason}); use engine: standard"
                )


def whole_flow(pipeline: Pipeline, graph: Graph, source: str) -> Flow:
    """A pipeline with one source as a single flow."""
    steps = {each.name for each in pipeline.steps}
    after = tuple(name for name in graph.order if name in steps)
    return Flow(FLOW, source, after=after, sinks=pipeline.sinks, owned=frozenset({source, *after}))


def branches(pipeline: Pipeline, tables: Callable[[], Tables]) -> list[DataFrame]:
    """The output records of all sinks, one branch for each.

    Each branch has tables of its own: real-time mode refuses a union of branches that read one frame of a source."""
    found = [
        records_of(tables().rows(sink.input), sink, sink.target, pipeline)
        for sink in pipeline.sinks
        if isinstance(sink.target, TopicTarget)
    ]
    topic = pipeline.dead_letters
    if topic is None:
        return found
    for source in pipeline.sources:
        if source.is_stream and is_topic(source):
            rejected = rejects_of(tables().decoded(source.name), source)
            found.append(dead_letters(rejected, pipeline.name, source.name, topic))
    for step in pipeline.steps:
        if has_quarantine(step.expectations):
            refused = quarantined(tables().judged(step.name), step.expectations)
            found.append(dead_letters(refused, pipeline.name, step.name, topic))
    return found


def local_threads(pipeline: Pipeline, cluster: Cluster) -> int:
    """The number of concurrent tasks: each branch reads each partition."""
    names = streaming_names(pipeline, build_graph(pipeline))
    partitions = sum(
        home.partitions.get(topic, 1)
        for source in pipeline.sources
        if source.name in names and isinstance(source.origin, TopicOrigin)
        for home in (cluster.at(source.origin),)
        for topic in source.origin.topics or tuple(home.partitions)
    )
    quarantines = sum(has_quarantine(step.expectations) for step in pipeline.steps)
    return max(os.cpu_count() or 1, partitions * (len(pipeline.sinks) + len(pipeline.sources) + quarantines) + 1)
