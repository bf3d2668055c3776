"""Checks of streaming steps: bounded state, and event time where it is needed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import needs_schema
from odradek.pipelines.definition.model import RunningAggregate, place_of
from odradek.pipelines.definition.operations import Aggregation, Deduplication, Join, KeyedState, Sql, StreamJoin
from odradek.pipelines.definition.sql_text import SqlError, parse_expression
from odradek.pipelines.definition.vocabulary import StateClock
from odradek.pipelines.planning.arrival import check_deduplications, first_without_order, unordered
from odradek.pipelines.planning.determinism_checks import check_determinism, check_windows_of_rows
from odradek.pipelines.planning.end_checks import check_ends
from odradek.pipelines.planning.loose_times import check_loose_times
from odradek.pipelines.planning.lost_times import time_hint
from odradek.pipelines.planning.query_checks import check_distinct, check_stream_query
from odradek.pipelines.planning.session_filters import check_grouped_sessions
from odradek.pipelines.planning.state import state_of
from odradek.pipelines.planning.stream_join_checks import check_join_keys

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
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
            check_stream_step(pipeline, step, graph, streams, problems)
            check_one_event_time(step, graph, streams, problems)
            check_grouped_sessions(step, graph, streams, problems)
    check_deduplications(pipeline, graph, streams, problems)
    check_loose_times(pipeline, graph, streams, problems)
    check_distinct_aggregates(pipeline, streams, problems)
    check_state_order(pipeline, graph, streams, problems)
    check_determinism(pipeline, streams, problems)
    check_windows_of_rows(pipeline, streams, problems)
    check_ends(pipeline, graph, streams, problems)


def check_stream_step(pipeline: Pipeline, step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    operation = step.operation
    marks = streams.of_inputs(step, graph)
    what = f"step '{step.name}'"
    if isinstance(operation, Join) and operation.table in streams.names:
        problems.error(
            place_of(step, "join", "table"),
            f"{what} joins with '{operation.table}', which is a stream",
            f"write join: {{stream: {operation.table}, on: …, within: …}}, or set stream: false on the table's source",
        )
    before = streams.time_before(step, graph)
    if step.watermark is not None and before is not None:
        problems.error(
            place_of(step, "watermark"),
            f"{what} has a watermark, and its input has one already (column '{before}')",
            "Spark allows one watermark of a stream: remove that of the step or that of its source",
        )
    if isinstance(operation, Deduplication):
        check_deduplication(step, operation, marks, problems)
    if isinstance(operation, KeyedState) and operation.clock is StateClock.EVENT and not marks:
        place = place_of(step, "state", "clock")
        hint = time_hint(pipeline, step, graph, streams)
        problems.error(place, f"{what} has event-time timers, but its input has no watermark", hint)
    if isinstance(operation, StreamJoin):
        check_join_keys(step, operation, streams, problems)
    if isinstance(operation, Sql):
        check_stream_query(step, operation, graph, streams, problems)


def check_one_event_time(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks that an operator with state has one column of event time, by which Spark removes its rows."""
    operation, place = step.operation, step.place
    marks = streams.of_inputs(step, graph) | streams.windows_of_inputs(step, graph)
    found: Collection[str] = ()
    if isinstance(operation, Aggregation):
        window = () if operation.window is None else (operation.window.column,)
        found = [f"window of {each}" for each in window if each.lower() in marks]
        found += [each for each in operation.by if each.lower() in marks]
    elif isinstance(operation, Deduplication) and operation.within is None:
        found, place = sorted(marks), place_of(step, "deduplicate")
    elif isinstance(operation, KeyedState) and operation.clock is StateClock.EVENT:
        found, place = sorted(marks), place_of(step, "state")
    elif isinstance(operation, Sql):
        reading = streams.reading_of(step, graph)
        groupings = () if reading is None else [times for _, times in reading.groupings]
        found = next((sorted(times) for times in groupings if len(times) > 1), ())
    if len(found) > 1:
        problems.error(
            place,
            f"step '{step.name}' has several columns of event time in its state, and Spark accepts one: "
            f"{' and '.join(found)}",
            "leave out one of them, in a SQL step before it if necessary, or compute a column that is not event time: "
            "at + INTERVAL 0 SECONDS",
        )


def check_state_order(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Warns of keyed state behind a source or step that does not keep the order of rows with equal keys in a batch."""
    steps = {each.name: each for each in pipeline.steps}
    for step in pipeline.steps:
        operation = step.operation
        if not isinstance(operation, KeyedState) or step.name not in streams.names:
            continue
        name = first_without_order(pipeline, operation.input, operation.key, graph, streams)
        if name is not None:
            divides = name in steps and state_of(steps[name], streams.names)
            reason = "divides them by other columns" if divides else "does not keep their order"
            problems.warning(
                place_of(step, "state"),
                f"the processor of step '{step.name}' gets the rows of a batch in no order, because "
                f"{unordered(name, is_source=name not in steps)} {reason}",
                "let its result not depend on their order, or sort the rows of a call by a column",
            )


def check_distinct_aggregates(pipeline: Pipeline, streams: Streams, problems: Problems) -> None:
    """Checks the aggregates of steps and views over streams; those of SQL are checked with their query."""
    steps = [(f"step '{each.name}'", each.operation) for each in pipeline.steps if each.name in streams.names]
    views = [(f"view '{each.name}'", each.content) for each in pipeline.views if each.input in streams.names]
    for what, operation in (*steps, *views):
        for each in operation.aggregates if isinstance(operation, Aggregation | RunningAggregate) else ():
            with suppress(SqlError):
                check_distinct(what, [parse_expression(each.expression)], each.expression_place, problems)


def check_deduplication(step: Step, operation: Deduplication, marks: frozenset[str], problems: Problems) -> None:
    if operation.within is None and not marks & {each.lower() for each in operation.key}:
        problems.warning(
            place_of(step, "deduplicate"),
            f"step '{step.name}' keeps every id in state without a limit",
            "add within: 10 minutes, or another duration",
        )


def check_within(pipeline: Pipeline, step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks that `within` has one column of event time to compare, in every engine."""
    if not isinstance(step.operation, Deduplication) or step.operation.within is None:
        return
    marks = sorted(streams.of_inputs(step, graph))
    what, place = f"step '{step.name}'", place_of(step, "deduplicate", "within")
    if not step.operation.within.milliseconds:
        problems.error(place, f"within of {what} is 0", "write a duration longer than 0, such as 10 minutes")
    elif not marks:
        hint = time_hint(pipeline, step, graph, streams)
        problems.error(place, f"{what} drops ids by event time, but its input has no watermark", hint)
    elif len(marks) > 1:
        problems.error(
            place,
            f"{what} drops ids by event time, but its input has several columns of event time: {' and '.join(marks)}",
            "select one of them in a SQL step before it",
        )
