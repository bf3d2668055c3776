"""Checks of `join: {stream: …}`: both sides are streams with one column of event time, which `within` compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import RECORD_COLUMN_NAMES
from odradek.pipelines.definition.model import place_of
from odradek.pipelines.definition.operations import StreamJoin
from odradek.pipelines.planning.query_checks import WATERMARK_HINT

if TYPE_CHECKING:
    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Step
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.planning.streams import Streams


def check_stream_join(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks both sides, in every engine; names that are not declared are reported elsewhere."""
    operation = step.operation
    if not isinstance(operation, StreamJoin):
        return
    sides = ((operation.input, place_of(step, "from")), (operation.stream, place_of(step, "join", "stream")))
    for name, place in sides:
        if name in graph.order and name not in streams.names:
            problems.error(
                place,
                f"step '{step.name}' joins streams, and '{name}' is not a stream",
                "join a static source or step by join: {table: …, on: …}",
            )
        elif name in graph.order:
            check_event_time(step, name, place, graph, streams, problems)


def check_join_keys(step: Step, operation: StreamJoin, streams: Streams, problems: Problems) -> None:
    """Checks that a column to join on is event time of both sides or of none: Spark removes rows of both sides once the
    watermark has passed such a column, while a row of the other side, with another event time, is not late."""
    sides = {name: streams.watermarks.get(name, frozenset()) for name in (operation.input, operation.stream)}
    for column in operation.on:
        having = [name for name, marks in sides.items() if column.lower() in marks]
        others = [name for name in sides if name not in having]
        if having and others:
            problems.error(
                place_of(step, "join", "on", column),
                f"step '{step.name}' joins by '{column}', which is event time of '{having[0]}' and not of "
                f"'{others[0]}': Spark would remove rows once the watermark has passed it, and a row that matches may "
                "arrive later",
                f"join by a copy that is not event time: select {column} + INTERVAL 0 SECONDS as {column}_value, … "
                f"from {having[0]}, and the same name in '{others[0]}'",
            )


def check_event_time(step: Step, name: str, place: Place, graph: Graph, streams: Streams, problems: Problems) -> None:
    marks = sorted(streams.watermarks.get(name, ()))
    what = f"step '{step.name}' joins by event time (within), "
    if not marks:
        hint = f"{WATERMARK_HINT}, and keep its column in the steps before the join"
        problems.error(place, f"{what}and '{name}' has no watermark", hint if name in graph.inputs else WATERMARK_HINT)
    elif len(marks) > 1:
        problems.error(
            place,
            f"{what}and '{name}' has several columns of event time: {' and '.join(marks)}",
            "select one of them in a SQL step before it",
        )
    elif marks[0] in RECORD_COLUMN_NAMES:
        problems.error(
            place,
            f"{what}and that of '{name}' is '{marks[0]}' of the Kafka record, whose columns a joined row does not have",
            f"give it a name in the source: columns: {{{name}_at: {marks[0]}}}, and use that in watermark",
        )
