"""Refuses keys that the model has and the engines do not run: several columns of `order_by`, joins without a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import LatestRows, Sink, TableTarget, place_of
from odradek.pipelines.definition.operations import StreamJoin

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, View
    from odradek.pipelines.definition.places import Problems


def check_unsupported(pipeline: Pipeline, problems: Problems) -> None:
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        kept = end.target if isinstance(end, Sink) else end.content
        if isinstance(kept, TableTarget | LatestRows) and len(kept.order_by) > 1:
            problems.error(
                place_of(end, "order_by"),
                f"'{end.name}' is ordered by several columns, {', '.join(kept.order_by)}, and takes one",
                "compute one column from them in a SQL step",
            )
    for step in pipeline.steps:
        if isinstance(step.operation, StreamJoin) and step.operation.within is None:
            problems.error(
                place_of(step, "join", "within"),
                f"the join of step '{step.name}' would keep all rows of both streams for ever",
                "bound it: within: 1 hour",
            )
