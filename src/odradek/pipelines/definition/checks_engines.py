"""What an engine cannot run and what a delivery cannot promise, each with its reason.

The limits of real-time mode were tried on Spark 4.3.0. Beyond projections, filters, unions and joins with static tables
it runs no Python (UDFs, keyed state), no deduplication within a watermark, no join of streams, no `foreachBatch` and no
file sink, and it writes a row at every change only. Aggregations it can run, but alone: ours sends every record to all
sinks in one pass, which a group of records has no place in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks_streams import aggregates, query_of
from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import (
    ConsoleTarget,
    Deduplication,
    FileOrigin,
    FilesTarget,
    KeyedState,
    PythonFunction,
    PythonTarget,
    SparkTarget,
    Step,
    TableTarget,
    TopicTarget,
)
from odradek.pipelines.definition.vocabulary import Connector, Delivery, Engine, Otherwise

if TYPE_CHECKING:
    from odradek.pipelines.definition.checks_streams import Streams
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problems

STANDARD_HINT = "engine: standard runs it"
BATCH_WRITTEN = {
    FilesTarget: "files are written a batch at a time",
    TableTarget: "tables are written a batch at a time, in one transaction",
    SparkTarget: "other formats are written a batch at a time",
    PythonTarget: "its function takes a batch, and there are none",
}


def check_engine(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    if pipeline.engine is Engine.REALTIME:
        if pipeline.connector is Connector.PYTHON:
            problems.error(
                pipeline.place,
                "the realtime engine cannot use the Python connector: real-time mode reads by Spark's own alone",
                "connector: jvm, or engine: standard",
            )
        for source in pipeline.sources:
            if source.is_stream and isinstance(source.origin, FileOrigin):
                tell(problems, source, "source", "reads files as a stream; in real time only topics can be read")
        for step in pipeline.steps:
            if step.name in streams.names:
                check_realtime_step(step, graph, streams, problems)
        check_realtime_ends(pipeline, problems)
    if pipeline.engine is Engine.BATCH:
        check_timers(pipeline, problems)
    if pipeline.delivery is Delivery.EXACTLY_ONCE:
        check_exactly_once(pipeline, problems)
    check_quarantine(pipeline, problems)


def tell(problems: Problems, thing: object, kind: str, reason: str) -> None:
    problems.error(thing.place, f"the realtime engine cannot run {kind} '{thing.name}': it {reason}", STANDARD_HINT)  # type: ignore[attr-defined]


def check_realtime_step(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    operation = step.operation
    if isinstance(operation, PythonFunction):
        problems.warning(
            step.place,
            f"in real time no row may pass through Python: step '{step.name}' must not use UDFs",
            "use Spark's own functions in it, or SQL",
        )
    elif isinstance(operation, KeyedState):
        tell(problems, step, "step", "keeps state in Python, which real-time mode does not run")
    elif isinstance(operation, Deduplication):
        tell(problems, step, "step", "compares records with one another, and each goes to all sinks in one pass")
    elif aggregates(step):
        tell(problems, step, "step", "aggregates records, and each goes to all sinks in one pass")
    query = query_of(step)
    if query is None:
        return
    read = [each for each in graph.inputs.get(step.name, ()) if each in streams.names]
    if len(read) > 1 and query.find(exp.Join) is not None:
        tell(problems, step, "step", f"joins the streams {' and '.join(read)}, which real-time mode does not do")


def check_realtime_ends(pipeline: Pipeline, problems: Problems) -> None:
    for sink in pipeline.sinks:
        reason = next((why for kind, why in BATCH_WRITTEN.items() if isinstance(sink.target, kind)), None)
        if reason is not None:
            tell(problems, sink, "sink", f"is no topic: {reason}")
        elif isinstance(sink.target, ConsoleTarget) and len(pipeline.sinks) > 1:
            tell(problems, sink, "sink", "writes to the console beside other sinks, and one pass writes one of the two")
        elif isinstance(sink.target, TopicTarget) and (sink.target.bootstrap_servers or sink.target.kafka):
            tell(problems, sink, "sink", "has brokers or settings of its own, and one pass writes with one producer")
    for view in pipeline.views:
        tell(problems, view, "view", "is written a batch at a time, in one transaction")


def check_timers(pipeline: Pipeline, problems: Problems) -> None:
    for step in pipeline.steps:
        if isinstance(step.operation, KeyedState) and step.operation.timeout is not None:
            problems.warning(
                step.place,
                f"the timers of step '{step.name}' do not go off in a batch: it ends when all rows have been seen",
                STANDARD_HINT,
            )


def check_exactly_once(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.engine is Engine.REALTIME:
        problems.error(
            pipeline.place,
            "the realtime engine cannot deliver exactly once: records leave before their batch is committed",
            "delivery: at_least_once marks each with an id, or engine: standard",
        )
    for sink in pipeline.sinks:
        if isinstance(sink.target, PythonTarget | SparkTarget):
            kind = "a function" if isinstance(sink.target, PythonTarget) else f"the format '{sink.target.format}'"
            problems.warning(
                sink.place,
                f"sink '{sink.name}' may see a batch again after a failure: exactly_once holds for topics, files and "
                f"tables, not for {kind}",
                "let it skip batch numbers that it has seen",
            )


def check_quarantine(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.dead_letters is not None:
        return
    for step in pipeline.steps:
        for each in step.expectations:
            if each.otherwise is Otherwise.QUARANTINE:
                problems.error(
                    place_of(step, "expect", each.name, "otherwise"),
                    f"expectation '{each.name}' of step '{step.name}' sends rows to quarantine, and there is none",
                    "name a topic for them: dead_letters: name",
                )
