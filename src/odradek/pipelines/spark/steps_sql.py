"""SQL steps. A query whose rows derive from single records also selects their origin; its text is kept otherwise."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from sqlglot import exp

from odradek.pipelines.definition.record_names import names_records
from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.planning.null_guards import with_null_guards
from odradek.pipelines.planning.origins import end_of_columns, kept_origins, nested_stars, stars_of, union_parts
from odradek.pipelines.planning.sql_tokens import tokenize
from odradek.pipelines.spark.hidden_columns import (
    HIDDEN,
    ORIGIN,
    has_origin,
    names_hidden,
    quoted,
    replaced_stars,
    with_records_shown,
    with_undivided_origin,
    without_hidden,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession


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
    carriers = kept_origins(text, origins)
    if carriers is not None and not any(map(names_hidden, tokenize(text))):
        register({**shown, **{name: with_origin_only(tables[name]) for name in carriers}})
        try:
            parts = [session.sql(each) for each in with_origins(text, carriers, origins)]
            if all(map(has_origin, parts)):
                is_whole = is_undivided(parse_query(text)) or len(deriving) > len(origins)
                return with_undivided_origin(united(parts)) if is_whole else united(parts)
        except (AnalysisException, ParseException):
            pass  # the query may aggregate by a function that is not known here
    register(shown)
    return session.sql(with_null_guards(text, [name for name, frame in shown.items() if frame.isStreaming]))


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


def with_origins(text: str, carriers: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """The SELECTs of a query, each with the origin of its table as a column."""
    return [with_origin(part, each, names[each]) for part, each in zip(union_parts(text), carriers, strict=True)]


def with_origin(text: str, carrier: str, names: Sequence[str]) -> str:
    """Adds the origin to the columns of a SELECT.

    A `*` among the columns includes the origin. A `*` in an expression is replaced by the other columns.
    """
    tokens = tokenize(text)
    nested = nested_stars(tokens)
    end = end_of_columns(tokens)
    if end is not None and not stars_of(parse_query(text), carrier):
        text = f"{text[: tokens[end].start]}, {ORIGIN} {text[tokens[end].start :]}"
        tokens = tokenize(text)
        nested = [index if index < end else index + 2 for index in nested]
    return replaced_stars(text, tokens, nested, names)


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, as UNION ALL has them, with the origin as their last column: a `*` has it anywhere."""
    if len(frames) == 1:
        return frames[0]
    return reduce(lambda left, right: left.union(right), map(with_origin_only, frames))
