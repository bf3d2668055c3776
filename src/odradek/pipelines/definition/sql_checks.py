"""Finds what Spark's analyzer would refuse in a query: functions, aggregations and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Primitive, Struct
from odradek.pipelines.definition.spark_functions import Answer, operate
from odradek.pipelines.definition.sql_calls import wrong_calls
from odradek.pipelines.definition.sql_columns import scope_of, with_ctes
from odradek.pipelines.definition.sql_findings import Finding
from odradek.pipelines.definition.sql_groups import GENERATOR, WINDOWS, Grouping, below
from odradek.pipelines.definition.sql_scope import Scope
from odradek.pipelines.definition.sql_text import place_in
from odradek.pipelines.definition.sql_types import DATE, STRING, TIMESTAMP, Typing, shown
from odradek.pipelines.definition.sql_windows import window_findings
from odradek.pipelines.definition.sql_written import is_star, name_of, start_of, written_expression, written_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import exp

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.spark_functions import Functions
    from odradek.pipelines.definition.sql_scope import Tables
    from odradek.pipelines.definition.table_columns import Columns

WITHOUT_GROUPS = "aggregate in a step: aggregate: {name: …}, by: […]"
SIDES_HIDDEN = ("SEMI", "ANTI")  # of joins whose result has the columns of one side only


def findings_of_query(text: str, tables: Tables, functions: Functions) -> list[Finding]:
    tree = written_query(text)
    if tree is None:
        return []
    return [*wrong_calls(tree, functions), *QueryCheck(functions).query(tree, tables)]


def findings_of_expression(
    text: str, columns: Columns | None, functions: Functions, by: Sequence[str] | None = None
) -> list[Finding]:
    """The findings of an expression, or with the grouping columns `by`, of an aggregate."""
    tree = written_expression(text)
    if tree is None:
        return []
    typing = Typing(Scope({"": columns}, frozenset(), is_open=False), functions)
    typing.type_of(tree)
    grouping = Grouping(tree.parent_select or tree, typing.scope, functions)  # type: ignore[arg-type]  # an expression alone is grouped as a query is
    found = [*wrong_calls(tree, functions), *typing.findings, *grouping.misplaced(), *parts_of_queries(tree, functions)]
    if by is not None:
        found += grouping.ungrouped([column_named(name) for name in by]) if grouping.aggregates(tree) else []
    else:
        found += [
            Finding(f"the aggregate function {name_of(each)} is used without groups", WITHOUT_GROUPS, *place_in(each))
            for each in grouping.aggregates(tree)
        ]
    shift = len("SELECT ")
    return [
        Finding(each.message, each.hint, each.line, max(each.column - shift, 1) if each.line == 1 else each.column)
        for each in found
    ]


def parts_of_queries(tree: exp.Expr, functions: Functions) -> Iterator[Finding]:
    """What an expression outside of a query cannot have: it has no tables, and one value for each row."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    for query in tree.find_all(exp.Query):
        yield Finding(
            "a subquery is used outside of a query", "select its value in a SQL step before", *start_of(query)
        )
    for call in tree.find_all(exp.Anonymous):
        if functions.kind(name_of(call)) == GENERATOR:
            message = f"{name_of(call)} returns several rows"
            yield Finding(message, f"use it in a SQL step: select {name_of(call)}(…) as name", *place_in(call))


def column_named(name: str) -> exp.Expr:
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    return exp.column(name)


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """Walks the SELECTs of a query, each with the tables in its scope."""

    functions: Functions

    def query(self, query: exp.Expr, tables: Tables) -> Iterator[Finding]:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        clause = query.args.get("with_") or query.args.get("with")
        inner = with_ctes(query, tables, self.functions)
        if clause is not None:
            if clause.args.get("recursive"):
                return
            for cte in clause.expressions:
                yield from self.query(cte.this, inner)
        if isinstance(query, exp.Subquery):
            yield from self.query(query.this, inner)
        elif isinstance(query, exp.SetOperation):
            yield from self.query(query.this, inner)
            yield from self.query(query.expression, inner)
            yield from self._united(query, inner)
        elif isinstance(query, exp.Select):
            yield from self._select(query, inner)

    def _select(self, select: exp.Select, tables: Tables) -> Iterator[Finding]:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        origin = select.args.get("from_") or select.args.get("from")
        joins = select.args.get("joins") or []
        for each in ([] if origin is None else [origin.this]) + [join.this for join in joins]:
            if isinstance(each, exp.Subquery):
                yield from self.query(each, tables)
        if select.args.get("pivots") or any(each.args.get("pivots") for each in select.find_all(exp.Table)):
            return
        scope = scope_of(select, tables, self.functions)
        aliases = frozenset(each.alias.lower() for each in select.expressions if each.alias)
        yield from self._columns(select, scope)
        yield from self._clauses(select, Typing(scope, self.functions), Typing(scope, self.functions, aliases))
        yield from Grouping(select, scope, self.functions).findings()
        yield from self._keys_joined(joins, scope)
        yield from self._ambiguous(select, scope, aliases)
        yield from self._generators(select)
        calls = [each for each in below(select) if isinstance(each, exp.Anonymous) and name_of(each) in WINDOWS]
        yield from window_findings(select, calls, scope)

    def _columns(self, select: exp.Select, scope: Scope) -> Iterator[Finding]:
        """The expressions of the SELECT; each may use the names of those before it."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        typing = Typing(scope, self.functions)
        for projection in select.expressions:
            if not is_star(projection):
                kind = typing.type_of(projection)
                if isinstance(projection, exp.Alias):
                    typing.named.setdefault(projection.alias.lower(), kind)
            elif isinstance(projection, exp.Column):
                yield from self._starred(projection, typing)
        yield from typing.findings

    def _clauses(self, select: exp.Select, typing: Typing, after: Typing) -> Iterator[Finding]:
        """The other clauses; HAVING, GROUP BY and ORDER BY, typed by `after`, may name columns of the result."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        conditions = [("WHERE", select.args.get("where"), typing), ("HAVING", select.args.get("having"), after)]
        for word, clause, chosen in conditions:
            if clause is not None:
                chosen.condition(clause.this, word)
        for join in select.args.get("joins") or []:
            if join.args.get("on") is not None:
                typing.condition(join.args["on"], "ON")
        for lateral in select.args.get("laterals") or []:
            if isinstance(lateral.this, exp.Anonymous):
                typing.type_of(lateral.this)
        group, order = select.args.get("group"), select.args.get("order")
        for key in group.expressions if group is not None else ():
            if isinstance(key, exp.Anonymous):
                self._time_window(key, after)
        for key in order.expressions if order is not None else ():
            after.order(key, after.type_of(key.this), "ORDER BY")
        yield from typing.findings
        yield from after.findings

    def _starred(self, star: exp.Column, typing: Typing) -> Iterator[Finding]:
        """`column.*`: only a struct has fields."""
        path = star.parts[:-1]
        if len(path) == 1 and path[0].name.lower() not in typing.scope.tables:
            kind = typing.scope.type_of(path[0].name)
            if kind is not None and not isinstance(kind, Struct):
                yield Finding(f"'{path[0].name}.*' is of {shown(kind)}", "only a STRUCT has fields", *start_of(path[0]))

    def _time_window(self, call: exp.Expr, typing: Typing) -> None:
        """The first argument of `window` and `session_window` is a time."""
        kind = typing.type_of(call.expressions[0]) if call.expressions else None
        is_time = kind is None or kind in (TIMESTAMP, DATE, STRING) or kind == Primitive("TIMESTAMP_NTZ")
        if name_of(call) in WINDOWS and not is_time and not isinstance(kind, Struct):
            typing.report(call, f"{name_of(call)} is given {shown(kind)}", "give it a TIMESTAMP")

    def _keys_joined(self, joins: list[exp.Expr], scope: Scope) -> Iterator[Finding]:
        """Columns of USING whose types cannot be compared."""
        for join in joins:
            for name in join.args.get("using") or []:
                kinds = [each.type_of(name.name) for each in scope.tables_with(name.name)]
                if len(kinds) == 2 and operate("=", *kinds) is Answer.REFUSED:
                    yield Finding(
                        f"the join compares {name.name} of {shown(kinds[0])} with {shown(kinds[1])}",
                        "cast one of them in a step before",
                        *start_of(name),
                    )

    def _ambiguous(self, select: exp.Select, scope: Scope, aliases: frozenset[str]) -> Iterator[Finding]:
        """Columns without a table that several tables have."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        joins = select.args.get("joins") or []
        hidden = any(join.args.get("kind") in SIDES_HIDDEN for join in joins)
        merged = {name.name.lower() for join in joins for name in join.args.get("using") or []}
        if not scope.is_known or hidden or any(join.args.get("method") for join in joins):
            return
        clauses = [*select.expressions, select.args.get("where"), *(join.args.get("on") for join in joins)]
        for clause in filter(None, clauses):
            if is_star(clause) and isinstance(clause, exp.Column):
                continue  # EXCEPT names columns of its table
            for column in below(clause):
                if not isinstance(column, exp.Column) or is_star(column):
                    continue
                first = column.parts[0]
                qualified = len(column.parts) > 1 and first.name.lower() in scope.tables
                if qualified or first.name.lower() in aliases | scope.extra | merged:
                    continue
                owners = [alias for alias, each in scope.tables.items() if each is not None and first.name in each]
                if len(owners) > 1:
                    yield Finding(
                        f"the column '{first.name}' is in {' and in '.join(owners)}",
                        f"write {owners[0]}.{first.name}",
                        *place_in(first),
                    )

    def _generators(self, select: exp.Select) -> Iterator[Finding]:
        """`explode` and similar functions inside another expression, or outside of SELECT and LATERAL VIEW."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        clauses = [select.args.get("where"), select.args.get("group"), select.args.get("having")]
        for clause in (*select.expressions, *filter(None, clauses)):
            for call in below(clause):
                if not isinstance(call, exp.Anonymous) or self.functions.kind(name_of(call)) != GENERATOR:
                    continue
                if not isinstance(call.parent, exp.Select | exp.Alias | exp.Aliases):
                    yield Finding(
                        f"{name_of(call)} is used inside another expression or clause",
                        "use it alone in SELECT, in a step of its own",
                        *place_in(call),
                    )

    def _united(self, query: exp.SetOperation, tables: Tables) -> Iterator[Finding]:
        if query.args.get("by_name"):
            return
        left, right = self._types(query.this, tables), self._types(query.expression, tables)
        if left is None or right is None:
            return
        word = query.key.upper()
        if len(left) != len(right):
            message = f"{word} of a query with {len(left)} columns and one with {len(right)}"
            yield Finding(message, "select as many columns in both", *start_of(query.expression))
            return
        for number, pair in enumerate(zip(left, right, strict=True), 1):
            if operate("union", *pair) is Answer.REFUSED:
                yield Finding(
                    f"column {number} of {word} is {shown(pair[0])} in one query and {shown(pair[1])} in the other",
                    "cast one of them",
                    *start_of(query.expression),
                )

    def _types(self, query: exp.Expr, tables: Tables) -> list[ColumnType | None] | None:
        """The types of a query's columns, in order; None if their number is not known."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        tables = with_ctes(query, tables, self.functions)
        if isinstance(query, exp.Subquery):
            return self._types(query.this, tables)
        if isinstance(query, exp.SetOperation):
            return self._types(query.this, tables)
        if not isinstance(query, exp.Select):
            return None
        scope = scope_of(query, tables, self.functions)
        typing = Typing(scope, self.functions)
        found: list[ColumnType | None] = []
        for each in query.expressions:
            call = each.unalias()
            if isinstance(each, exp.Aliases) or (
                isinstance(call, exp.Anonymous) and self.functions.kind(name_of(call)) == GENERATOR
            ):
                return None
            if not is_star(each):
                found.append(typing.type_of(each))
            elif isinstance(each, exp.Star) and scope.is_known and len(scope.tables) == 1 and not scope.extra:
                if any(value for value in each.args.values()):
                    return None
                found += scope.all_columns().types.values()
            else:
                return None
        return found
