"""The realtime engine: Spark's real-time trigger, under which a record leaves as soon as it is through.

One query writes all topics and the dead letters: each record that is read becomes an array of records to be written.
Where a graph cannot be written so, every output is a branch of its own that reads the source again. Real-time mode runs
all tasks of a query at once and for minutes, so that a local Spark needs as many threads as there are tasks.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import ConsoleTarget, TopicOrigin, TopicTarget
from odradek.pipelines.spark.checkpoints import checkpoint_of
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.engines.realtime_rows import exploded_records
from odradek.pipelines.spark.engines.row_arrays import NotLiftable
from odradek.pipelines.spark.engines.running import Running
from odradek.pipelines.spark.expectations import has_quarantine, quarantined
from odradek.pipelines.spark.flows import streaming_names
from odradek.pipelines.spark.records import rejects_of
from odradek.pipelines.spark.sinks.topics import producer_of, records_of
from odradek.pipelines.spark.sources import is_topic, read_once, read_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.topics import Cluster

FLOW = "realtime"
CHECKPOINT_EVERY = "30 seconds"  # how much comes again after a failure
LINGER_MS = "0"


class RealtimeEngine:
    """Starts the one query of a pipeline."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, cluster: Cluster) -> None:
        self._session = session
        self._pipeline = pipeline
        self._partitions = cluster.partitions_of

    def start(self) -> Running:
        running = Running()
        writer: Any = self._writer()  # PySpark's types do not know this trigger yet
        running.add(FLOW, writer.trigger(realTime=CHECKPOINT_EVERY).start())
        return running

    def _writer(self) -> DataStreamWriter:
        pipeline = self._pipeline
        graph = build_graph(pipeline)
        tables = Tables(self._session, pipeline, graph, self._load)
        options = {"checkpointLocation": checkpoint_of(pipeline, FLOW)}
        consoles = [sink for sink in pipeline.sinks if isinstance(sink.target, ConsoleTarget)]
        if consoles:
            frame = tables.rows(consoles[0].input)
            return frame.writeStream.format("console").options(**options).outputMode("update")
        servers, settings, _connector = producer_of(pipeline)
        kafka = {"linger.ms": LINGER_MS, **dict(settings)}
        try:
            every = exploded_records(pipeline, graph, tables)
        except NotLiftable:
            every = functools.reduce(DataFrame.unionByName, branches(pipeline, tables))
        return (
            every.writeStream.format("kafka")
            .queryName(f"{pipeline.name}/{FLOW}")
            .options(**options, **{f"kafka.{key}": value for key, value in kafka.items()})
            .option("kafka.bootstrap.servers", servers)
            .outputMode("update")
        )

    def _load(self, source: Source) -> DataFrame:
        read = read_stream if source.is_stream else read_once
        return read(self._session, source, self._pipeline, self._partitions)


def branches(pipeline: Pipeline, tables: Tables) -> list[DataFrame]:
    """Everything that is written, as records."""
    found = [
        records_of(tables.rows(sink.input), sink, sink.target, pipeline)
        for sink in pipeline.sinks
        if isinstance(sink.target, TopicTarget)
    ]
    topic = pipeline.dead_letters
    if topic is None:
        return found
    topics = [each.name for each in pipeline.sources if each.is_stream and is_topic(each)]
    found += [dead_letters(rejects_of(tables.decoded(name)), pipeline.name, name, topic) for name in topics]
    for step in pipeline.steps:
        if has_quarantine(step.expectations):
            refused = quarantined(tables.judged(step.name), step.expectations)
            found.append(dead_letters(refused, pipeline.name, step.name, topic))
    return found


def local_threads(pipeline: Pipeline, cluster: Cluster) -> int:
    """Tasks that run at the same time: each branch reads each partition."""
    names = streaming_names(pipeline, build_graph(pipeline))
    partitions = sum(
        cluster.partitions.get(topic, 1)
        for source in pipeline.sources
        if source.name in names and isinstance(source.origin, TopicOrigin)
        for topic in source.origin.topics or tuple(cluster.partitions)
    )
    quarantines = sum(has_quarantine(step.expectations) for step in pipeline.steps)
    return max(os.cpu_count() or 1, partitions * (len(pipeline.sinks) + len(pipeline.sources) + quarantines) + 1)
