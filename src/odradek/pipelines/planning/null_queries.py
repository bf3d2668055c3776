"""Which columns of the result of a SQL query may be null, and the groups of event time that may be null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_written import is_star, name_of
from odradek.pipelines.planning.group_columns import group_expressions
from odradek.pipelines.planning.grouping_sets import partial_expressions
from odradek.pipelines.planning.null_columns import (
    Column,
    NullTime,
    Rows,
    Scope,
    may_be_null,
    non_null_columns,
    united,
)
from odradek.pipelines.planning.null_guards import plain_columns
from odradek.pipelines.planning.queries import JoinType, is_window_time, join_type, own_nodes, window_calls
from odradek.pipelines.planning.query_walk import Reading, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that a SELECT calls: the names of their columns, and their event time."""

    names: frozenset[str]
    time: str | None


class NullQueries(Reading[Rows, Scope]):
    """Reads queries over these tables; `null_times` are the columns of event time that they group by and that may be
    null."""

    def __init__(self, tables: Mapping[str, Rows]) -> None:
        self._tables = tables  # by lower-case name
        self.null_times: list[NullTime] = []

    def of_query(self, query: exp.Expr) -> Rows:
        return Walk(self).rows(query)

    def table(self, name: str) -> Rows:
        return self._tables.get(name, Rows(is_open=True))

    def generated(self, node: exp.Expr) -> Rows:
        return generated(node)

    def pivoted(self, _rows: Rows) -> Rows:
        return Rows(is_open=True)

    def renamed(self, _node: exp.Expr, rows: Rows, names: list[str]) -> Rows:
        return rows.renamed(names)

    def no_tables(self) -> Scope:
        return Scope()

    def one_table(self, node: exp.Expr, rows: Rows) -> Scope:
        return Scope({str(node.alias_or_name).lower() or f"#{id(node)}": rows})

    def joined(self, node: exp.Expr, scope: Scope, right: Scope) -> Scope:
        join(node, scope, right)
        return scope

    def exploded(self, lateral: exp.Expr, scope: Scope) -> Scope:
        scope.tables[str(lateral.alias).lower() or f"#{len(scope.tables)}"] = generated(lateral)
        return scope

    def whole(self, scope: Scope) -> Rows:
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        return scope.starred(exp.Star())

    def united(self, union: exp.Expr, left: Rows, right: Rows) -> Rows:
        rows = united(left, right)
        return self._distinct(rows) if union.args.get("distinct") else rows

    def selected(self, node: exp.Select, scope: Scope, _read: Callable[[exp.Expr], Rows]) -> Rows:
        from sqlglot import exp  # noqa: PLC0415

        where = node.args.get("where")
        if where is not None:
            scope.require(non_null_columns(where))
        calls: list[exp.Expr] = [
            each for each in own_nodes(node) if isinstance(each, exp.Anonymous) and window_calls(each)[:1] == [each]
        ]
        for each in calls:  # windows leave out rows without event time
            scope.require(plain_columns(each.expressions[0]) if each.expressions else ())
        having = node.args.get("having")
        if having is not None:
            computed = {each.alias.lower() for each in node.expressions if isinstance(each, exp.Alias)}
            scope.require(each for each in non_null_columns(having) if each.name.lower() not in computed)
        for each in partial_expressions(node, scope.tables):
            is_time = isinstance(each, exp.Column) or window_calls(each)  # other expressions over event time are not
            times = [scope.column(column).time for column in each.find_all(exp.Column)] if is_time else []
            self.null_times += [NullTime(time, is_partial=True) for time in times if time is not None]
        for each in group_expressions(node):
            self.null_times += null_times(scope.column(column) for column in each.find_all(exp.Column))
        over = [scope.column(column).time for call in calls for column in call.find_all(exp.Column)]
        windows = Windows(frozenset(map(name_of, calls)), next(filter(None, over), None))
        rows = selected_columns(node, scope, windows)
        return self._distinct(rows) if node.args.get("distinct") else rows

    def _distinct(self, rows: Rows) -> Rows:
        self.null_times += null_times(rows.columns)
        return rows


def null_times(columns: Iterable[Column]) -> list[NullTime]:
    """The columns of event time that may be null."""
    return [NullTime(each.time) for each in columns if each.time is not None and each.may_be_null]


def join(node: exp.Expr, scope: Scope, right: Scope) -> None:
    """Joins the tables of a scope with others."""
    from sqlglot import exp  # noqa: PLC0415

    kind, on = join_type(node), node.args.get("on")
    shared = [exp.column(each.name.lower()) for each in node.args.get("using") or ()]
    if kind in {JoinType.INNER, JoinType.SEMI}:
        scope.require(shared)
        right.require(shared)
    if kind in {JoinType.RIGHT, JoinType.FULL}:
        scope.lose_match()
    if kind in {JoinType.LEFT, JoinType.FULL}:
        right.lose_match()
    owner = right if kind is JoinType.RIGHT else scope
    owners = {each.name: table for each in shared for table, _ in owner.find(each)[:1]}
    both = Scope({**scope.tables, **right.tables}, {**right.owners, **scope.owners, **owners})
    if on is not None and kind in {JoinType.INNER, JoinType.SEMI}:
        both.require(non_null_columns(on))
    kept = scope.tables if kind in {JoinType.SEMI, JoinType.ANTI} else both.tables
    scope.tables = {table: both.tables[table] for table in kept}
    scope.owners = scope.owners if kind in {JoinType.SEMI, JoinType.ANTI} else both.owners


def selected_columns(node: exp.Select, scope: Scope, windows: Windows) -> Rows:
    """The columns that a SELECT with these windows selects."""
    from sqlglot import exp  # noqa: PLC0415

    rows = Rows()
    for each in node.expressions:
        item = each.unalias().unnest()
        name = str(each.alias_or_name).lower()
        names = each.args.get("expressions") if isinstance(each, exp.Aliases) else None
        if is_star(item):
            found = scope.starred(item)
        elif names:
            found = Rows(tuple(Column(every.name.lower()) for every in names))
        elif is_window(item, scope, windows):
            time = None if item.name.lower() == "start" else windows.time
            found = Rows((Column(name, may_be_null=False, time=time),))
        else:
            time = scope.column(item).time if isinstance(item, exp.Column) else None
            found = Rows((Column(name, may_be_null(item, scope.column), time),))
        rows = Rows((*rows.columns, *found.columns), rows.is_open or found.is_open)
    return rows


def is_window(item: exp.Expr, scope: Scope, windows: Windows) -> bool:
    """Whether this is a window of the SELECT, or its start, its end or its time."""
    from sqlglot import exp  # noqa: PLC0415

    if is_window_time(item):
        return any(is_window(each, scope, windows) for each in item.expressions)
    if isinstance(item, exp.Column):
        first = item.parts[0].name.lower()
        is_other = any(first == table or rows.has(first) for table, rows in scope.tables.items())
        return first in windows.names and not is_other
    return isinstance(item, exp.Dot | exp.Anonymous) and bool(window_calls(item))


def generated(node: exp.Expr) -> Rows:
    """The rows of a table function, of VALUES or of LATERAL: of their columns only names may be known."""
    alias = node.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    return Rows(tuple(Column(each.name.lower()) for each in names or ()), is_open=not names)
