"""Groups by a column of event time that may be null: no watermark passes the group of null, so that it is never final.

Windows and sessions leave rows without event time out, in a stream as in a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.operations import Aggregation, Deduplication, Join, StreamJoin
from odradek.pipelines.definition.sql_text import SqlError, parse_expression
from odradek.pipelines.definition.vocabulary import JoinKind, Otherwise, StreamJoinKind, Tombstones
from odradek.pipelines.planning.null_columns import Column, NullTime, Rows, Scope, may_be_null, non_null_columns
from odradek.pipelines.planning.null_queries import NullQueries
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.streams import EventTimes, with_times

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Expectation, Pipeline, Source, Step
    from odradek.pipelines.planning.streams import Streams

RECORD_COLUMNS = frozenset(("_timestamp", "_topic", "_partition", "_offset"))  # of a topic that are never null


def null_time(
    pipeline: Pipeline, step: Step, graph: Graph, streams: Streams, declared: Collection[str] = ()
) -> NullTime | None:
    """The column of event time that a step groups by and that may be null, if there is one. Columns of topics that are
    `declared` count as NOT NULL."""
    sources = {each.name: each for each in pipeline.sources}
    steps = {each.name: each for each in pipeline.steps}
    found: dict[str, Rows] = {}  # by lower-case name
    null_times: list[NullTime] = []
    for name in graph.upstream(step.name):
        if name in sources:
            rows = source_rows(sources[name], streams, declared)
        else:
            rows, null_times = step_rows(steps[name], found, streams)
        times = streams.times.get(name) if name in streams.names else None
        found[name.lower()] = with_times(rows, times or EventTimes())
    return next(iter(null_times), None)  # of the step itself, which is the last one


def can_be_declared(pipeline: Pipeline, step: Step, graph: Graph, streams: Streams, name: str) -> bool:
    """Whether NOT NULL in the schema of a topic shows that this event time of a step's groups is never null."""
    read = graph.upstream(step.name)
    schemas = [each.format.schema for each in pipeline.sources if each.name in read and checks_schema(each)]
    names = {column.name.lower() for schema in schemas if schema is not None for column in schema.columns}
    return name in names and null_time(pipeline, step, graph, streams, (name,)) is None


def checks_schema(source: Source) -> bool:
    """Whether records without a NOT NULL column are rejected: those of files are not, nor are tombstones as rows."""
    return isinstance(source.origin, TopicOrigin) and source.format.tombstone_policy is not Tombstones.ROWS


def source_rows(source: Source, streams: Streams, declared: Collection[str]) -> Rows:
    required = set(RECORD_COLUMNS) if isinstance(source.origin, TopicOrigin) else set()
    if checks_schema(source) and source.format.schema is not None:
        names = {each.name.lower(): each.nullable for each in source.format.schema.columns}
        required |= {name for name, is_nullable in names.items() if not is_nullable or name in declared}
    computed = {each.name.lower(): each.expression for each in source.columns}
    for name, text in computed.items():
        scope = Scope({"": Rows(tuple(Column(each, may_be_null=False) for each in required), is_open=True)})
        required -= {name}
        required |= {name for each in parsed(text) if not may_be_null(each, scope.column)}
    return rows_with(required, source.name, streams)


def rows_with(required: Collection[str], name: str, streams: Streams) -> Rows:
    """The rows of a source or step, of which these columns are never null."""
    known = lookup(streams.columns, name)
    names = sorted(required) if known is None else [each.lower() for each in known.names]
    return Rows(tuple(Column(each, may_be_null=each not in required) for each in names), is_open=known is None)


def step_rows(step: Step, found: dict[str, Rows], streams: Streams) -> tuple[Rows, list[NullTime]]:
    """The rows of a step, and the columns of event time that it groups by and that may be null."""
    operation = step.operation
    query = query_of(step)
    null_times: list[NullTime] = []
    if query is not None:
        queries = NullQueries(found)
        rows = queries.of_query(query)
        null_times = queries.null_times
    elif isinstance(operation, Aggregation):
        read, by = found.get(operation.input.lower(), Rows()), [each.lower() for each in operation.by]
        required = read.required
        if operation.window is not None:
            required |= {operation.window.column.lower(), "window_start", "window_end"}
        null_times = [NullTime(name) for name in by if name not in required and read.column(name).time is not None]
        rows = rows_with(required & {*by, "window_start", "window_end"}, step.name, streams)
    else:
        rows = rows_with(kept_columns(step, found), step.name, streams)
    return expected(step, rows), null_times


def kept_columns(step: Step, found: dict[str, Rows]) -> set[str]:
    """The columns of a step without SQL and without groups that are never null."""
    operation = step.operation
    if isinstance(operation, Deduplication):
        return found.get(operation.input.lower(), Rows()).required
    if not isinstance(operation, Join | StreamJoin):
        return set()
    other = operation.table if isinstance(operation, Join) else operation.stream
    left, right = (found.get(each.lower(), Rows()) for each in (operation.input, other))
    if operation.how in {JoinKind.LEFT, JoinKind.ANTI, StreamJoinKind.LEFT}:
        return left.required
    if operation.how is StreamJoinKind.RIGHT:
        return right.required
    if operation.how is StreamJoinKind.FULL:
        return set()
    equal = {each.lower() for each in operation.on}
    if operation.how is JoinKind.SEMI:
        return left.required | equal
    sides = (left, right) if isinstance(operation, StreamJoin) else ()
    times = {each.name for side in sides for each in side.columns if each.time is not None}
    others = {each for each in right.required if not left.has(each) and not left.is_open}
    return left.required | others | equal | times


def expected(step: Step, rows: Rows) -> Rows:
    """The rows that meet the expectations of a step, if others are left out."""
    scope = Scope({step.name.lower(): rows})
    for each in step.expectations:
        scope.require(removed_nulls(each))
    return scope.tables[step.name.lower()]


def removed_nulls(expectation: Expectation) -> list[exp.Expr]:
    is_kept = expectation.otherwise is Otherwise.WARN
    return [] if is_kept else [column for each in parsed(expectation.check) for column in non_null_columns(each)]


def parsed(text: str) -> list[exp.Expr]:
    try:
        return [parse_expression(text)]
    except SqlError:
        return []
