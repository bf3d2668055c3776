"""SQL steps. A query whose rows derive from single records also selects their origin; its text is kept otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from odradek.pipelines.definition.sql_text import is_aggregation, parse_query, reading_dialect
from odradek.pipelines.spark.hidden_columns import ORIGIN, has_origin, without_hidden

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession


def run_query(session: SparkSession, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Runs the query over these tables, of which at most one passes on its origin."""
    carrier = origin_table(text, {name for name, frame in tables.items() if has_origin(frame)})
    for name, frame in tables.items():
        (frame if name == carrier else without_hidden(frame)).createOrReplaceTempView(name)
    return session.sql(text if carrier is None else with_origin(text, carrier))


def origin_table(text: str, with_origins: set[str]) -> str | None:
    """The table of a plain SELECT, whose origin the rows keep; None if a row may derive from several records."""
    query = parse_query(text)
    if not isinstance(query, exp.Select) or query.args.get("with_") or query.args.get("with"):
        return None
    if is_aggregation(query) or query.find(exp.Subquery, exp.Window, exp.Hint) is not None:
        return None
    folded = {name.lower(): name for name in with_origins}
    read = [folded[table.name.lower()] for table in query.find_all(exp.Table) if table.name.lower() in folded]
    return read[0] if len(read) == 1 else None


def with_origin(text: str, carrier: str) -> str:
    """Adds the origin to the columns of a SELECT; `*` includes it already."""
    query = parse_query(text)
    if any(is_star_of(each, query, carrier) for each in query.expressions):
        return text
    select = next(each for each in reading_dialect()().tokenize(text) if each.token_type == TokenType.SELECT)
    return f"{text[: select.end + 1]} {ORIGIN},{text[select.end + 1 :]}"


def is_star_of(expression: exp.Expr, query: exp.Expr, carrier: str) -> bool:
    if isinstance(expression, exp.Star):
        return True
    if not (isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)):
        return False
    names = {
        (table.alias or table.name).lower()
        for table in query.find_all(exp.Table)
        if table.name.lower() == carrier.lower()
    }
    return expression.table.lower() in names
