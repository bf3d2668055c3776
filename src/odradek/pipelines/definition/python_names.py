"""The Python functions and classes that a definition names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import PythonTarget
from odradek.pipelines.definition.operations import KeyedState, PythonFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.references import PythonReference


def python_references(pipeline: Pipeline) -> Iterator[PythonReference]:
    for step in pipeline.steps:
        operation = step.operation
        if isinstance(operation, PythonFunction):
            yield operation.function
        elif isinstance(operation, KeyedState):
            yield operation.processor
    for sink in pipeline.sinks:
        if isinstance(sink.target, PythonTarget):
            yield sink.target.function
    for each in pipeline.functions:
        yield each.reference
