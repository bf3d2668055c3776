"""A plain SELECT of one table as an expression over the rows of its input.

Columns are led back to the variable that holds them; the rest of the text stays as it is. What is no plain SELECT
(unions, aggregates, subqueries, joins) raises `NotLiftable`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import types as T  # noqa: N812 - its usual name
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ErrorLevel, UnsupportedError
from sqlglot.tokenizer_core import TokenType

from odradek.pipelines.definition.sql_text import DIALECT, WINDOW_STAND_IN, parse_expression, parse_query
from odradek.pipelines.spark.hidden_columns import ORIGIN, quoted
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable, struct_of
from odradek.pipelines.spark.steps_sql import carrying_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from odradek.pipelines.spark.one_pass.row_columns import Rows

MADE, ITEM = "__made", "__item"  # variables: a row that LATERAL VIEW made, an element of what it explodes
PLAIN_PARTS = frozenset({"expressions", "from_", "from", "where", "laterals", "kind"})
PLAIN_TABLE = frozenset({"this", "alias", "db"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names of an expression mean: columns of the input under an alias, and those of a LATERAL VIEW."""

    alias: str
    rows: Rows
    made_alias: str = ""
    made: tuple[str, ...] = ()

    def sql(self, expression: exp.Expr) -> str:
        """The expression with every column led back to the variable that holds it."""
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

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        parts = [part.name for part in node.parts]
        variable = self.rows.variable
        if len(parts) > 1 and parts[0].lower() == self.made_alias:
            variable, parts = MADE, parts[1:]
        elif len(parts) > 1 and parts[0].lower() == self.alias:
            parts = parts[1:]
        elif parts[0].lower() in map(str.lower, self.made):
            variable = MADE
        return exp.Dot.build([exp.to_identifier(name, quoted=True) for name in (variable, *parts)])


def refuse_doubled_quotes(text: str) -> None:
    """Spark reads 'it''s' as one text, sqlglot as two."""
    tokens = Spark().tokenize(text)
    for before, after in itertools.pairwise(tokens):
        if before.token_type == after.token_type == TokenType.STRING and before.end + 1 == after.start:
            raise NotLiftable(text)


def select_expression(text: str, known: Mapping[str, Rows]) -> str:
    """A query as an expression; `known` are the tables that it may read."""
    refuse_doubled_quotes(text)
    table = carrying_table(text, set(known))
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
        return lateral_expression(query, laterals, scope, where)
    made = projection(query, scope)
    if where is None:
        return rows.mapped(made)
    if rows.is_many:
        return f"transform({rows.filtered(scope.sql(where.this))}, {rows.variable} -> {made})"
    return f"if({rows.column} is not null and ({scope.sql(where.this)}), {made}, null)"


def lateral_expression(query: exp.Expr, laterals: list[exp.Expr], scope: Scope, where: exp.Expr | None) -> str:
    if len(laterals) > 1 or laterals[0].args.get("outer"):
        raise NotLiftable(query.sql(DIALECT))
    view = laterals[0]
    names = tuple(each.name for each in view.args["alias"].args.get("columns") or ())
    made = made_rows(view.this, names, scope)
    inner = Scope(scope.alias, scope.rows, view.args["alias"].name.lower(), names)
    found = made if where is None else f"filter({made}, {MADE} -> {inner.sql(where.this)})"
    several = f"transform({found}, {MADE} -> {projection(query, inner)})"
    if not scope.rows.is_many:
        return scope.rows.mapped(several)
    return (
        f"flatten({scope.rows.mapped(f'coalesce({several}, array())')})"  # a null among arrays makes all of them null
    )


def made_rows(generator: exp.Expr, names: tuple[str, ...], scope: Scope) -> str:
    """What a LATERAL VIEW makes of one row."""
    if isinstance(generator, exp.Stack) and names:
        values = [scope.sql(each) for each in generator.expressions]
        groups = [values[start : start + len(names)] for start in range(0, len(values), len(names))]
        if len(groups) == int(generator.this.name) and len(groups[-1]) == len(names):
            return f"array({', '.join(struct_of(dict(zip(names, group, strict=True))) for group in groups)})"
    if isinstance(generator, exp.Explode) and type(generator) is exp.Explode and len(names) == 1:
        return f"transform({scope.sql(generator.this)}, {ITEM} -> {struct_of({names[0]: ITEM})})"
    raise NotLiftable(generator.key)


def projection(query: exp.Expr, scope: Scope) -> str:
    """The columns of a SELECT as a struct, and the origin with them."""
    fields: dict[str, str] = {}
    for each in query.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            fields |= star_fields(each, scope)
        elif isinstance(each, exp.Alias | exp.Column | exp.Dot):
            value = each.this if isinstance(each, exp.Alias) else each
            fields[each.alias_or_name] = scope.sql(value)
        else:
            raise NotLiftable(each.sql(DIALECT))
    if ORIGIN in scope.rows.fields.names:
        fields[ORIGIN] = f"{scope.rows.row}.{ORIGIN}"
    return struct_of(fields)


def has_others(node: exp.Expr, known: Set[str]) -> bool:
    """Whether a node has parts that are not among these."""
    return any(value for key, value in node.args.items() if key not in known)


def star_fields(star: exp.Expr, scope: Scope) -> dict[str, str]:
    if has_others(star.this if isinstance(star, exp.Column) else star, set()):
        raise NotLiftable(star.sql(DIALECT))  # EXCEPT and the like
    table = star.table.lower() if isinstance(star, exp.Column) else ""
    row, columns = scope.rows.row, scope.rows.fields
    if table in {"", scope.alias}:
        own = {name: f"{row}.{quoted(name)}" for name in columns.names if name != ORIGIN}
        return own | ({} if table else {name: f"{MADE}.{quoted(name)}" for name in scope.made})
    found = next((each for each in columns.fields if each.name.lower() == table), None)
    if found is None or not isinstance(found.dataType, T.StructType):
        raise NotLiftable(star.sql(DIALECT))
    return {name: f"{row}.{quoted(found.name)}.{quoted(name)}" for name in found.dataType.names}
