"""The columns of each source and step, as far as they can be derived without Spark; None means unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Column, ColumnType, Primitive
from odradek.pipelines.definition.model import RECORD_COLUMNS, FileOrigin, Source, Step, TopicOrigin
from odradek.pipelines.definition.operations import Aggregation, Deduplication, Join, Sql, StreamJoin
from odradek.pipelines.definition.sql_columns import query_columns
from odradek.pipelines.definition.sql_scope import Scope
from odradek.pipelines.definition.sql_text import SqlError, parse_query
from odradek.pipelines.definition.sql_types import Typing
from odradek.pipelines.definition.sql_written import written_expression, written_query
from odradek.pipelines.definition.table_columns import Columns
from odradek.pipelines.definition.vocabulary import Encoding, JoinKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.spark_functions import Functions

TIMESTAMP = Primitive("TIMESTAMP")
RECORD_COLUMN_NAMES = frozenset(each.name for each in RECORD_COLUMNS)


def known_columns(pipeline: Pipeline, graph: Graph, functions: Functions | None = None) -> dict[str, Columns | None]:
    """The columns of every source and step by name; with `functions` also the types of expressions.

    Fingerprints use it without: the types of columns that are stored with a checkpoint must not depend on the table of
    functions."""
    found: dict[str, Columns | None] = {each.name: source_columns(each, functions) for each in pipeline.sources}
    steps = {each.name: each for each in pipeline.steps}
    for name in graph.order:
        if name in steps and name not in found:
            found[name] = step_columns(steps[name], found, functions)
    return found


def typed(columns: Iterable[Column]) -> dict[str, ColumnType | None]:
    return {each.name: each.type for each in columns}


def record_columns(source: Source) -> Columns | None:
    """The columns that a source reads, without its computed columns."""
    columns: dict[str, ColumnType | None]
    if source.format.schema is not None:
        columns = typed(source.format.schema.columns)
    elif isinstance(source.origin, TopicOrigin) and source.format.encoding is Encoding.TEXT:
        columns = {"value": Primitive("STRING")}
    elif isinstance(source.origin, TopicOrigin) and source.format.encoding is Encoding.BYTES:
        columns = {}
    else:
        return None
    if isinstance(source.origin, TopicOrigin):
        columns |= typed(RECORD_COLUMNS)
    return Columns(columns)


def source_columns(source: Source, functions: Functions | None = None) -> Columns | None:
    record = record_columns(source)
    if record is None:
        return None
    found = record
    for each in source.columns:
        found = Columns({**found.types, each.name: expression_type(each.expression, found, functions)})
    return found


def expression_type(text: str, columns: Columns | None, functions: Functions | None) -> ColumnType | None:
    tree = None if functions is None or columns is None else written_expression(text)
    if tree is None or functions is None:
        return None
    return Typing(Scope({"": columns}, frozenset(), is_open=False), functions).type_of(tree)


def needs_schema(source: Source) -> bool:
    """Spark infers the schema of files in a batch, but not in a stream."""
    is_files = isinstance(source.origin, FileOrigin)
    return is_files and source.is_stream and source.format.schema is None


def step_columns(step: Step, known: Mapping[str, Columns | None], functions: Functions | None = None) -> Columns | None:
    operation = step.operation
    if isinstance(operation, Sql):
        written = None if functions is None else written_query(operation.text)
        try:
            query = parse_query(operation.text) if written is None else written
        except SqlError:
            return None
        return query_columns(query, lambda name: lookup(known, name), None if written is None else functions)
    if isinstance(operation, Aggregation):
        return aggregated_columns(operation, lookup(known, operation.input), functions)
    if isinstance(operation, Deduplication):
        return lookup(known, operation.input)
    if isinstance(operation, Join):
        left, right = lookup(known, operation.input), lookup(known, operation.table)
        if operation.how in {JoinKind.SEMI, JoinKind.ANTI}:
            return left
        return None if left is None or right is None else Columns({**right.types, **left.types})
    if isinstance(operation, StreamJoin):
        return stream_join_columns(operation, lookup(known, operation.input), lookup(known, operation.stream))
    return None if operation.columns is None else Columns(typed(operation.columns))


def stream_join_columns(operation: StreamJoin, left: Columns | None, right: Columns | None) -> Columns | None:
    """The columns to join on, then the others of both sides, without those of the Kafka records."""
    if left is None or right is None:
        return None
    on = {name: left.type_of(name) for name in operation.on}
    folded = {name.lower() for name in operation.on} | RECORD_COLUMN_NAMES
    others = [{name: kind for name, kind in side.types.items() if name.lower() not in folded} for side in (left, right)]
    return Columns({**on, **others[0], **others[1]})


def shared_names(operation: Join | StreamJoin, left: Iterable[str], right: Iterable[str]) -> list[str]:
    """The names that both sides of a join have, apart from the columns to join on and those of the Kafka records."""
    ignored = {name.lower() for name in operation.on} | RECORD_COLUMN_NAMES
    taken = {name.lower() for name in left} - ignored
    return [name for name in right if name.lower() in taken]


def aggregated_columns(
    operation: Aggregation, input_columns: Columns | None, functions: Functions | None = None
) -> Columns:
    window = {"window_start": TIMESTAMP, "window_end": TIMESTAMP} if operation.window is not None else {}
    by = {name: None if input_columns is None else input_columns.type_of(name) for name in operation.by}
    results = {each.name: expression_type(each.expression, input_columns, functions) for each in operation.aggregates}
    return Columns({**window, **by, **results})


def lookup(known: Mapping[str, Columns | None], name: str) -> Columns | None:
    """The columns of the named source or step; names are case-insensitive, as in SQL."""
    if name in known:
        return known[name]
    return next((columns for each, columns in known.items() if each.lower() == name.lower()), None)
