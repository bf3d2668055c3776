"""The SQL that a definition has over streams, and the names in it and in declarations that no table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import (
    FilesTarget,
    LakehouseTarget,
    Source,
    Step,
    TableTarget,
    TopicTarget,
    place_of,
)
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.operations import Aggregation, Deduplication, KeyedState, Sql, StreamJoin
from odradek.pipelines.planning.plan import GroupSql, PairSql, RowSql
from odradek.pipelines.sql.functions import kind_of, kinds
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.results import unknown_names
from odradek.pipelines.sql.text import SqlError, position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.planning.plan import End, Plan, Table

WINDOW_COLUMNS = ("window_start", "window_end")
SQL, COLUMNS = "OD03", "OD04"  # codes of problems with SQL that cannot be read, and with columns


@dataclass(frozen=True, slots=True)
class Written:
    """SQL that a definition has over a table: a query, or an expression. Spans are those of `text`."""

    subject: Table | End
    query: Query
    text: str
    text_place: Place
    is_expression: bool = False

    def place(self, offset: int) -> Place:
        return self.text_place.inside(*position(self.text, max(offset, 0)))


def check_names(plan: Plan, problems: Problems) -> None:
    """Reports columns that no table has, in SQL and in declarations, and expressions that cannot be read."""
    for written in written_in(plan, problems):
        for each in unknown_names(written.query):
            message = f"{each.message} in {written.subject.described}"
            problems.error(written.place(each.span[0]), message, each.hint, COLUMNS)
        for call in written.query.calls:
            if kind_of(call.name) is None:
                message = f"Spark has no function '{call.name}', which {written.subject.described} calls"
                problems.warning(written.place(call.span[0]), message, suggestion(call.name, kinds()), COLUMNS)
    for subject, name, column, place in _named(plan):
        columns = plan.table(name).columns
        if columns is not None and column not in columns:
            message = f"{subject.described} names the column '{column}', which '{plan.table(name).owner.name}' has not"
            problems.error(place, message, suggestion(column, columns.names), COLUMNS)


def _named(plan: Plan) -> Iterator[tuple[Table | End, str, str, Place]]:
    """Each column that a declaration names: the declaration, the table, the column and its place."""
    for table in plan.tables.values():
        made, owner = table.made_by, table.owner
        names: list[tuple[str, tuple[str, ...], str]] = []
        match made:
            case Aggregation():
                names = [(made.input, made.by, "by")]
                if made.window is not None:
                    names.append((made.input, (made.window.column,), "window/column"))
            case Deduplication() | KeyedState():
                names = [(made.input, made.key, "deduplicate/key" if isinstance(made, Deduplication) else "state/key")]
            case StreamJoin():
                names = [(each, made.on, "join/on") for each in (made.input, made.stream)]
        if isinstance(owner, Source | Step) and owner.watermark is not None and not table.is_hidden:
            names.append((table.name, (owner.watermark.column,), "watermark/column"))
        yield from (
            (table, name, column, table.place(*path.split("/"), column))
            for name, columns, path in names
            for column in columns
        )
    for end in plan.ends:
        target = end.target
        keys = ("key", "order_by") if getattr(target, "changes", None) is None else ("changes/key", "changes/sequence")
        kind = {FilesTarget: "files", LakehouseTarget: "lakehouse"}.get(type(target), "")
        named = [(keys[0] if not kind else f"{kind}/key", end.key), (keys[1], end.order_by)]
        if isinstance(target, FilesTarget | LakehouseTarget):
            named.append((f"{kind}/partition_by", target.partition_by))
        for path, columns in named:
            yield from ((end, end.input, column, place_of(end, *path.split("/"), column)) for column in columns)


def written_in(plan: Plan, problems: Problems | None = None) -> Iterator[Written]:
    """The SQL of a definition over streams: queries, and the expressions that can be read. Reports the others."""
    for table in plan.tables.values():
        made, owner = table.made_by, table.owner
        operation = owner.operation if isinstance(owner, Step) else None
        is_query = isinstance(made, RowSql | GroupSql | PairSql) and not (isinstance(made, RowSql) and made.pairs)
        if is_query and isinstance(operation, Sql) and isinstance(made, RowSql | GroupSql | PairSql):
            yield Written(table, made.query, operation.text, operation.place)
    for subject, name, text, place in expressions(plan):
        try:
            query = Query.of_expression(text, name, lambda each: plan.table(each).columns)
        except SqlError as error:
            if problems is not None:
                message = f"the SQL of {subject.described} cannot be read: {error.message}"
                problems.error(place.inside(*position(text, max(error.offset, 0))), message, error.hint, SQL)
            continue
        yield Written(subject, query, text, place, is_expression=True)


def expressions(plan: Plan, *, of_streams: bool = True) -> Iterator[tuple[Table | End, str, str, Place]]:
    """Each expression over a stream: the declaration, the table, the text and its place."""
    for table in plan.tables.values():
        made, owner = table.made_by, table.owner
        if of_streams and not table.path.is_stream:
            continue
        if isinstance(made, Source):
            yield from ((table, table.name, each.expression, each.expression_place) for each in made.columns)
        if isinstance(made, Aggregation):
            yield from ((table, made.input, each.expression, each.expression_place) for each in made.aggregates)
        if isinstance(owner, Step) and not table.is_hidden:
            yield from ((table, table.name, each.check, each.check_place) for each in owner.expectations)
    for end in plan.ends:
        is_wanted = plan.is_stream(end.input) or not of_streams
        yield from ((end, end.input, *each) for each in _of_end(end) if is_wanted)


def _of_end(end: End) -> Iterator[tuple[str, Place]]:
    target = end.target
    if isinstance(target, TopicTarget):
        named = [("key", target.key), ("deletes", target.deletes)]
        yield from ((text, place_of(end, key)) for key, text in named if text is not None)
        yield from ((text, place_of(end, "value", text)) for text in target.value)
        yield from ((each.expression, each.expression_place) for each in target.headers)
    if isinstance(target, TableTarget) and target.changes is not None:
        deletes = target.changes.deletes
        yield from [] if deletes is None else [(deletes, place_of(end, "changes", "deletes"))]
