"""Which columns of the result of a SQL query may be null, and the groups of event time that may be null."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.sql_written import is_star, name_of
from odradek.pipelines.planning.group_columns import group_expressions
from odradek.pipelines.planning.grouping_sets import grouped_expressions, partial_expressions
from odradek.pipelines.planning.null_columns import (
    Column,
    NullTime,
    Rows,
    Scope,
    Time,
    may_be_null,
    non_null_columns,
    united,
)
from odradek.pipelines.planning.null_guards import plain_columns
from odradek.pipelines.planning.queries import (
    JoinType,
    has_aggregates,
    is_window_time,
    join_type,
    own_nodes,
    window_calls,
)
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
    null. `groupings` has an entry for GROUP BY and for DISTINCT of each SELECT and UNION: its node, and the columns and
    windows of event time among what it groups by. `grouped_sessions` are sessions of other steps among it."""

    def __init__(self, tables: Mapping[str, Rows]) -> None:
        self._tables = tables  # by lower-case name
        self.null_times: list[NullTime] = []
        self.groupings: list[tuple[exp.Expr, frozenset[str]]] = []
        self.grouped_sessions: list[str] = []

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
        return self._distinct(union, rows) if union.args.get("distinct") else rows

    def selected(self, node: exp.Select, scope: Scope, _read: Callable[[exp.Expr], Rows]) -> Rows:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

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
        windows = own_windows(calls, scope)
        for each in group_expressions(node):
            self.null_times += null_times(scope.column(column) for column in each.find_all(exp.Column))
        if node.args.get("group") or has_aggregates(node):
            expressions = [each.unnest() for each in grouped_expressions(node)]
            sessions = [each for each in expressions if is_session(each, scope)]
            timed = [each for each in expressions if event_time(each, scope, windows) is not None]
            self.groupings.append((node, frozenset(shown(each, scope) for each in timed if each not in sessions)))
            self.grouped_sessions += [each.name for each in sessions]
        rows = selected_columns(node, scope, windows)
        return self._distinct(node, rows) if node.args.get("distinct") else rows

    def _distinct(self, node: exp.Expr, rows: Rows) -> Rows:
        self.null_times += null_times(rows.columns)
        sessions = [each.name for each in rows.columns if each.kind is Time.SESSION and each.time is not None]
        marked = frozenset(each.name for each in rows.columns if each.mark is not None)
        self.groupings.append((node, marked.difference(sessions)))
        self.grouped_sessions += sessions
        return rows


def is_session(node: exp.Expr, scope: Scope) -> bool:
    """Whether this is a column of sessions of another step."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    found = scope.column(node) if isinstance(node, exp.Column) else None
    return found is not None and found.kind is Time.SESSION and found.time is not None


def own_windows(calls: list[exp.Expr], scope: Scope) -> Windows:
    """The windows of a SELECT that makes these calls."""
    none = Windows(frozenset(), None)
    times = (event_time(each, scope, none) for each in calls)
    return Windows(frozenset(map(name_of, calls)), next(filter(None, times), None))


def event_time(node: exp.Expr, scope: Scope, windows: Windows) -> str | None:
    """The event time that Spark knows an expression as: a column or a window of it, nothing else that it is part of."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    node = node.unnest()
    if isinstance(node, exp.Column):
        is_own = len(node.parts) == 1 and is_window(node, scope, windows)
        return windows.time if is_own else scope.column(node).mark
    is_call = is_window_time(node) or window_calls(node)[:1] == [node]
    return event_time(node.expressions[0], scope, windows) if is_call and node.expressions else None


def shown(node: exp.Expr, scope: Scope) -> str:
    """A text that is the same for the same column, with and without its table."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Column):
        return ".".join(next(iter(scope.find(node)), (node.name,)))
    return f"{name_of(node)}({', '.join(each.sql(dialect='spark') for each in node.expressions)})"


def null_times(columns: Iterable[Column]) -> list[NullTime]:
    """The columns of event time that may be null."""
    return [NullTime(each.time) for each in columns if each.time is not None and each.may_be_null]


def join(node: exp.Expr, scope: Scope, right: Scope) -> None:
    """Joins the tables of a scope with others."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

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
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

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
            found = Rows((window_column(name, item, windows),))
        else:
            found = Rows((selected_column(name, item, scope),))
        rows = Rows((*rows.columns, *found.columns), rows.is_open or found.is_open)
    return rows


def window_column(name: str, item: exp.Expr, windows: Windows) -> Column:
    """The column of a window of the SELECT, or of its start, its end or its time."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    kind, time = Time.WINDOW, windows.time
    if is_window_time(item):
        kind = Time.MOMENT
    elif isinstance(item, exp.Dot) or len(getattr(item, "parts", ())) > 1:
        kind, time = Time.END, None if item.name.lower() == "start" else time
    return Column(name, may_be_null=False, time=time, kind=kind)


def selected_column(name: str, item: exp.Expr, scope: Scope) -> Column:
    """The column of an expression: a column of a table, the end or the time of a window of a table, or another."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    may_be_missing = may_be_null(item, scope.column)
    if is_window_time(item):
        return Column(name, may_be_missing, event_time(item, scope, Windows(frozenset(), None)))
    if not isinstance(item, exp.Column):
        return Column(name, may_be_missing)
    found = scope.column(item)
    path = [part.name for part in item.parts]
    if found.time is None and len(path) > 1 and path[-1].lower() == "end":
        struct = scope.column(exp.column(path[-2], path[-3] if len(path) > 2 else None))
        if struct.kind in {Time.WINDOW, Time.SESSION}:
            return Column(name, struct.may_be_null, struct.time, Time.END)
    return Column(name, may_be_missing, found.time, found.kind)


def is_window(item: exp.Expr, scope: Scope, windows: Windows) -> bool:
    """Whether this is a window of the SELECT, or its start, its end or its time."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

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
