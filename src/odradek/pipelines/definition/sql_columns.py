"""Derives the columns of a query's result, and finds columns that its tables do not have.

Conservative: for constructs that it does not handle the result is "unknown", never a false error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.spark_functions import Functions
from odradek.pipelines.definition.sql_scope import Scope
from odradek.pipelines.definition.sql_text import place_in
from odradek.pipelines.definition.sql_types import Typing
from odradek.pipelines.definition.sql_written import excepted_columns
from odradek.pipelines.definition.table_columns import Columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.sql_scope import Tables

# Words that sqlglot parses as columns, and Spark as units, as the current time, or as the window of GROUP BY.
NOT_COLUMNS = frozenset({
    "year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond",
    "current_date", "current_timestamp", "current_time", "current_user", "current_timezone", "current_catalog",
    "current_database", "now", "user", "session_user",
    "window", "session_window",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnknownColumn:
    """A column that no table of the query has, and the columns that they have."""

    name: str
    line: int
    column: int
    known: tuple[str, ...]


def query_columns(query: exp.Expr, tables: Tables, functions: Functions | None = None) -> Columns | None:
    """The columns of a query's result; with `functions` also the types of expressions, if `query` is as written."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    tables = with_ctes(query, tables, functions)
    if isinstance(query, exp.Subquery):
        return None if query.args.get("pivots") else query_columns(query.this, tables, functions)
    if isinstance(query, exp.SetOperation):
        first, second = (query_columns(each, tables, functions) for each in (query.this, query.expression))
        return united(first, second)
    if not isinstance(query, exp.Select):
        return None
    scope = scope_of(query, tables, functions)
    types: dict[str, ColumnType | None] = {}
    for projection in query.expressions:
        found = projected(projection, scope, functions)
        if found is None:
            return None
        types.update(found)
    return Columns(types)


def united(left: Columns | None, right: Columns | None) -> Columns | None:
    """The columns of a set operation: the names of the first query, and the types that both have."""
    if left is None or right is None or len(left.types) != len(right.types):
        return None if left is None else Columns(dict.fromkeys(left.names))
    pairs = zip(left.types.items(), right.types.values(), strict=True)
    return Columns({name: kind if kind == other else None for (name, kind), other in pairs})


def with_ctes(query: exp.Expr, tables: Tables, functions: Functions | None = None) -> Tables:
    """Looks up tables, with the query's own CTEs first."""
    clause = query.args.get("with_") or query.args.get("with")
    if clause is None:
        return tables
    own: dict[str, Columns | None] = {}

    def look(name: str) -> Columns | None:
        return own[name.lower()] if name.lower() in own else tables(name)

    for cte in clause.expressions:
        has_own_names = bool(cte.args.get("alias") and cte.args["alias"].args.get("columns"))
        own[cte.alias.lower()] = (
            None if has_own_names or clause.args.get("recursive") else query_columns(cte.this, look, functions)
        )
    return look


def scope_of(select: exp.Select, tables: Tables, functions: Functions | None = None) -> Scope:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    found: dict[str, Columns | None] = {}
    origin = select.args.get("from_") or select.args.get("from")
    sources = [origin.this] if origin is not None else []
    sources += [each.this for each in select.args.get("joins") or []]
    is_open = bool(select.args.get("pivots"))
    for each in sources:
        alias = each.alias_or_name.lower() or f"#{len(found)}"
        if each.args.get("pivots") or (each.args.get("alias") and each.args["alias"].args.get("columns")):
            found[alias] = None
        elif isinstance(each, exp.Table) and isinstance(each.this, exp.Identifier):
            found[alias] = tables(".".join(part.name for part in each.parts))
            is_open = is_open or bool(each.args.get("joins") or each.args.get("laterals"))
        elif isinstance(each, exp.Subquery):
            found[alias] = query_columns(each, tables, functions)
        else:
            found[alias] = None
    extra: set[str] = set()
    for lateral in select.args.get("laterals") or []:
        names = lateral.args.get("alias")
        columns = names.args.get("columns") if names is not None else None
        extra |= {each.name.lower() for each in columns or []} | {lateral.alias.lower()}
        is_open = is_open or not columns
    return Scope(found, frozenset(extra), is_open)


def projected(projection: exp.Expr, scope: Scope, functions: Functions | None) -> dict[str, ColumnType | None] | None:
    """The columns that one item of a SELECT produces."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(projection, exp.Star):
        return starred(projection, scope.all_columns()) if scope.is_known and not scope.extra else None
    if isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
        columns = starred_table(projection, scope)
        return None if columns is None else starred(projection.this, columns)
    if isinstance(projection, exp.Aliases):
        return dict.fromkeys(each.name for each in projection.args.get("expressions", []))
    if isinstance(projection, exp.Alias):
        return {projection.alias: type_of(projection.this, scope, functions)}
    if isinstance(projection, exp.Column | exp.Dot):
        return {projection.name: type_of(projection, scope, functions)}
    return None


def starred(star: exp.Expr, columns: Columns) -> dict[str, ColumnType | None] | None:
    if star.args.get("rename"):
        return None
    return columns.without({each.name for each in excepted_columns(star)}).types


def starred_table(column: exp.Column, scope: Scope) -> Columns | None:
    """`t.*` of a table, or of a struct column."""
    path = [part.name for part in column.parts[:-1]]
    if len(path) != 1:
        return None
    if path[0].lower() in scope.tables:
        return scope.tables[path[0].lower()]
    return scope.all_columns().fields_of(path[0]) if scope.is_known else None


def type_of(expression: exp.Expr, scope: Scope, functions: Functions | None) -> ColumnType | None:
    """The type of an expression; without `functions` only of a column."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if functions is not None or isinstance(expression, exp.Column):
        return Typing(scope, functions or Functions()).type_of(expression)
    return None


def unknown_columns(query: exp.Expr, tables: Tables) -> Iterator[UnknownColumn]:
    """Columns that a query names and its tables do not have; nested SELECTs are left to Spark."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    tables = with_ctes(query, tables)
    if isinstance(query, exp.SetOperation):
        yield from unknown_columns(query.this, tables)
        yield from unknown_columns(query.expression, tables)
    if isinstance(query, exp.Subquery):
        yield from unknown_columns(query.this, tables)
    if not isinstance(query, exp.Select):
        return
    clause = query.args.get("with_") or query.args.get("with")
    for cte in clause.expressions if clause is not None else []:
        yield from unknown_columns(cte.this, tables)
    scope = scope_of(query, tables)
    if not scope.is_known:
        return
    aliases = {each.alias.lower() for each in query.expressions if isinstance(each, exp.Alias)}
    aliases |= {name.name.lower() for each in query.find_all(exp.Aliases) for name in each.args.get("expressions", [])}
    for column in query.find_all(exp.Column):
        if column.parent_select is query and column.find_ancestor(exp.Table, exp.Pivot) is None:
            yield from missing(column, scope.all_columns(), scope, aliases | scope.extra)


def unknown_in_expression(expression: exp.Expr, columns: Columns) -> Iterator[UnknownColumn]:
    """Columns that an expression names and its table does not have."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if expression.find(exp.Query) is not None:
        return
    for column in expression.find_all(exp.Column):
        yield from missing(column, columns, Scope({}, frozenset(), is_open=False), set())


def missing(column: exp.Column, columns: Columns, scope: Scope, aliases: set[str]) -> Iterator[UnknownColumn]:
    """The first part of `table.struct.field` that does not exist."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    parts = list(column.parts)
    found: Columns | None = columns
    if len(parts) > 1 and parts[0].name.lower() in scope.tables:
        found = scope.tables[parts.pop(0).name.lower()]
    for part in parts:
        if found is None or isinstance(part, exp.Star):
            return
        if part.name not in found:
            is_first = part is column.parts[0]
            if is_first and (part.name.lower() in aliases or part.name.lower() in NOT_COLUMNS):
                return
            yield UnknownColumn(part.name, *place_in(part), tuple(found.names))
            return
        found = found.fields_of(part.name)
