"""SQL steps. A query whose rows derive from single records also selects their origin; its text is kept otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from sqlglot import exp

from odradek.pipelines.definition.record_names import names_records
from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.definition.sql_written import is_star as is_star_column
from odradek.pipelines.planning.origins import origin_tables
from odradek.pipelines.spark.hidden_columns import (
    HIDDEN,
    ORIGIN,
    counts_rows,
    has_origin,
    is_plain_star,
    names_hidden,
    quoted,
    replaced_stars,
    with_records_shown,
    with_undivided_origin,
    without_hidden,
)
from odradek.pipelines.spark.sql_tokens import Kind, is_star, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.spark.sql_tokens import Token


def run_query(
    session: SparkSession, text: str, tables: Mapping[str, DataFrame], static: Collection[str] = ()
) -> DataFrame:
    """Runs the query over these tables. Its rows have the origin of the rows that they derive from, if each has one.

    `static` are the tables that a query over a stream joins: rows have the origin of the stream's record."""
    frame = queried(session, text, tables, static)
    return with_records_shown(frame) if names_records(parse_query(text)) else frame


def queried(session: SparkSession, text: str, tables: Mapping[str, DataFrame], static: Collection[str]) -> DataFrame:
    shown = {name: without_hidden(frame) for name, frame in tables.items()}
    deriving = [name for name, frame in tables.items() if has_origin(frame)]
    origins = {name: shown[name].columns for name in deriving if name not in static}
    carriers = origin_tables(parse_query(text), origins)
    carrying = None if carriers is None else with_origins(text, carriers, origins)
    if carriers is not None and carrying is not None:
        register({**shown, **{name: with_origin_only(tables[name]) for name in carriers}})
        try:
            found = session.sql(carrying)
            is_whole = is_undivided(parse_query(text)) or len(deriving) > len(origins)
            return with_undivided_origin(found) if is_whole else found
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


def is_undivided(query: exp.Expr) -> bool:
    """Whether rows of the query are in one transaction: a batch that an earlier release began has them so.

    The same holds for joins with static tables that have origins."""
    return query.find(exp.Union, exp.Subquery) is not None


def with_origins(text: str, carriers: Sequence[str], names: Mapping[str, Sequence[str]]) -> str | None:
    """Adds the origin to the columns of a SELECT, or of each SELECT of a UNION ALL.

    None if the origin would not be the same column of every SELECT, or if the user's expressions would see it."""
    parts = union_parts(text)
    if len(parts) != len(carriers) or (len(parts) > 1 and not all(map(has_last_star_at_most, parts))):
        return None
    made = [with_origin(part, carrier, names[carrier]) for part, carrier in zip(parts, carriers, strict=True)]
    return None if None in made else " UNION ALL ".join(map(str, made))


def union_parts(text: str) -> list[str]:
    """The queries of a UNION ALL, or the query itself."""
    tokens = tokenize(text)
    parts, start = [], 0
    for index, token in enumerate(tokens):
        is_all = token.is_word("all") and index > 0 and tokens[index - 1].is_word("union")
        if is_all and depth_at(tokens, index) == 0:
            parts.append(text[start : tokens[index - 1].start] + "\n")
            start = token.end
    return [*parts, text[start:]]


def has_last_star_at_most(text: str) -> bool:
    """Whether a query selects named columns, and after them at most all columns of its one table."""
    query = parse_query(text)
    stars = [is_star_column(each) for each in query.expressions]
    return not any(stars[:-1]) and not (stars[-1] and not reads_one_table(query))


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
    if not isinstance(expression, exp.Column) or not is_star_column(expression):
        return isinstance(expression, exp.Star)
    names = {
        (table.alias or table.name).lower()
        for table in query.find_all(exp.Table)
        if table.name.lower() == carrier.lower()
    }
    return expression.table.lower() in names
