"""Groups of the rows of one table: a declared aggregation, or a SELECT with GROUP BY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.planning.plan import PASSES
from odradek.pipelines.spark.computing.sql_steps import run_text
from odradek.pipelines.spark.frames import (
    column,
    with_filter_barrier,
    with_one_event_time,
    without_internal,
)
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.splicing import spliced, with_calls
from odradek.pipelines.sql.text import outside_brackets, tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.operations import Aggregation, Window

SPAN = "__window"
START, END = "window_start", "window_end"


def aggregated(frame: DataFrame, operation: Aggregation, time: str | None) -> DataFrame:
    """A row for each group of a declared aggregation; `time` is the event time of its input."""
    rows = with_one_event_time(without_internal(frame), time)
    by = [column(name) for name in operation.by]
    aggregates = [F.expr(determined(each.expression)).alias(each.name) for each in operation.aggregates]
    window = operation.window
    if window is None:
        return behind_groups(rows.groupBy(*by).agg(*aggregates), rows, None)
    grouped = rows.groupBy(span_of(window).alias(SPAN), *by).agg(*aggregates)
    edges = [F.col(f"{SPAN}.start").alias(START), F.col(f"{SPAN}.end").alias(END)]
    names = [*operation.by, *(each.name for each in operation.aggregates)]
    made = grouped.select(*edges, *map(column, names))
    return behind_groups(made, rows, END, is_session=window.gap is not None)


def grouped(query: Query, inputs: Mapping[str, DataFrame], time: str | None, end: str | None) -> DataFrame:
    """A row for each group of a SELECT, with HAVING as a column, by which a step behind it filters; `time` is the event
    time of its input, `end` that of its rows."""
    (stream,) = (each.table for each in query.tables)
    frames = {name: without_internal(frame) for name, frame in inputs.items()}
    frames[stream] = with_one_event_time(frames[stream], time)
    made = run_text(frames[stream].sparkSession, group_text(query), query.part.renamed, frames)
    is_session = query.window is not None and query.window.function == "session_window"
    return behind_groups(made, frames[stream], end, is_session=is_session)


def group_text(query: Query) -> str:
    """The SELECT with calls whose results depend on the rows alone, and with HAVING as its last column."""
    text, start = query.part.text, query.part.start
    changes = {each.span: with_calls(query, each.span) for each in query.items if each.star_of is None}
    if query.having is not None:
        tokens = tokens_of(text)
        begin = next(tokens[each].start for each in outside_brackets(tokens) if tokens[each].kind == "FROM") + start
        changes[begin, begin] = f", ({with_calls(query, query.having)}) AS {PASSES} "
        changes[query.having] = "true"
    return spliced(text, (start, start + len(text)), changes, start)


def determined(expression: str) -> str:
    """An aggregate whose result depends on the rows alone."""
    query = Query.of_expression(expression, "input", lambda _table: None)
    return with_calls(query, query.items[0].span)


def span_of(window: Window) -> Column:
    time = column(window.column)
    if window.gap is not None:
        return F.session_window(time, window.gap.spark)
    assert window.size is not None
    return F.window(time, window.size.spark, None if window.slide is None else window.slide.spark)


def behind_groups(groups: DataFrame, rows: DataFrame, end: str | None, *, is_session: bool = False) -> DataFrame:
    """The groups with one event time, behind a barrier. In a stream, a filter below the groups would hide late rows
    from their count; in every engine, Spark would apply filters to the rows of sessions before these are merged."""
    timed = with_one_event_time(groups, end, [rows])
    return with_filter_barrier(timed) if groups.isStreaming or is_session else timed
