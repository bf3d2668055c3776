"""Compiles a plain SELECT from one table to columns over the rows of its input.

The spans of column names are replaced by the paths of the columns that hold them; the rest of the text is unchanged.
Spark's own analysis of the unchanged query decides: if the names and types of its columns are not those of the compiled
ones, the query is not compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.record_names import names_records
from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.spark.one_pass.expressions import Expression, parse_expression
from odradek.pipelines.spark.one_pass.row_columns import ROW, NotLiftable, Rows, struct_of, text_of
from odradek.pipelines.spark.one_pass.select_statement import Star, parse_select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.spark.one_pass.row_columns import Path, RowColumns
    from odradek.pipelines.spark.one_pass.select_statement import LateralView, SelectStatement

# Lambda variables: a row of a LATERAL VIEW, and an element of the array that it explodes.
MADE, ITEM = "__made", "__item"


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in scope of an expression: the input's columns under an alias, and those of a LATERAL VIEW."""

    alias: str
    rows: Rows
    made_alias: str = ""
    made: tuple[str, ...] = ()

    def sql(self, expression: Expression) -> str:
        """The expression with every column name replaced by its path."""
        return expression.sql(self.path)

    def text(self, expression: str) -> str:
        return self.sql(parse_expression(expression))

    def path(self, parts: tuple[str, ...]) -> Path:
        """The path of a column."""
        if len(parts) > 1 and parts[0].lower() == self.made_alias:
            return (MADE, *parts[1:])
        if len(parts) > 1 and parts[0].lower() == self.alias:
            parts = parts[1:]
        elif parts[0].lower() in map(str.lower, self.made):
            return (MADE, *parts)
        return (*self.rows.path(parts[0]), *parts[1:])


def select_rows(columns: RowColumns, name: str, text: str, known: Mapping[str, Rows]) -> Rows:
    """The rows of a query as columns; `known` has the tables that it may read."""
    statement = parse_select(text)
    table = next((each for each in known if each.lower() == statement.table.lower()), None)
    if table is None:
        raise NotLiftable(text)
    rows = known[table]
    expected = plain_schema(columns.frame.sparkSession, text, table, columns.schema_of(rows))
    made = compiled_rows(columns, name, statement, rows)
    if described(columns.schema_of(made)) != described(expected):
        raise NotLiftable(text)
    naming = [table.lower()] if rows.shows_records else []
    return replace(made, shows_records=names_records(parse_query(text), naming))


def plain_schema(session: SparkSession, text: str, table: str, schema: T.StructType) -> T.StructType:
    """The columns that Spark itself gives to the query."""
    session.createDataFrame([], schema).createOrReplaceTempView(table)
    try:
        return session.sql(text).schema
    except PySparkException as error:
        raise NotLiftable(text) from error


def described(schema: T.StructType) -> list[tuple[str, str]]:
    """Names and types, without what is nullable."""
    return [(each.name, each.dataType.simpleString()) for each in schema.fields]


def compiled_rows(columns: RowColumns, name: str, statement: SelectStatement, rows: Rows) -> Rows:
    scope = Scope(statement.alias.lower(), rows)
    where = statement.where
    if statement.lateral is not None:
        return lateral_rows(columns, name, statement, statement.lateral, scope)
    if rows.array is not None:
        made = projection(statement, columns, scope)
        found = text_of((rows.array,)) if where is None else rows.filtered(scope.sql(where))
        return Rows.several(columns.add(f"__rows_{name}", f"transform({found}, {ROW} -> {struct_of(made)})"), made)
    if where is not None:
        condition = columns.add(f"__has_{name}", rows.filtered(f"coalesce({scope.sql(where)}, false)"))
        rows = rows.narrowed(condition)
    return single_rows(columns, name, statement, replace(scope, rows=rows))


def single_rows(columns: RowColumns, name: str, statement: SelectStatement, scope: Scope) -> Rows:
    """Uses the input's columns in place; other expressions become new columns."""
    fields: dict[str, Path] = {}
    for each, value in projected(statement, columns, scope).items():
        if isinstance(value, str):
            fields[each] = (columns.add(f"__{name}.{each}", scope.rows.mapped(value)),)
        else:
            fields[each] = value
    return Rows(fields, scope.rows.condition)


def lateral_rows(columns: RowColumns, name: str, statement: SelectStatement, view: LateralView, scope: Scope) -> Rows:
    inner = Scope(scope.alias, scope.rows, view.alias.lower(), view.names)
    made = made_rows(view, scope)
    found = made if statement.where is None else f"filter({made}, {MADE} -> {inner.sql(statement.where)})"
    fields = projection(statement, columns, inner)
    several = f"transform({found}, {MADE} -> {struct_of(fields)})"
    if scope.rows.is_many:  # flatten returns null if any of the arrays is null
        every = f"flatten({scope.rows.mapped(f'coalesce({several}, array())')})"
    else:
        every = scope.rows.mapped(several)
    return Rows.several(columns.add(f"__rows_{name}", every), fields)


def made_rows(view: LateralView, scope: Scope) -> str:
    """The rows that a LATERAL VIEW derives from one row."""
    values = [scope.sql(each) for each in view.arguments]
    names = view.names
    if view.generator == "stack" and names and values[0].isdecimal():
        groups = [values[start : start + len(names)] for start in range(1, len(values), len(names))]
        if len(groups) == int(values[0]) and len(groups[-1]) == len(names):
            return f"array({', '.join(struct_of(dict(zip(names, group, strict=True))) for group in groups)})"
    if view.generator == "explode" and len(names) == 1 and len(values) == 1:
        return f"transform({values[0]}, {ITEM} -> {struct_of({names[0]: ITEM})})"
    raise NotLiftable(view.generator)


def projection(statement: SelectStatement, columns: RowColumns, scope: Scope) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else text_of(value)
        for name, value in projected(statement, columns, scope).items()
    }


def projected(statement: SelectStatement, columns: RowColumns, scope: Scope) -> dict[str, str | Path]:
    """The columns of a SELECT: the path of an existing column, or an expression."""
    fields: dict[str, str | Path] = {}
    for each in statement.items:
        if isinstance(each, Star):
            fields |= star_fields(each, columns, scope)
            continue
        column = each.expression.column
        fields[each.name] = scope.sql(each.expression) if column is None else scope.path(column.parts)
    return fields


def star_fields(star: Star, columns: RowColumns, scope: Scope) -> dict[str, Path]:
    made: dict[str, Path] = {name: (MADE, name) for name in scope.made}
    if star.of is None:
        return {**scope.rows.fields, **made}
    if star.of.lower() == scope.alias:
        return dict(scope.rows.fields)
    if star.of.lower() == scope.made_alias:
        return made
    path = scope.rows.path(star.of)
    kind = columns.type_of(scope.rows, text_of(path))
    if not isinstance(kind, T.StructType):
        raise NotLiftable(star.of)
    return {name: (*path, name) for name in kind.names}
