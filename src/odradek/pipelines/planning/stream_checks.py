"""Checks of streaming steps: bounded state, and event time where it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import needs_schema
from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import Deduplication, Join, KeyedState, Sql
from odradek.pipelines.definition.vocabulary import StateClock
from odradek.pipelines.planning.determinism_checks import check_determinism
from odradek.pipelines.planning.end_checks import check_end
from odradek.pipelines.planning.query_checks import WATERMARK_HINT, check_stream_query

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Sink, Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams


def check_streams(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks for the streaming engines; the batch engine has none of these limits."""
    if pipeline.sources and not streams.names:
        problems.error(
            pipeline.place,
            f"the {pipeline.engine} engine needs a stream, and no source is one",
            "set stream: true on a source of files, or use engine: batch",
        )
    for source in pipeline.sources:
        if needs_schema(source):
            problems.error(
                source.place,
                f"source '{source.name}' is a stream of files without a schema",
                "add schema: to the source",
            )
    for step in pipeline.steps:
        if step.name in streams.names:
            check_stream_step(step, graph, streams, problems)
    check_determinism(pipeline, streams, problems)
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        check_end(pipeline, end, graph, streams, problems)


def check_stream_step(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    operation = step.operation
    marks = streams.of_inputs(step, graph)
    what = f"step '{step.name}'"
    if isinstance(operation, Join) and operation.table in streams.names:
        problems.error(
            place_of(step, "join", "table"),
            f"{what} joins with '{operation.table}', which is a stream",
            "join two streams in a SQL step, or make the table's source static: stream: false",
        )
    if isinstance(operation, Deduplication):
        check_deduplication(step, operation, marks, problems)
    if isinstance(operation, KeyedState) and operation.clock is StateClock.EVENT and not marks:
        place = place_of(step, "state", "clock")
        problems.error(place, f"{what} has event-time timers, but its input has no watermark", WATERMARK_HINT)
    if isinstance(operation, Sql):
        check_stream_query(step, operation, graph, streams, problems)


def check_deduplication(step: Step, operation: Deduplication, marks: frozenset[str], problems: Problems) -> None:
    what = f"step '{step.name}'"
    if operation.within is not None and not operation.within.milliseconds:
        place = place_of(step, "deduplicate", "within")
        problems.error(place, f"within of {what} is 0", "write a duration longer than 0, such as 10 minutes")
    elif operation.within is not None and not marks:
        place = place_of(step, "deduplicate", "within")
        problems.error(place, f"{what} drops ids by event time, but its input has no watermark", WATERMARK_HINT)
    elif operation.within is not None and len(marks) > 1:
        place = place_of(step, "deduplicate", "within")
        columns = " and ".join(f"'{each}'" for each in sorted(marks))
        problems.error(
            place,
            f"{what} drops ids by event time, but its input has several columns of event time: {columns}",
            "select one of them in a SQL step before it",
        )
    elif operation.within is None and not marks & {each.lower() for each in operation.key}:
        place = place_of(step, "deduplicate")
        problems.warning(
            place, f"{what} keeps every id in state without a limit", "add within: 10 minutes, or another duration"
        )
