"""The batch engine: runs the graph once, over all existing records or over a range of offsets or times."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.flow import Flow
from odradek.pipelines.planning.streams import ranged_names
from odradek.pipelines.spark.expectations import as_expectation_failures
from odradek.pipelines.spark.fan_out import FanOut
from odradek.pipelines.spark.flow_writes import writes_of
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.reading.sources import Range, read_once
from odradek.pipelines.spark.writing.run_takeover import run_of, take_over
from odradek.pipelines.spark.writing.warehouse import BatchNumber

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.writing.topics import Cluster


def run_batch(session: SparkSession, pipeline: Pipeline, cluster: Cluster, span: Range | None = None) -> BatchReport:
    """Reads, computes and writes everything; each run counts as one batch with its own checkpoint id."""
    graph = build_graph(pipeline)
    register_functions(session, pipeline)
    flow = Flow(
        "batch",
        root="",
        mode=SinkMode.APPEND,
        after=graph.order,
        sinks=pipeline.sinks,
        views=pipeline.views,
        owned=frozenset(graph.order),
    )

    ranged = ranged_names(pipeline)

    def load(source: Source) -> DataFrame:
        own = span if source.name in ranged else None
        return read_once(session, source, pipeline, cluster.partitions_of, own)

    fan_out = FanOut(pipeline, graph, flow, lambda _batch, source: load(source), cluster.create_awaited)
    with as_expectation_failures():
        epoch = take_over(pipeline, [writes_of(pipeline, flow)], cluster.id)
        run = run_of(pipeline, flow.name, cluster.id)
        return fan_out.whole(session, load, BatchNumber(str(uuid.uuid4()), 0, epoch, run))
