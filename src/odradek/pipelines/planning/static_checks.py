"""Checks of static steps that streams read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import place_of
from odradek.pipelines.definition.vocabulary import Otherwise

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams


def check_static_expectations(pipeline: Pipeline, streams: Streams, problems: Problems) -> None:
    """Refuses `quarantine` of static steps: each batch reads their rows, and would write them again."""
    static = [each for each in pipeline.steps if streams.names and each.name not in streams.names]
    for step in static:
        for each in step.expectations:
            if each.otherwise is Otherwise.QUARANTINE:
                problems.error(
                    place_of(step, "expect", each.name, "otherwise"),
                    f"expectation '{each.name}' of step '{step.name}' quarantines rows of a static table, which every "
                    "batch reads: each would write them as dead letters again",
                    "use otherwise: drop or warn, which count them once, or engine: batch",
                )
