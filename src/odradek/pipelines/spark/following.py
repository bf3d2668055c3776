"""Shows the rows of a step as records arrive, by a streaming query of its own; nothing is written.

Its checkpoint is a temporary folder. An aggregation shows each group that has changed. Rows that Spark writes only when
they are final (of sessions, outer joins, windows over windows) are shown when the watermark has passed them.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import streaming_names
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.engines.settings import query_settings
from odradek.pipelines.spark.function_steps import with_analysed_functions
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.hidden_columns import without_hidden
from odradek.pipelines.spark.query_frames import answer_of
from odradek.pipelines.spark.reading.sources import read_source
from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message
from odradek.pipelines.spark.sorted_batches import sorting_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.small_reads import Answer
    from odradek.pipelines.spark.writing.topics import Cluster

INTERVAL = "500 milliseconds"


@contextmanager
def following(
    session: SparkSession, pipeline: Pipeline, name: str, cluster: Cluster, show: Callable[[Answer], None]
) -> Iterator[StreamingQuery]:
    """A running query that calls `show` with the rows of each batch, on a thread of Spark."""
    pipeline = with_analysed_functions(session, pipeline)
    graph = build_graph(pipeline)
    if name not in streaming_names(pipeline, graph):
        raise PipelineError(f"'{name}' reads no stream, so that it has no new rows; omit --follow")
    register_functions(session, pipeline)
    mode = mode_of(pipeline, graph, name)

    def load(source: Source) -> DataFrame:
        return read_source(session, source, pipeline, cluster.partitions_of)

    def rows_of_query() -> DataFrame:
        return without_hidden(Tables(session, pipeline, graph, load, mode).rows(name))

    rows = rows_of_query()
    settings = sorting_settings(session, pipeline, graph.upstream(name), mode, rows, rows_of_query)
    with tempfile.TemporaryDirectory(prefix="odradek-preview-", ignore_cleanup_errors=True) as folder:
        writer = rows.writeStream.queryName(f"preview of {name}").outputMode(str(mode))
        writer = writer.option("checkpointLocation", folder).trigger(processingTime=INTERVAL)
        with query_settings(session, settings):
            query = writer.foreachBatch(lambda batch, _number: show(answer_of(batch))).start()
        try:
            yield query
        finally:
            query.stop()


def mode_of(pipeline: Pipeline, graph: Graph, name: str) -> SinkMode:
    """Update, so that groups are shown when they change, where Spark accepts it: for a single aggregation."""
    before, streaming = graph.upstream(name), streaming_names(pipeline, graph)
    kinds = [state_of(each, streaming) for each in pipeline.steps if each.name in before]
    grouping = [each for each in kinds if State.AGGREGATION in each]
    is_single = len(grouping) == 1 and State.SESSIONS not in grouping[0] and sum(map(bool, kinds)) == 1
    return SinkMode.UPDATE if is_single else SinkMode.APPEND


def raise_failure(query: StreamingQuery) -> None:
    """Raises `PipelineError` if the query has failed."""
    error: PySparkException | None = query.exception()
    if error is not None:
        raise PipelineError(plain_message(error)) from error
