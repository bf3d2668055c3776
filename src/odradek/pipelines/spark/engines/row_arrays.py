"""A graph without state as one row that carries everything: each step is an array of structs made of one record.

Real-time mode reads a source once for every branch of a plan. To read it once, a step becomes an expression over the
rows of its input (`transform` and `filter` of an array), and all records to be written become one array that is
exploded at the end. Only plain SELECTs can be written so; `NotLiftable` says that a graph has something else in it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokenizer_core import TokenType

from odradek.pipelines.definition.model import Sql
from odradek.pipelines.definition.sql_text import DIALECT, parse_expression, parse_query
from odradek.pipelines.spark.hidden_columns import ORIGIN, quoted
from odradek.pipelines.spark.steps_sql import carrying_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Step

ROW, MADE, ITEM = "__row", "__made", "__item"  # variables: a row of the input, one that LATERAL VIEW made, an element


class NotLiftable(Exception):
    """A step that is no plain SELECT of one table."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names of an expression mean: columns of the input under an alias, and those of a LATERAL VIEW."""

    alias: str
    columns: T.StructType
    made_alias: str = ""
    made: tuple[str, ...] = ()

    def sql(self, expression: exp.Expr) -> str:
        """The expression with every column led back to the variable that holds it."""
        return expression.copy().transform(self._resolved).sql(DIALECT)

    def text(self, expression: str) -> str:
        refuse_doubled_quotes(expression)
        return self.sql(parse_expression(expression))

    def _resolved(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        parts = [part.name for part in node.parts]
        variable = ROW
        if len(parts) > 1 and parts[0].lower() == self.made_alias:
            variable, parts = MADE, parts[1:]
        elif len(parts) > 1 and parts[0].lower() == self.alias:
            parts = parts[1:]
        elif parts[0].lower() in self.made:
            variable = MADE
        return exp.Dot.build([exp.to_identifier(name, quoted=True) for name in (variable, *parts)])


class RowArrays:
    """Adds to a frame one column of rows for each step; `columns` tells what the rows of each are."""

    def __init__(self, frame: DataFrame, names: Sequence[str], source: str, condition: str) -> None:
        row = ", ".join(f"{literal(name)}, {quoted(name)}" for name in names)
        column = column_of(source)
        self.frame = frame.withColumn(column, F.expr(f"filter(array(named_struct({row})), {ITEM} -> {condition})"))

    def elements(self, name: str) -> T.StructType:
        kind = cast("T.ArrayType", self.frame.schema[column_of(name)].dataType)
        return cast("T.StructType", kind.elementType)

    def scope(self, name: str) -> Scope:
        return Scope(name.lower(), self.elements(name))

    def add(self, name: str, expression: str) -> None:
        self.frame = self.frame.withColumn(column_of(name), F.expr(expression))

    def add_step(self, step: Step) -> None:
        """The rows of a SQL step, before its expectations."""
        if not isinstance(step.operation, Sql) or step.watermark is not None:
            raise NotLiftable(step.name)
        text = step.operation.text
        refuse_doubled_quotes(text)
        known = {name.removeprefix("__rows_") for name in self.frame.columns if name.startswith("__rows_")}
        table = carrying_table(text, known)
        query = parse_query(text)
        if table is None or len(list(query.find_all(exp.Table))) != 1:
            raise NotLiftable(step.name)
        self.add(step.name, select_expression(query, table, self.elements(table)))


def refuse_doubled_quotes(text: str) -> None:
    """Spark reads 'it''s' as one text, sqlglot as two."""
    tokens = Spark().tokenize(text)
    for before, after in itertools.pairwise(tokens):
        if before.token_type == after.token_type == TokenType.STRING and before.end + 1 == after.start:
            raise NotLiftable(text)


def select_expression(query: exp.Expr, table: str, columns: T.StructType) -> str:
    """A SELECT as a function of the array of its input's rows."""
    plain = {"expressions", "from_", "from", "where", "laterals", "kind"}
    if any(value for key, value in query.args.items() if key not in plain):
        raise NotLiftable(table)
    (named,) = query.find_all(exp.Table)
    laterals = query.args.get("laterals") or []
    scope = Scope((named.alias or named.name).lower(), columns)
    source = quoted(column_of(table))
    where = query.args.get("where")
    if not laterals:
        rows = source if where is None else f"filter({source}, {ROW} -> {scope.sql(where.this)})"
        return f"transform({rows}, {ROW} -> {projection(query, scope)})"
    if len(laterals) > 1 or laterals[0].args.get("outer"):
        raise NotLiftable(table)
    view = laterals[0]
    made_names = tuple(each.name for each in view.args["alias"].args.get("columns") or ())
    made = made_rows(view.this, made_names, scope)
    inner = Scope(scope.alias, columns, view.args["alias"].name.lower(), tuple(name.lower() for name in made_names))
    rows = made if where is None else f"filter({made}, {MADE} -> {inner.sql(where.this)})"
    return f"flatten(transform({source}, {ROW} -> transform({rows}, {MADE} -> {projection(query, inner)})))"


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
    fields[ORIGIN] = f"{ROW}.{ORIGIN}"
    return struct_of(fields)


def star_fields(star: exp.Expr, scope: Scope) -> dict[str, str]:
    table = star.table.lower() if isinstance(star, exp.Column) else ""
    if table in {"", scope.alias}:
        own = {name: f"{ROW}.{quoted(name)}" for name in scope.columns.names if name != ORIGIN}
        return own | ({} if table else {name: f"{MADE}.{quoted(name)}" for name in scope.made})
    found = next((each for each in scope.columns.fields if each.name.lower() == table), None)
    if found is None or not isinstance(found.dataType, T.StructType):
        raise NotLiftable(star.sql(DIALECT))
    return {name: f"{ROW}.{quoted(found.name)}.{quoted(name)}" for name in found.dataType.names}


def struct_of(fields: Mapping[str, str]) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in fields.items())})"


def column_of(name: str) -> str:
    return f"__rows_{name}"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
