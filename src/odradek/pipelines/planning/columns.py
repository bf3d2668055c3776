"""The columns of each table, as far as they are certain without Spark; None means that they are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Column, ColumnType, Primitive
from odradek.pipelines.definition.model import RECORD_COLUMNS, Source, TopicOrigin
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.planning.plan import LEFT, PASSES, RIGHT, GroupSql, PairSql, RowSql, StaticSql, UnionSql
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.results import result_columns
from odradek.pipelines.sql.splicing import quoted
from odradek.pipelines.sql.text import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.pipelines.planning.plan import MadeBy

    ColumnsOf = Callable[[str], Columns | None]

TIMESTAMP = Primitive("TIMESTAMP")
PLAIN = (Encoding.TEXT, Encoding.BYTES)  # without a schema; another encoding without one is an error that is reported
RECORD_COLUMN_NAMES = frozenset(each.name for each in RECORD_COLUMNS)


def columns_of(made: MadeBy, inputs: Sequence[Columns | None], known: ColumnsOf) -> Columns | None:
    """The columns of a table; `inputs` are those of its inputs, `known` gives those of any table."""
    match made:
        case Source():
            return source_columns(made)
        case RowSql():
            return result_columns(made.query)
        case GroupSql():
            columns = result_columns(made.query)
            has_passes = columns is not None and made.shape.having is not None
            return Columns({**columns.types, PASSES: Primitive("BOOLEAN")}) if columns and has_passes else columns
        case PairSql():
            sides = [known(each.table) for each in (made.shape.left, made.shape.right)]
            return _prefixed(*sides)
        case UnionSql():
            return _united(inputs)
        case StaticSql():
            return _of_static(made, known)
        case Aggregation():
            return _of_aggregation(made, known)
        case Deduplication():
            return inputs[0]
        case StreamJoin():
            return _of_join(made, inputs[0], inputs[-1])
        case KeyedState() | PythonFunction():
            return None if made.columns is None else _typed(made.columns)
        case _:
            return None


def _typed(columns: Iterable[Column]) -> Columns:
    return Columns({each.name: each.type for each in columns})


def source_columns(source: Source) -> Columns | None:
    """The columns of the records, those of every record of a topic, and computed ones."""
    types: dict[str, ColumnType | None]
    if source.format.schema is not None:
        types = {each.name: each.type for each in source.format.schema.columns}
    elif isinstance(source.origin, TopicOrigin) and source.format.encoding in PLAIN:
        types = {"value": Primitive("STRING")} if source.format.encoding is Encoding.TEXT else {}
    else:
        return None
    if isinstance(source.origin, TopicOrigin):
        types |= {each.name: each.type for each in RECORD_COLUMNS}
    for computed in source.columns:
        before = Columns(types)
        types = {**types, computed.name: type_of(computed.expression, source.name, {source.name: before}.get)}
    return Columns(types)


def type_of(expression: str, table: str, known: ColumnsOf) -> ColumnType | None:
    """The type of an expression over a table, if it is certain."""
    try:
        query = Query.of_expression(f"{expression}\nAS {quoted('it')}", table, known)
    except SqlError:
        return None
    found = result_columns(query)
    return None if found is None else found.type_of("it")


def _of_static(made: StaticSql, known: ColumnsOf) -> Columns | None:
    try:
        return result_columns(Query(made.part, known))
    except SqlError:
        return None


def _of_aggregation(made: Aggregation, known: ColumnsOf) -> Columns:
    columns = known(made.input)
    window = {"window_start": TIMESTAMP, "window_end": TIMESTAMP} if made.window is not None else {}
    by = {name: None if columns is None else columns.type_of(name) for name in made.by}
    results = {each.name: type_of(each.expression, made.input, known) for each in made.aggregates}
    return Columns({**window, **by, **results})


def _of_join(made: StreamJoin, left: Columns | None, right: Columns | None) -> Columns | None:
    """The columns of both sides, without those of a record."""
    if left is None or right is None:
        return None
    left_out = (*made.on, *RECORD_COLUMN_NAMES)
    keys = {name: left.type_of(name) for name in made.on}
    return Columns({**keys, **left.without(left_out).types, **right.without(left_out).types})


def _prefixed(left: Columns | None, right: Columns | None) -> Columns | None:
    if left is None or right is None:
        return None
    lefts = {f"{LEFT}{name}": kind for name, kind in left.types.items()}
    return Columns({**lefts, **{f"{RIGHT}{name}": kind for name, kind in right.types.items()}})


def _united(parts: Sequence[Columns | None]) -> Columns | None:
    """The names of the first part, with the types that all parts have."""
    known = [[*each.types.values()] for each in parts if each is not None]
    first = parts[0]
    if first is None or len(known) < len(parts) or len(set(map(len, known))) > 1:
        return first
    kinds = zip(first.names, *known, strict=True)
    return Columns({name: kind if {kind} == {*others} else None for name, kind, *others in kinds})
