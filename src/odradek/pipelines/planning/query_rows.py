"""The rows of a SQL query over changing groups, and the conditions by which it removes some of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_written import is_star
from odradek.pipelines.planning.group_columns import (
    STATIC,
    UNKNOWN,
    Column,
    Kind,
    Rows,
    column_of,
    distinct,
    group_expressions,
    group_part,
    identifying,
    joined,
    part_finder,
    united,
)
from odradek.pipelines.planning.grouping_sets import partial_expressions
from odradek.pipelines.planning.null_columns import non_null_columns
from odradek.pipelines.planning.queries import (
    WINDOWS,
    JoinType,
    has_aggregates,
    is_aggregate,
    join_type,
    window_calls,
)
from odradek.pipelines.planning.query_scope import (
    Scope,
    alias_of,
    equated,
    leaves_out_fractions,
    shows_local_hours,
    types_of,
)
from odradek.pipelines.planning.query_walk import Reading, Walk
from odradek.pipelines.planning.window_parts import WINDOW, WINDOW_PART

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.sql_scope import Tables
    from odradek.pipelines.planning.query_scope import TypeOf

REMOVING = frozenset((JoinType.INNER, JoinType.SEMI, JoinType.ANTI))
AN_AGGREGATE = "an aggregate"
TOTALS = "the totals of "


class QueryRows(Reading[Rows, Scope]):
    """Derives the rows of queries from those of their tables, whose names are in lower case, and from their columns.

    `removals` are the changing columns by which the queries remove rows. With `repeats_hours`, clocks of the time zone
    are set back."""

    def __init__(self, tables: Mapping[str, Rows], columns: Tables, *, repeats_hours: bool = False) -> None:
        self._tables = tables
        self._columns = columns
        self._repeats_hours = repeats_hours
        self._types: dict[int, TypeOf] = {}  # by the identity of a SELECT
        self.removals: list[str] = []

    def of_query(self, query: exp.Expr) -> Rows:
        return Walk(self).rows(query)

    def table(self, name: str) -> Rows:
        return self._tables.get(name, STATIC)

    def generated(self, _node: exp.Expr) -> Rows:
        return STATIC

    def pivoted(self, rows: Rows) -> Rows:
        return rows if rows.is_static else UNKNOWN

    def renamed(self, _node: exp.Expr, rows: Rows, names: list[str]) -> Rows:
        """Any column of groups may be the one that changes if their order is not known."""
        if rows.default is None and rows.is_ordered and len(names) == len(rows.columns):
            return replace(rows, columns=dict(zip(names, rows.columns.values(), strict=True)))
        is_plain = rows.is_fixed and not any(each.parts for each in rows.columns.values())
        return replace(rows, columns={}, default=Column(Kind.FIXED if is_plain else Kind.CHANGING))

    def no_tables(self) -> Scope:
        return Scope()

    def one_table(self, node: exp.Expr, rows: Rows) -> Scope:
        select = node.parent_select
        if id(select) not in self._types:
            self._types[id(select)] = types_of(select, self._columns)
        return Scope(rows, {alias_of(node): rows}, self._types[id(select)])

    def whole(self, tables: Scope) -> Rows:
        return tables.rows

    def united(self, union: exp.Expr, left: Rows, right: Rows) -> Rows:
        rows = united(left, right, lambda at: has_own_literals(union, at))
        return distinct(rows) if union.args.get("distinct") and not rows.is_static else rows

    def selected(self, select: exp.Select, tables: Scope, _read: Callable[[exp.Expr], Rows]) -> Rows:
        where = select.args.get("where")
        if where is not None:
            self._remove_by(where, tables)
            tables.equate(equated(where), JoinType.INNER, ())
        if tables.rows.is_static:
            return STATIC
        is_grouped = select.args.get("group") or has_aggregates(select)
        rows = self._grouped(select, tables) if is_grouped else self._projected(select, tables)
        return distinct(rows) if select.args.get("distinct") else rows

    def joined(self, join: exp.Expr, scope: Scope, other: Scope) -> Scope:
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        kind = join_type(join)
        if join.args.get("using") or join.args.get("method"):  # the columns that they equate come first
            scope.forget_order()
            other.forget_order()
        left, right = scope.rows, other.rows
        both = Scope(left, {**scope.by_name, **other.by_name})
        both.rows = joined(left, right, changes=False)
        on = join.args.get("on")
        found = both.changing([] if on is None else on.find_all(exp.Column))
        for each in join.args.get("using") or ():
            found += [each.name] if max(left.column(each.name).kind, right.column(each.name).kind) else []
        if join.args.get("method") and not (left.is_fixed and right.is_fixed):
            found.append("a column of NATURAL JOIN")
        is_kept = (kind is JoinType.LEFT and right.is_static) or (kind is JoinType.RIGHT and left.is_static)
        if found and not is_kept and (kind in REMOVING or not (left.is_static and right.is_static)):
            self.removals.append(found[0])
        if kind in {JoinType.SEMI, JoinType.ANTI}:
            return scope
        if not (left.is_static or right.is_static):
            scope.number(1)
            other.number(2)
            left, right = scope.rows, other.rows
        is_led = left.is_static and not right.is_static
        scope.rows = joined(right, left, changes=bool(found)) if is_led else joined(left, right, changes=bool(found))
        if found:
            (scope if is_led else other).change()
        scope.add(other)
        tables = list(other.by_name)
        if not found:
            scope.equate(equated(on) if on is not None else scope.shared(join, tables), kind, tables)
        if on is not None and kind is JoinType.LEFT and not found:
            scope.copy(on, tables)
        return scope

    def exploded(self, lateral: exp.Expr, tables: Scope) -> Scope:
        """LATERAL VIEW: a row for each element."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        found = tables.changing(lateral.this.find_all(exp.Column))
        self.removals += [] if lateral.args.get("outer") else found[:1]
        kind = Kind.CHANGING if found else Kind.FIXED
        alias = lateral.args.get("alias")
        names = [each.name.lower() for each in (alias.args.get("columns") if alias is not None else None) or ()]
        made = Rows(dict.fromkeys(names, Column(kind)), default=None if names else Column(kind))
        tables.rows = joined(tables.rows, made, changes=False)
        if alias is not None:
            tables.by_name[alias.name.lower()] = made
        return tables

    def _remove_by(self, condition: exp.Expr, scope: Scope) -> None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        self.removals += scope.changing(condition.find_all(exp.Column))[:1]

    def _grouped(self, node: exp.Expr, scope: Scope) -> Rows:
        """The rows of a SELECT with groups: those that it selects, with what it groups by as their identity."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        expressions = group_expressions(node)
        part_of = part_finder(expressions, scope.by_name)
        steps = {part_of(each) or "": column_of(each, scope.resolve).step for each in expressions}
        window = next(filter(WINDOW_PART.fullmatch, steps), WINDOW)
        totals = totals_of(node, scope)

        def resolve(each: exp.Expr) -> Column | None:
            if isinstance(each, exp.Grouping | exp.GroupingId):
                named = {f"{TOTALS}{part_of(every)}" for every in each.expressions}
                return Column(parts=totals & named if named else totals)
            if isinstance(each, exp.Column):
                is_window = WINDOWS.intersection((each.name.lower(), each.table.lower()))
                part = window if is_window and window in steps else part_of(each)
            elif isinstance(each, exp.Dot | exp.Anonymous) and window_calls(each):
                part = window
            else:
                part = None if is_aggregate(each) or not each.args else part_of(each)
            if part in steps:
                return identifying(part, steps[part])
            is_told = not (leaves_out_fractions(each, scope.type_of) or self._merges_hours(each, scope, resolve))
            return None if is_told and not isinstance(each, exp.Column) else Column()

        columns = {name_of(each, at): column_of(each, resolve) for at, each in enumerate(node.expressions)}
        having = node.args.get("having")
        if having is not None:
            found = changing_paths(having, Rows(columns), lambda name: name in scope.by_name and name not in columns)
            calls = [each for each in having.walk() if not isinstance(each, exp.Grouping | exp.GroupingId)]
            found += [AN_AGGREGATE] if any(map(is_aggregate, calls)) else []
            self.removals += found[:1]
        held = frozenset().union(*(identifying(each, step).parts for each, step in steps.items()))
        return Rows(columns, held | totals)

    def _merges_hours(self, node: exp.Expr, scope: Scope, resolve: Callable[[exp.Expr], Column | None]) -> bool:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if not self._repeats_hours or not isinstance(node, exp.Cast | exp.TimeToStr | exp.UnixToStr):
            return False
        return shows_local_hours(node, scope.type_of(node.this), column_of(node.this, resolve))

    def _projected(self, node: exp.Expr, scope: Scope) -> Rows:
        """The rows of a SELECT without groups."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        def resolve(each: exp.Expr) -> Column | None:
            if self._merges_hours(each, scope, scope.resolve):
                return Column(Kind.CHANGING if column_of(each.this, scope.resolve).kind else Kind.FIXED)
            return scope.resolve(each)

        made = replace(scope.rows, columns={}, default=None, is_ordered=True)
        for at, each in enumerate(node.expressions):
            item = each.unalias()
            if is_star(item):
                found = scope.starred(item)
                columns, default = {**made.columns, **found.columns}, found.default or made.default
                is_ordered = made.is_ordered and found.is_ordered
                made = replace(made, columns=columns, default=default, is_ordered=is_ordered)
                continue
            column = column_of(item, resolve)
            if isinstance(item, exp.UDTF) and column.kind and not type(item).__name__.endswith("Outer"):
                self.removals += scope.changing(item.find_all(exp.Column))[:1]
            names = each.args.get("expressions") if isinstance(each, exp.Aliases) else None
            named = [name.name.lower() for name in names] if names else [name_of(each, at)]
            made = replace(made, columns={**made.columns, **dict.fromkeys(named, column)})
        return made


def totals_of(select: exp.Expr, scope: Scope) -> frozenset[str]:
    """The parts of a group's identity that say for which expressions it is a total: ROLLUP, CUBE and GROUPING SETS have
    groups in which they are null. If rows with null are left out, null says it."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    part_of = part_finder(group_expressions(select), scope.by_name)
    where = select.args.get("where")
    required = {part_of(each) for each in (() if where is None else non_null_columns(where))}
    found = partial_expressions(select, scope.by_name)
    partial = {part_of(each) or group_part(each, scope.by_name): each for each in found}
    return frozenset(
        f"{TOTALS}{part}"
        for part, each in partial.items()
        if not (isinstance(each, exp.Column) and part in required) and not WINDOW_PART.fullmatch(part)
    )


def name_of(item: exp.Expr, at: int) -> str:
    """The lower-case name of a selected column; one without a name has its position, which no column is called."""
    name = str(item.alias_or_name).lower()
    return name if name not in {"", "*"} else f" {at}"


def changing_paths(condition: exp.Expr, rows: Rows, is_table: Callable[[str], bool]) -> list[str]:
    """The columns of a condition over these rows that change, and the fields of structs that do."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    paths = [[part.name.lower() for part in each.parts] for each in condition.find_all(exp.Column)]
    named = [path[1:] if len(path) > 1 and is_table(path[0]) else path for path in paths]
    return [".".join(path) for path in named if rows.column(path[0]).kind]


def has_own_literals(union: exp.Expr, at: int) -> bool:
    """Whether the column at this position is another literal in each SELECT of a UNION."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    selects = [each for side in (union.this, union.expression) for each in selects_of(side)]
    items = [each.expressions[at].unalias() if at < len(each.expressions) else None for each in selects]
    texts = [each.sql(dialect="spark") for each in items if isinstance(each, exp.Literal)]
    return len(set(texts)) == len(selects)


def selects_of(node: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.SetOperation):
        return [*selects_of(node.this), *selects_of(node.expression)]
    return selects_of(node.this) if isinstance(node, exp.Subquery) else [node]
