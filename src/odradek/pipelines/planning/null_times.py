"""Groups by a column of event time that may be null: no watermark passes the group of null, so that it is never final.

Windows and sessions leave rows without event time out, in a stream as in a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.definition.sql_text import SqlError, parse_expression
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.queries import query_of, window_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.planning.streams import Streams


def has_group_of_null(pipeline: Pipeline, step: Step, graph: Graph, streams: Streams) -> bool:
    """Whether a step that groups by event time may have a group without it."""
    operation = step.operation
    query = query_of(step)
    if isinstance(operation, Aggregation):
        has_window = operation.window is not None
    else:
        has_window = query is None or any(map(window_calls, query.walk()))
    if has_window:
        return False
    read = graph.upstream(step.name)
    times = {name for each in read for name in streams.watermarks.get(each, ())}
    sources = [each for each in pipeline.sources if each.name in read and each.watermark is not None]
    required = [
        column.name.lower() in times and not column.nullable
        for each in sources
        for column in (each.format.schema.columns if each.format.schema is not None else ())
    ]
    steps = [each for each in pipeline.steps if each.name in read]
    return sum(required) < max(len(sources), 1) and not any(removes_null(each, times) for each in steps)


def removes_null(step: Step, times: set[str]) -> bool:
    """Whether a step removes rows of which one of these columns is null."""
    query = query_of(step)
    conditions = [] if query is None else [query]
    for each in step.expectations:
        if each.otherwise is not Otherwise.WARN:
            conditions += parsed(each.check)
    return any(requires(each, times) for each in conditions)


def parsed(check: str) -> list[exp.Expr]:
    try:
        return [parse_expression(check)]
    except SqlError:
        return []


def requires(condition: exp.Expr, times: Iterable[str]) -> bool:
    """Whether a condition has `column IS NOT NULL`."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    tests = [each.this for each in condition.find_all(exp.Not) if isinstance(each.this, exp.Is)]
    return any(isinstance(each.this, exp.Column) and each.this.name.lower() in times for each in tests)
