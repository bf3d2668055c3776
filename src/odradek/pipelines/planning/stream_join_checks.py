"""Checks of `join: {stream: …}`: both sides are streams with one column of event time, which `within` compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import RECORD_COLUMN_NAMES
from odradek.pipelines.definition.graph import place_of
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
