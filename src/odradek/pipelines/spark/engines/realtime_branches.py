"""The query of the realtime engine for a pipeline that cannot run in one pass: each output is a branch, which reads the
streams for itself. Each count is observed in one branch."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Sink, Source, TopicTarget
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.realtime_branches import counted_names, has_quarantine, outputs_of, root_of
from odradek.pipelines.planning.streams import streaming_names
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.dead_letters import NO_HEADERS, dead_letters
from odradek.pipelines.spark.expectations import quarantined
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.observed_counts import expectation_counts, observing, record_counts, written_counts
from odradek.pipelines.spark.records import OBSERVED, rejects_of
from odradek.pipelines.spark.sinks.batches import shown
from odradek.pipelines.spark.sinks.topics import records_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.realtime_branches import Output
    from odradek.pipelines.spark.observed_counts import Count
    from odradek.pipelines.spark.one_pass.row_columns import NotLiftable


@dataclass(frozen=True, slots=True)
class Branch:
    """The records of an output, or the rows of a console, and the counts that the branch observes."""

    frame: DataFrame
    counts: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a pipeline, in the order of its outputs."""

    each: tuple[Branch, ...]

    @property
    def frame(self) -> DataFrame:
        return functools.reduce(DataFrame.unionByName, (branch.frame for branch in self.each))

    @property
    def counts(self) -> tuple[Count, ...]:
        return tuple(count for branch in self.each for count in branch.counts)


def branches_of(
    session: SparkSession, pipeline: Pipeline, graph: Graph, load: Callable[[Source], DataFrame]
) -> Branches:
    """Each branch has tables of its own: real-time mode refuses a union of branches that read one frame of a source."""
    steps = {each.name: each for each in pipeline.steps}
    made = []
    for output, names in zip(outputs_of(pipeline, graph), counted_names(pipeline, graph), strict=True):
        counts = {name: expectation_counts(steps[name]) if name in steps else record_counts(name) for name in names}
        tables = Tables(session, pipeline, graph, load, counts=counts)
        broadcast_steps(tables, output, pipeline, graph)
        frame = frame_of(output, tables, pipeline)
        written = written_counts(output) if isinstance(output, Sink) else ()
        observed = observing(frame, written, f"{OBSERVED} of sink {output.name}")
        made.append(Branch(observed, (*(each for name in names for each in counts[name]), *written)))
    return Branches(tuple(made))


def broadcast_steps(tables: Tables, output: Output, pipeline: Pipeline, graph: Graph) -> None:
    """Has Spark broadcast the rows of the static steps that an output reads: the hint of a source does not pass through
    a join or a union."""
    streaming = streaming_names(pipeline, graph)
    steps = {each.name for each in pipeline.steps}
    for name in graph.upstream(root_of(output)):
        if name in steps and name not in streaming:
            tables.give_rows(name, F.broadcast(tables.rows(name)))


def frame_of(output: Output, tables: Tables, pipeline: Pipeline) -> DataFrame:
    """The records of a sink, the rows of a console, the dead letters of a source or step, or no records of a step."""
    if isinstance(output, Sink):
        rows, target = tables.rows(output.input), output.target
        return records_of(rows, output, target, pipeline) if isinstance(target, TopicTarget) else shown(rows)
    if isinstance(output, Source):
        rejected = rejects_of(tables.decoded(output.name))
    elif has_quarantine(output):
        rejected = quarantined(tables.judged(output.name), output.expectations)
    else:
        return without_records(tables.judged(output.name))
    assert pipeline.dead_letters is not None  # otherwise there is no such output
    return dead_letters(rejected, pipeline.name, output.name, pipeline.dead_letters)


def without_records(frame: DataFrame) -> DataFrame:
    """No records, of rows that are computed for their counts. The partition id, which is never negative, makes the
    condition nondeterministic: otherwise Spark would evaluate it in advance, and not read the stream."""
    none = frame.where(F.spark_partition_id() < F.lit(0))
    key, value = (F.lit(None).cast("binary").alias(name) for name in ("key", "value"))
    return none.select(F.lit("").alias("topic"), key, value, F.expr(NO_HEADERS).alias("headers"))


def refuse_failing(pipeline: Pipeline, graph: Graph, reason: NotLiftable) -> None:
    """Refuses expectations that stop the pipeline: branches run independently, so the others would go on. Static tables
    are checked before any branch runs."""
    streaming = streaming_names(pipeline, graph)
    for step in (each for each in pipeline.steps if each.name in streaming):
        for each in step.expectations:
            if each.otherwise is Otherwise.FAIL:
                raise PipelineError(
                    f"{step.place}: the realtime engine cannot stop at rows of step '{step.name}' that do not meet "
                    f"'{each.name}', because the pipeline cannot run in one pass ({reason}); use engine: standard"
                )
