"""The rows of a SQL query over changing groups, and the conditions by which it removes some of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_columns import scope_of, type_of, with_ctes
from odradek.pipelines.definition.sql_written import is_star
from odradek.pipelines.planning.group_columns import (
    STATIC,
    UNKNOWN,
    WINDOWS,
    Column,
    Kind,
    Rows,
    column_of,
    distinct,
    group_expressions,
    identifying,
    joined,
    part_finder,
    united,
)
from odradek.pipelines.planning.queries import (
    JoinType,
    argument,
    has_aggregates,
    has_parentheses,
    is_aggregate,
    join_type,
    window_calls,
)
from odradek.pipelines.planning.query_scope import Scope, alias_of, equated, with_plain_tables
from odradek.pipelines.planning.window_parts import WINDOW, WINDOW_PART

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.sql_scope import Tables
    from odradek.pipelines.planning.query_scope import TypeOf

REMOVING = frozenset((JoinType.INNER, JoinType.SEMI, JoinType.ANTI))
AN_AGGREGATE = "an aggregate"


class QueryRows:
    """Derives the rows of queries from those of their tables, whose names are in lower case, and from their columns.

    `removals` are the changing columns by which the queries remove rows."""

    def __init__(self, tables: Mapping[str, Rows], columns: Tables) -> None:
        self._tables = tables
        self._columns = columns  # of a table, with those of the WITH clauses around a query
        self.removals: list[str] = []

    def of_query(self, node: exp.Expr, outer: Mapping[str, Rows] | None = None) -> Rows:
        around, self._columns = self._columns, with_ctes(node, self._columns)
        named = dict(outer or {})
        for each in getattr(argument(node, "with"), "expressions", ()):
            named[each.alias.lower()] = self.of_query(each.this, named)
        rows = self._of_body(node, named)
        self._columns = around
        return rows

    def _of_body(self, node: exp.Expr, named: Mapping[str, Rows]) -> Rows:
        """The rows of a query whose WITH clause is read."""
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        if isinstance(node, exp.Subquery):
            return self._relation(node, named, lambda _column: None).rows
        if isinstance(node, exp.SetOperation):
            sides = [self.of_query(each, named) for each in (node.this, node.expression)]
            rows = united(sides[0], sides[1], lambda at: has_own_literals(node, at))
            return distinct(rows) if node.args.get("distinct") and not rows.is_static else rows
        return self._select(node, named) if isinstance(node, exp.Select) else STATIC

    def _select(self, node: exp.Select, named: Mapping[str, Rows]) -> Rows:
        types = scope_of(with_plain_tables(node), self._columns)
        scope = Scope(type_of=lambda column: type_of(column, types, None))
        clause = argument(node, "from")
        if clause is not None:
            scope = self._relation(clause.this, named, scope.type_of)
        for each in node.args.get("joins") or ():
            self._join(each, scope, named)
        for each in node.args.get("laterals") or ():
            self._generate(each, scope, is_outer=bool(each.args.get("outer")))
        where = node.args.get("where")
        if where is not None:
            self._remove_by(where, scope)
            scope.equate(equated(where), JoinType.INNER, ())
        if scope.rows.is_static:
            return STATIC
        is_grouped = node.args.get("group") or has_aggregates(node)
        rows = self._grouped(node, scope) if is_grouped else self._projected(node, scope)
        return distinct(rows) if node.args.get("distinct") else rows

    def _relation(self, node: exp.Expr, named: Mapping[str, Rows], typed: TypeOf) -> Scope:
        """The tables of a part of FROM: those in parentheses keep their names, unless these have an alias."""
        from sqlglot import exp  # noqa: PLC0415

        alias, rows = node.args.get("alias"), STATIC
        if isinstance(node, exp.Table):
            name = node.name.lower()
            rows = named.get(name, self._tables.get(name, STATIC))
        elif has_parentheses(node):
            inner = self._relation(node.this, named, typed)
            rows = inner.rows
        elif isinstance(node, exp.Subquery):
            rows = self.of_query(node.this, named)
        is_renamed = alias is not None and alias.args.get("columns")
        if (is_renamed or node.args.get("pivots")) and not rows.is_static:
            rows = UNKNOWN
        is_open = has_parentheses(node) and alias is None
        scope = inner if is_open else Scope(rows, {alias_of(node): rows}, typed)
        for each in node.args.get("joins") or ():
            self._join(each, scope, named)
        return scope

    def _join(self, join: exp.Expr, scope: Scope, named: Mapping[str, Rows]) -> None:
        from sqlglot import exp  # noqa: PLC0415

        kind = join_type(join)
        if isinstance(join.this, exp.Lateral):
            self._generate(join.this, scope, is_outer=kind is JoinType.LEFT)
            return
        other = self._relation(join.this, named, scope.type_of)
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
            return
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

    def _generate(self, lateral: exp.Expr, scope: Scope, *, is_outer: bool) -> None:
        """LATERAL VIEW and LATERAL: a row for each element."""
        from sqlglot import exp  # noqa: PLC0415

        found = scope.changing(lateral.this.find_all(exp.Column))
        self.removals += found[:1] if not is_outer else []
        kind = Kind.CHANGING if found else Kind.FIXED
        alias = lateral.args.get("alias")
        names = [each.name.lower() for each in (alias.args.get("columns") if alias is not None else None) or ()]
        made = Rows(dict.fromkeys(names, Column(kind)), default=None if names else Column(kind))
        scope.rows = joined(scope.rows, made, changes=False)
        if alias is not None:
            scope.by_name[alias.name.lower()] = made

    def _remove_by(self, condition: exp.Expr, scope: Scope) -> None:
        from sqlglot import exp  # noqa: PLC0415

        self.removals += scope.changing(condition.find_all(exp.Column))[:1]

    def _grouped(self, node: exp.Expr, scope: Scope) -> Rows:
        """The rows of a SELECT with groups: those that it selects, with what it groups by as their identity."""
        from sqlglot import exp  # noqa: PLC0415

        expressions = group_expressions(node)
        part_of = part_finder(expressions, scope.by_name)
        steps = {part_of(each) or "": column_of(each, scope.resolve).step for each in expressions}
        window = next(filter(WINDOW_PART.fullmatch, steps), WINDOW)

        def resolve(each: exp.Expr) -> Column | None:
            if isinstance(each, exp.Column):
                is_window = WINDOWS.intersection((each.name.lower(), each.table.lower()))
                part = window if is_window and window in steps else part_of(each)
            elif isinstance(each, exp.Dot | exp.Anonymous) and window_calls(each):
                part = window
            else:
                part = None if is_aggregate(each) or not each.args else part_of(each)
            if part in steps:
                return identifying(part, steps[part])
            return Column() if isinstance(each, exp.Column) else None

        columns = {each.alias_or_name.lower(): column_of(each, resolve) for each in node.expressions}
        having = node.args.get("having")
        if having is not None:
            found = changing_paths(having, Rows(columns), lambda name: name in scope.by_name and name not in columns)
            found += [AN_AGGREGATE] if any(map(is_aggregate, having.walk())) else []
            self.removals += found[:1]
        return Rows(columns, frozenset().union(*(identifying(each, step).parts for each, step in steps.items())))

    def _projected(self, node: exp.Expr, scope: Scope) -> Rows:
        """The rows of a SELECT without groups."""
        from sqlglot import exp  # noqa: PLC0415

        made = replace(scope.rows, columns={}, default=None)
        for each in node.expressions:
            item = each.unalias()
            if is_star(item):
                found = scope.starred(item)
                made = replace(made, columns={**made.columns, **found.columns}, default=found.default or made.default)
                continue
            column = column_of(item, scope.resolve)
            if isinstance(item, exp.UDTF) and column.kind and not type(item).__name__.endswith("Outer"):
                self.removals += scope.changing(item.find_all(exp.Column))[:1]
            names = each.args.get("expressions") if isinstance(each, exp.Aliases) else None
            named = [name.name for name in names] if names else [each.alias_or_name]
            made = replace(made, columns={**made.columns, **{name.lower(): column for name in named}})
        return made


def changing_paths(condition: exp.Expr, rows: Rows, is_table: Callable[[str], bool]) -> list[str]:
    """The columns of a condition over these rows that change, and the fields of structs that do."""
    from sqlglot import exp  # noqa: PLC0415

    paths = [[part.name.lower() for part in each.parts] for each in condition.find_all(exp.Column)]
    named = [path[1:] if len(path) > 1 and is_table(path[0]) else path for path in paths]
    return [".".join(path) for path in named if rows.column(path[0]).kind]


def has_own_literals(union: exp.Expr, at: int) -> bool:
    """Whether the column at this position is another literal in each SELECT of a UNION."""
    from sqlglot import exp  # noqa: PLC0415

    selects = [each for side in (union.this, union.expression) for each in selects_of(side)]
    items = [each.expressions[at].unalias() if at < len(each.expressions) else None for each in selects]
    texts = [each.sql(dialect="spark") for each in items if isinstance(each, exp.Literal)]
    return len(set(texts)) == len(selects)


def selects_of(node: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.SetOperation):
        return [*selects_of(node.this), *selects_of(node.expression)]
    return selects_of(node.this) if isinstance(node, exp.Subquery) else [node]
