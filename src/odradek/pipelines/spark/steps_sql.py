"""SQL steps. A query whose rows derive from single records also selects their origin; its text is kept otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from sqlglot import exp

from odradek.pipelines.definition.sql_text import is_aggregation, parse_query
from odradek.pipelines.spark.hidden_columns import (
    HIDDEN,
    ORIGIN,
    counts_rows,
    has_origin,
    is_plain_star,
    names_hidden,
    quoted,
    replaced_stars,
    without_hidden,
)
from odradek.pipelines.spark.sql_tokens import Kind, is_star, tokenize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.spark.sql_tokens import Token

# Clauses of a query whose rows derive from single records.
ROW_CLAUSES = frozenset(
    {"expressions", "from_", "from", "where", "laterals", "joins", "order", "sort", "limit", "kind"}
)


def run_query(session: SparkSession, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Runs the query over these tables, of which at most one passes on its origin."""
    carrier = origin_table(text, {name for name, frame in tables.items() if has_origin(frame)})
    shown = {name: without_hidden(frame) for name, frame in tables.items()}
    carrying = None if carrier is None else with_origin(text, carrier, shown[carrier].columns)
    if carrier is not None and carrying is not None:
        register({**shown, carrier: with_origin_only(tables[carrier])})
        try:
            return session.sql(carrying)
        except (AnalysisException, ParseException):
            pass  # the query may aggregate by a function that is not known here
    register(shown)
    return session.sql(text)


def register(tables: Mapping[str, DataFrame]) -> None:
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)


def with_origin_only(frame: DataFrame) -> DataFrame:
    """The frame without hidden columns other than the origin, which is the last one."""
    return frame.select(*(quoted(name) for name in frame.columns if name not in HIDDEN), ORIGIN)


def origin_table(text: str, with_origins: set[str]) -> str | None:
    """The table of a plain SELECT, whose origin the rows keep; None if a row may derive from several records."""
    query = parse_query(text)
    if not isinstance(query, exp.Select) or any(value for key, value in query.args.items() if key not in ROW_CLAUSES):
        return None
    if is_aggregation(query) or query.find(exp.Subquery, exp.Window, exp.Hint, exp.Pivot) is not None:
        return None
    folded = {name.lower(): name for name in with_origins}
    read = [folded[table.name.lower()] for table in query.find_all(exp.Table) if table.name.lower() in folded]
    return read[0] if len(read) == 1 else None


def with_origin(text: str, carrier: str, names: Sequence[str]) -> str | None:
    """Adds the origin to the columns of a SELECT; None if that would show it to the user's expressions.

    A `*` among the columns includes the origin. A `*` in an expression is replaced by the other columns.
    """
    tokens = tokenize(text)
    end = end_of_columns(tokens)
    if end is None or any(each.kind is Kind.UNKNOWN or names_hidden(each) for each in tokens):
        return None
    query = parse_query(text)
    stars = sum(is_star_of(each, query, carrier) for each in query.expressions)
    if stars > 1 or (stars and query.args.get("order")):
        return None  # an ordinal of ORDER BY would count the origin
    nested = [
        index
        for index in range(len(tokens))
        if is_star(tokens, index) and not counts_rows(tokens, index) and depth_at(tokens, index) > 0
    ]
    if nested and not (reads_one_table(query) and all(is_plain_star(tokens, index) for index in nested)):
        return None
    if not stars:
        text = f"{text[: tokens[end].start]}, {ORIGIN} {text[tokens[end].start :]}"
        tokens = tokenize(text)
        nested = [index if index < end else index + 2 for index in nested]
    return replaced_stars(text, tokens, nested, names)


def end_of_columns(tokens: Sequence[Token]) -> int | None:
    """The index of the FROM behind the columns of a SELECT; None if the text starts in another way."""
    if not tokens or not tokens[0].is_word("select"):
        return None
    for index, token in enumerate(tokens):
        is_predicate = tokens[index - 1].is_word("distinct")  # IS DISTINCT FROM
        if token.is_word("from") and not is_predicate and depth_at(tokens, index) == 0:
            return index
    return None


def depth_at(tokens: Sequence[Token], index: int) -> int:
    """The number of parentheses around a token."""
    before = tokens[:index]
    return sum(each.is_symbol("(") for each in before) - sum(each.is_symbol(")") for each in before)


def reads_one_table(query: exp.Expr) -> bool:
    """Whether all columns in scope are those of one table."""
    is_single = len(list(query.find_all(exp.Table))) == 1 and len(list(query.find_all(exp.Select))) == 1
    return is_single and not query.args.get("laterals")


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
