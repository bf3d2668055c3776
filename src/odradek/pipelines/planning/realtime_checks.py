"""Checks what the realtime engine runs: one flow, row by row, from the topics of one source into topics.

The limits of real-time mode were determined by experiment on Spark 4.3.0. It does not run Python, deduplication within
a watermark, joins of streams, `foreachBatch` or file sinks, and its only output mode is `update`. The engine computes
the output records of all sinks from each input record in one projection, so that it runs no joins and unions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks_engines import STANDARD_HINT
from odradek.pipelines.definition.function_calls import calls_of
from odradek.pipelines.definition.model import TopicOrigin, TopicTarget
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.planning.queries import argument, query_of
from odradek.pipelines.planning.state import State, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.definition.model import Pipeline, Sink, Source, Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams

REFUSED_OPERATIONS = {
    Aggregation: "aggregates records, and this engine handles each record by itself",
    Deduplication: "deduplicates records, and this engine handles each record by itself",
    Join: "has a join",
    StreamJoin: "has a join",
    KeyedState: "keeps state in Python",
    PythonFunction: "is a Python function",
}


def check_realtime(pipeline: Pipeline, streams: Streams, problems: Problems) -> None:
    names = [each.name for each in pipeline.functions]
    for noun, thing, reason in judged(pipeline, streams):
        called = calls_of(thing, names)
        for why in filter(None, (reason, f"calls {', '.join(called)}, which is Python" if called else None)):
            problems.error(
                thing.place, f"the realtime engine cannot run {noun} '{thing.name}': it {why}", STANDARD_HINT
            )


def judged(pipeline: Pipeline, streams: Streams) -> Iterator[tuple[str, Source | Step | Sink | View, str | None]]:
    """Each part of a definition, its kind, and why the engine does not run it."""
    first = next((each for each in pipeline.sources if each.is_topic_stream), None)
    yield from (("source", each, source_refusal(each, first)) for each in pipeline.sources)
    yield from (("step", each, step_refusal(each, streams)) for each in pipeline.steps)
    yield from (("sink", each, sink_refusal(each)) for each in pipeline.sinks)
    yield from (("view", each, "is not a topic") for each in pipeline.views)


def source_refusal(source: Source, first: Source | None) -> str | None:
    if source is not first:
        return "is not the topic that this engine reads, of which there is one"
    if source.format.encoding is Encoding.AVRO:
        return "has Avro, which is decoded in Python"
    if isinstance(source.origin, TopicOrigin) and source.origin.max_records_per_batch is not None:
        return "has max_records_per_batch, and real-time mode handles each record as it arrives"
    return None


def sink_refusal(sink: Sink) -> str | None:
    if not isinstance(sink.target, TopicTarget):
        return "is not a topic"
    has_own_producer = sink.target.bootstrap_servers or sink.target.kafka
    return (
        "has its own brokers or settings, and this engine writes with a single producer" if has_own_producer else None
    )


def step_refusal(step: Step, streams: Streams) -> str | None:
    for kind, reason in REFUSED_OPERATIONS.items():
        if isinstance(step.operation, kind):
            return reason
    if step.watermark is not None:
        return "has a watermark, which only steps with state need"
    query = query_of(step)
    if query is None:
        return None
    clause = refused_clause(query)
    if clause is None and State.AGGREGATION in state_of(step, streams.names):
        return REFUSED_OPERATIONS[Aggregation]
    return None if clause is None else f"has {clause}"


def refused_clause(query: exp.Expr) -> str | None:
    """What a query has beside a SELECT of one table row by row; some expressions are found at the start only."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if not isinstance(query, exp.Select):
        return query.key.upper()
    if query.ctes:
        return "WITH: write its queries as steps"
    if query.args.get("joins"):
        return "a join"
    table = argument(query, "from")
    if table is None:
        return "no FROM"
    if len(list(query.find_all(exp.Select))) > 1 or not isinstance(table.this, exp.Table):
        return "a subquery"
    has_generator = any(each.find(exp.UDTF, exp.Explode) is not None for each in query.expressions)
    return "explode() among its columns: write LATERAL VIEW" if has_generator else None
