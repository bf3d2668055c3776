"""Which functions of `functions:` the SQL of a definition calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import (
    Changes,
    RunningAggregate,
    Sink,
    Source,
    Step,
    TableTarget,
    TopicTarget,
    View,
)
from odradek.pipelines.definition.operations import Aggregation, Sql
from odradek.pipelines.definition.sql_text import QUOTED
from odradek.pipelines.definition.vocabulary import Encoding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.model import Pipeline


def calls_of(thing: Source | Step | Sink | View, names: Iterable[str]) -> list[str]:
    """The functions of these names that the SQL of a source, step, sink or view calls."""
    texts = [QUOTED.sub(" ", text) for text in expressions_of(thing)]
    return [name for name in names if any(is_called(name, text) for text in texts)]


def is_called(name: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\s*\(", text, re.IGNORECASE) is not None


def expressions_of(thing: Source | Step | Sink | View) -> list[str]:
    """All SQL of a source, step, sink or view."""
    if isinstance(thing, Source):
        return [each.expression for each in thing.columns]
    if isinstance(thing, Step):
        operation = thing.operation
        own = [operation.text] if isinstance(operation, Sql) else []
        own += [each.expression for each in operation.aggregates] if isinstance(operation, Aggregation) else []
        return own + [each.check for each in thing.expectations]
    if isinstance(thing, View):
        content = thing.content
        if isinstance(content, Changes):
            return [] if content.deletes is None else [content.deletes]
        return [each.expression for each in content.aggregates] if isinstance(content, RunningAggregate) else []
    target = thing.target
    if isinstance(target, TableTarget):
        return [] if target.changes is None or target.changes.deletes is None else [target.changes.deletes]
    if not isinstance(target, TopicTarget):
        return []
    deletes = [] if target.deletes is None else [target.deletes]
    values = () if target.encoding is Encoding.JSON else target.value
    headers = [each.expression for each in target.headers]
    return [*([] if target.key is None else [target.key]), *values, *headers, *deletes]


def called_functions(pipeline: Pipeline, names: Iterable[str] | None = None) -> set[str]:
    """The functions that a pipeline calls, or that its sources, steps, sinks and views of these names call."""
    functions = [each.name for each in pipeline.functions]
    if not functions:
        return set()
    wanted = None if names is None else set(names)
    things: tuple[Source | Step | Sink | View, ...]
    things = (*pipeline.sources, *pipeline.steps, *pipeline.sinks, *pipeline.views)
    return {call for each in things if wanted is None or each.name in wanted for call in calls_of(each, functions)}
