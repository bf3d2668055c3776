"""Compiles a plain SELECT from one table to columns over the rows of its input.

Column names are replaced by the paths of the columns that hold them; the rest of the SQL is unchanged. Anything other
than a plain SELECT (unions, aggregates, subqueries, joins) raises `NotLiftable`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import types as T  # noqa: N812 - its usual name
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, UnsupportedError
from sqlglot.tokenizer_core import TokenType

from odradek.pipelines.definition.sql_text import DIALECT, WINDOW_STAND_IN, parse_expression, parse_query
from odradek.pipelines.spark.hidden_columns import quoted
from odradek.pipelines.spark.one_pass.row_columns import ROW, NotLiftable, Rows, struct_of, text_of
from odradek.pipelines.spark.steps_sql import origin_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from odradek.pipelines.spark.one_pass.row_columns import Path, RowColumns

# Lambda variables: a row of a LATERAL VIEW, and an element of the array that it explodes.
MADE, ITEM = "__made", "__item"
PLAIN_PARTS = frozenset({"expressions", "from_", "from", "where", "laterals", "kind"})
PLAIN_TABLE = frozenset({"this", "alias", "db"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in scope of an expression: the input's columns under an alias, and those of a LATERAL VIEW."""

    alias: str
    rows: Rows
    made_alias: str = ""
    made: tuple[str, ...] = ()

    def sql(self, expression: exp.Expr) -> str:
        """The expression with every column name replaced by its path."""
        variables = {name.name.lower() for each in expression.find_all(exp.Lambda) for name in each.expressions}
        if any(self.path(each)[0].lower() in variables for each in expression.find_all(exp.Column)):
            raise NotLiftable(expression.sql(DIALECT))  # Spark would resolve the column as the lambda's variable
        resolved = expression.copy().transform(self._resolved)
        try:
            text = resolved.sql(DIALECT, unsupported_level=ErrorLevel.RAISE)
        except UnsupportedError as error:
            raise NotLiftable(str(error)) from None
        if WINDOW_STAND_IN in text.lower():
            raise NotLiftable(text)
        return text

    def text(self, expression: str) -> str:
        refuse_doubled_quotes(expression)
        return self.sql(parse_expression(expression))

    def path(self, column: exp.Column) -> Path:
        """The path of a column."""
        parts = [part.name for part in column.parts]
        if len(parts) > 1 and parts[0].lower() == self.made_alias:
            return (MADE, *parts[1:])
        if len(parts) > 1 and parts[0].lower() == self.alias:
            parts = parts[1:]
        elif parts[0].lower() in map(str.lower, self.made):
            return (MADE, *parts)
        return (*self.rows.path(parts[0]), *parts[1:])

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        first, *others = (exp.to_identifier(name, quoted=True) for name in self.path(node))
        return exp.Dot.build([first, *others]) if others else first


def refuse_doubled_quotes(text: str) -> None:
    """Rejects doubled quotes: Spark reads 'it''s' as one string, sqlglot as two."""
    tokens = Spark().tokenize(text)
    for before, after in itertools.pairwise(tokens):
        if before.token_type == after.token_type == TokenType.STRING and before.end + 1 == after.start:
            raise NotLiftable(text)


def select_rows(columns: RowColumns, name: str, text: str, known: Mapping[str, Rows]) -> Rows:
    """The rows of a query as columns; `known` has the tables that it may read."""
    refuse_doubled_quotes(text)
    table = origin_table(text, set(known))
    query = parse_query(text)
    if table is None or len(list(query.find_all(exp.Table))) != 1:
        raise NotLiftable(text)
    (named,) = query.find_all(exp.Table)
    if has_others(query, PLAIN_PARTS) or has_others(named, PLAIN_TABLE):
        raise NotLiftable(text)
    laterals = query.args.get("laterals") or []
    rows = known[table]
    scope = Scope((named.alias or named.name).lower(), rows)
    where = query.args.get("where")
    if laterals:
        return lateral_rows(columns, name, query, laterals, scope)
    if rows.array is not None:
        made = projection(query, columns, scope)
        found = quoted(rows.array) if where is None else rows.filtered(scope.sql(where.this))
        return Rows.several(columns.add(f"__rows_{name}", f"transform({found}, {ROW} -> {struct_of(made)})"), made)
    if where is not None:
        condition = columns.add(f"__has_{name}", rows.filtered(f"coalesce({scope.sql(where.this)}, false)"))
        rows = rows.narrowed(condition)
    return single_rows(columns, name, query, replace(scope, rows=rows))


def single_rows(columns: RowColumns, name: str, query: exp.Expr, scope: Scope) -> Rows:
    """Uses the input's columns in place; other expressions become new columns."""
    fields: dict[str, Path] = {}
    for each, value in projected(query, columns, scope).items():
        if isinstance(value, str):
            fields[each] = (columns.add(f"__{name}.{each}", scope.rows.mapped(value)),)
        else:
            fields[each] = value
    return Rows(fields, scope.rows.condition)


def lateral_rows(columns: RowColumns, name: str, query: exp.Expr, laterals: list[exp.Expr], scope: Scope) -> Rows:
    if len(laterals) > 1 or laterals[0].args.get("outer"):
        raise NotLiftable(query.sql(DIALECT))
    view, where = laterals[0], query.args.get("where")
    names = tuple(each.name for each in view.args["alias"].args.get("columns") or ())
    made = made_rows(view.this, names, scope)
    inner = Scope(scope.alias, scope.rows, view.args["alias"].name.lower(), names)
    found = made if where is None else f"filter({made}, {MADE} -> {inner.sql(where.this)})"
    fields = projection(query, columns, inner)
    several = f"transform({found}, {MADE} -> {struct_of(fields)})"
    if scope.rows.is_many:  # flatten returns null if any of the arrays is null
        every = f"flatten({scope.rows.mapped(f'coalesce({several}, array())')})"
    else:
        every = scope.rows.mapped(several)
    return Rows.several(columns.add(f"__rows_{name}", every), fields)


def made_rows(generator: exp.Expr, names: tuple[str, ...], scope: Scope) -> str:
    """The rows that a LATERAL VIEW derives from one row."""
    if isinstance(generator, exp.Stack) and names:
        values = [scope.sql(each) for each in generator.expressions]
        groups = [values[start : start + len(names)] for start in range(0, len(values), len(names))]
        if len(groups) == int(generator.this.name) and len(groups[-1]) == len(names):
            return f"array({', '.join(struct_of(dict(zip(names, group, strict=True))) for group in groups)})"
    if isinstance(generator, exp.Explode) and type(generator) is exp.Explode and len(names) == 1:
        return f"transform({scope.sql(generator.this)}, {ITEM} -> {struct_of({names[0]: ITEM})})"
    raise NotLiftable(generator.key)


def projection(query: exp.Expr, columns: RowColumns, scope: Scope) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else text_of(value)
        for name, value in projected(query, columns, scope).items()
    }


def projected(query: exp.Expr, columns: RowColumns, scope: Scope) -> dict[str, str | Path]:
    """The columns of a SELECT: the path of an existing column, or an expression."""
    fields: dict[str, str | Path] = {}
    for each in query.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            fields |= star_fields(each, columns, scope)
        elif isinstance(each, exp.Alias | exp.Column | exp.Dot):
            value = each.this if isinstance(each, exp.Alias) else each
            fields[each.alias_or_name] = scope.path(value) if isinstance(value, exp.Column) else scope.sql(value)
        else:
            raise NotLiftable(each.sql(DIALECT))
    return fields


def has_others(node: exp.Expr, known: Set[str]) -> bool:
    """Whether a node has arguments other than these."""
    return any(value for key, value in node.args.items() if key not in known)


def star_fields(star: exp.Expr, columns: RowColumns, scope: Scope) -> dict[str, Path]:
    if has_others(star.this if isinstance(star, exp.Column) else star, set()):
        raise NotLiftable(star.sql(DIALECT))  # EXCEPT and similar
    table = star.table.lower() if isinstance(star, exp.Column) else ""
    if table in {"", scope.alias}:
        return dict(scope.rows.fields) | ({} if table else {name: (MADE, name) for name in scope.made})
    path = scope.rows.path(table)
    kind = columns.type_of(scope.rows, text_of(path))
    if not isinstance(kind, T.StructType):
        raise NotLiftable(star.sql(DIALECT))
    return {name: (*path, name) for name in kind.names}
