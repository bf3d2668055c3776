"""Results depend on rows alone: which calls are refused, and which strings would be cast without a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Primitive
from odradek.pipelines.definition.model import LakehouseTarget, Source, Step, TableTarget, TopicTarget
from odradek.pipelines.definition.operations import Aggregation, Sql
from odradek.pipelines.planning.plan import GroupSql, PairSql, RowSql, place_of
from odradek.pipelines.planning.verdicts import Code, Refusal
from odradek.pipelines.sql.functions import CLOCK, undetermined
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.text import SqlError, position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import End, Plan, Table
    from odradek.pipelines.sql.query import Call
    from odradek.pipelines.sql.text import Span

STRING = Primitive("STRING")
NUMERIC = frozenset(
    (
        "sum", "try_sum", "avg", "mean", "try_avg", "stddev", "std", "stddev_pop", "stddev_samp", "variance",
        "var_pop", "var_samp", "skewness", "kurtosis", "median",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Written:
    """SQL that a definition has over a table: a query, or an expression. `text` and `place` are those of spans."""

    subject: Table | End
    query: Query
    text: str
    place: Place


def determinism(plan: Plan) -> Iterator[Refusal]:
    """Refuses calls whose result the rows do not determine, and implicit casts of strings."""
    impure = {each.name.lower() for each in plan.pipeline.functions if not each.is_deterministic}
    for written in written_in(plan):
        for call in written.query.calls:
            what = call.name
            advice = undetermined(what, call.parent)
            if what in impure:
                advice = "a function with deterministic: true, whose result depends on its arguments alone"
            if advice is not None:
                message = f"{written.subject.described} uses {what}, which the rows do not determine"
                yield Refusal(Code.UNDETERMINED, written.subject, _at(written, call.span), message, f"use {advice}")
            if what in CLOCK or (what == "unix_timestamp" and not call.arguments):
                reads = f"{written.subject.described} reads the clock by {what}"
                message = f"{reads}: rows that are read again have another result"
                hint = "use a time of the row, such as _timestamp of a record"
                yield Refusal(None, written.subject, _at(written, call.span), message, hint)
            yield from _implicit_cast(written, call)
    for table in plan.tables.values():
        if isinstance(table.made_by, PairSql):
            yield from _cast_keys(plan, table, table.made_by)


def _implicit_cast(written: Written, call: Call) -> Iterator[Refusal]:
    if call.name not in NUMERIC or len(call.arguments) != 1:
        return
    query, span = written.query, call.arguments[0]
    if _type_of(query, span) == STRING:
        name = query.text(span)
        message = f"{written.subject.described} casts the STRING '{name}' implicitly"
        example = f"write {call.name}(cast({name} as bigint)), or try_cast"
        yield Refusal(Code.IMPLICIT_CAST, written.subject, _at(written, span), message, example)


def _type_of(query: Query, span: Span) -> ColumnType | None:
    """The type of a span that is one column."""
    named = next((each for each in query.references(span) if each.span == span and len(each.parts) == 1), None)
    tables = zip(query.tables, query.columns, strict=True)
    columns = next((known for table, known in tables if named is not None and table.alias == named.table), None)
    return None if columns is None or named is None else columns.type_of(named.parts[0])


def _cast_keys(plan: Plan, table: Table, made: PairSql) -> Iterator[Refusal]:
    shape = made.shape
    sides = [plan.table(each.table).columns for each in (shape.left, shape.right)]
    for left, right in shape.keys:
        kinds = [None if side is None else side.type_of(key) for side, key in zip(sides, (left, right), strict=True)]
        if None not in kinds and STRING in kinds and kinds[0] != kinds[1]:
            text = f"{shape.left.alias}.{left}" if kinds[0] == STRING else f"{shape.right.alias}.{right}"
            other = kinds[1] if kinds[0] == STRING else kinds[0]
            message = f"{table.described} casts the STRING '{text}' implicitly"
            example = f"write cast({text} as {other.ddl.lower() if other else 'bigint'}) in a step before"
            yield Refusal(Code.IMPLICIT_CAST, table, table.place_in_sql(shape.right.span[0]), message, example)


def _at(written: Written, span: Span) -> Place:
    return written.place.inside(*position(written.text, max(span[0], 0)))


def written_in(plan: Plan) -> Iterator[Written]:
    """The SQL of a definition over streams: queries, and the expressions that can be read."""
    for table in plan.tables.values():
        made, owner = table.made_by, table.owner
        operation = owner.operation if isinstance(owner, Step) else None
        is_query = isinstance(made, RowSql | GroupSql | PairSql) and not (isinstance(made, RowSql) and made.pairs)
        if is_query and isinstance(operation, Sql) and isinstance(made, RowSql | GroupSql | PairSql):
            yield Written(table, made.query, operation.text, operation.place)
    for subject, name, text, place in _expressions(plan):
        try:
            query = Query.of_expression(text, name, lambda each: plan.table(each).columns)
        except SqlError:
            continue  # reported with the columns of the table
        yield Written(subject, query, text, place)


def _expressions(plan: Plan) -> Iterator[tuple[Table | End, str, str, Place]]:
    """Each expression over a stream: the declaration, the table, the text and its place."""
    for table in plan.tables.values():
        made, owner = table.made_by, table.owner
        if not table.path.is_stream:
            continue
        if isinstance(made, Source):
            yield from ((table, table.name, each.expression, each.expression_place) for each in made.columns)
        if isinstance(made, Aggregation):
            yield from ((table, made.input, each.expression, each.expression_place) for each in made.aggregates)
        if isinstance(owner, Step) and not table.is_hidden:
            yield from ((table, table.name, each.check, each.check_place) for each in owner.expectations)
    for end in plan.ends:
        yield from ((end, end.input, *each) for each in _of_end(end) if plan.is_stream(end.input))


def _of_end(end: End) -> Iterator[tuple[str, Place]]:
    target = end.target
    if isinstance(target, TopicTarget):
        named = [("key", target.key), ("deletes", target.deletes)]
        yield from ((text, place_of(end, key)) for key, text in named if text is not None)
        yield from ((text, place_of(end, "value", text)) for text in target.value)
        yield from ((each.expression, each.expression_place) for each in target.headers)
    if isinstance(target, TableTarget | LakehouseTarget) and target.changes is not None:
        deletes = target.changes.deletes
        yield from [] if deletes is None else [(deletes, place_of(end, "changes", "deletes"))]
