"""Cases that once showed a difference, each as small as it could be made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.pipelines.equivalence.cases import (
    RECORD_COLUMNS,
    ROW,
    STREAM_COLUMNS,
    Aggregate,
    Case,
    Deduplicate,
    Expectation,
    Explode,
    Record,
    Select,
    Sink,
    Source,
    Step,
    StreamJoin,
    Union,
    View,
)
from tests.pipelines.equivalence.drawing_records import Records

Batches = tuple[dict[str, tuple[Record, ...]], ...]


def row(minute: int, key: str = "a", number: int = 1, tags: tuple[str, ...] = ()) -> tuple[int, int, Any]:
    return 0, 0, ("row", minute, key, number, list(tags))


def again(number: int, *, is_later: bool = False) -> tuple[int, int, Any]:
    """A duplicate of the row with this number; with `is_later` as an event half of `within` later."""
    return 0, 0, ("again", number, is_later)


def late(minutes: int, key: str = "a") -> tuple[int, int, Any]:
    """An event that is so much before the watermark that the previous batch started with."""
    return 0, 0, ("late", minutes, key, 1, [])


def batches(source: Source, *drafts: list[tuple[int, int, Any]], within: int = 0) -> Batches:
    return Records((source,), 60, within, has_null_keys=True).batches(list(drafts))


def steps_of_one_stream_joined() -> Case:
    source = Source("a", 5)
    steps = (
        Step("s0", Select("a", ROW, (), "n > 3")),
        Step("s1", Select("a", ROW, (), "n <= 3")),
        Step("s2", StreamJoin("s0", "s1", "inner", 5)),
    )
    fed = batches(source, [row(1, number=1)], [row(2, number=5)])
    return Case((source,), steps, (Sink("out0", "s2", "topic"),), (), fed)


def exploded_beside_a_sibling() -> Case:
    source = Source("a", 5)
    steps = (
        Step("s0", Deduplicate("a")),
        Step("s1", Explode("s0", "select")),
        Step("s2", Select("s0", ROW)),
    )
    sinks = (Sink("out0", "s1", "topic"), Sink("out1", "s2", "topic"))
    return Case((source,), steps, sinks, (), batches(source, [row(1, tags=("x", "y")), row(2)], [row(3, tags=("x",))]))


def within_with_the_watermark_of_a_step() -> Case:
    source = Source("a", None)
    steps = (
        Step("timed", Select("a", STREAM_COLUMNS), delay_minutes=5),
        Step("s1", Deduplicate("timed", 40)),
    )
    fed = batches(source, [row(0)], [row(15)], [row(16)], [row(17)], [again(0, is_later=True)], within=40)
    return Case((source,), steps, (Sink("out0", "s1", "topic"),), (), fed)


def windows_behind_within() -> Case:
    source = Source("a", 5)
    steps = (Step("s0", Deduplicate("a", 40)), Step("s1", Aggregate("s0", ("k",), 10)))
    return Case((source,), steps, (Sink("out0", "s1", "topic"),), (), batches(source, [row(1)], [row(20)]))


def late_rows_of_windows() -> Case:
    source = Source("a", 5)
    records = Records((source,), 5, 0, has_null_keys=False)
    fed = records.batches([[row(1)], [row(50)], [late(20), row(51)], [late(30, "b")]])
    return Case((source,), (Step("s0", Aggregate("a", ("k",), 10)),), (Sink("out0", "s0", "topic"),), (), fed)


def late_rows_of_a_join_with_two_topics() -> Case:
    left, right = Source("a", 5), Source("b", 5)
    renamed = Select("b", ("k",), (("other", "id"), ("other_n", "n"), ("other_at", "at")))
    steps = (Step("s0", renamed), Step("s1", StreamJoin("a", "s0", "left", 5, is_declared=True)))
    of_right: tuple[int, int, Any] = (1, 0, ("row", 50, "a", 1, []))
    records = Records((left, right), 5, 0, has_null_keys=False)
    fed = records.batches([[row(50), of_right], [row(51)], [late(20)]])
    sinks = (Sink("out0", "s1", "topic"), Sink("out1", "s1", "topic"))
    return Case((left, right), steps, sinks, (), fed)


def late_row_that_a_sink_of_files_would_drop() -> Case:
    """Spark filters the key before it groups, if the filter is in the same query."""
    source = Source("a", 5)
    records = Records((source,), 5, 0, has_null_keys=False)
    fed = records.batches([[row(1)], [row(50)], [row(51)], [late(20, "b")]])
    steps = (Step("s0", Aggregate("a", ("k",), 10), (Expectation("rule0", "k = 'a'", "drop"),)),)
    sinks = (Sink("out0", "s0", "topic"), Sink("out1", "s0", "files"))
    return Case((source,), steps, sinks, (), fed)


def row_that_stops_the_stream() -> Case:
    source = Source("a", 5)
    steps = (Step("s0", Select("a", None), (Expectation("rule0", "n > 0", "fail"),)),)
    sinks = (Sink("out0", "s0", "topic"), Sink("out1", "s0", "files"))
    return Case((source,), steps, sinks, (), batches(source, [row(1)], [row(2, number=-1)]))


def left_join_with_a_stream_of_null_keys() -> Case:
    """Spark filters null keys of the right side; they move the watermark all the same."""
    left, right = Source("a", 5), Source("b", 5)
    of_right: tuple[int, int, Any] = (1, 0, ("row", 50, None, 1, []))
    fed = Records((left, right), 60, 0, has_null_keys=True).batches([[row(50), of_right], [row(51)]])
    steps = (Step("s0", StreamJoin("a", "b", "left", 5)),)
    return Case((left, right), steps, (Sink("out0", "s0", "topic"),), (), fed)


def late_row_of_a_deduplicated_view() -> Case:
    """The view does not use the event time of its rows, by which they are late."""
    source = Source("a", 5)
    records = Records((source,), 5, 0, has_null_keys=False)
    fed = records.batches([[row(1)], [row(50)], [row(51)], [late(20)]])
    steps = (Step("s0", Deduplicate("a")),)
    sinks, views = (Sink("out0", "s0", "topic"),), (View("seen", "s0", "groups"),)
    return Case((source,), steps, sinks, views, fed)


def view_of_one_group() -> Case:
    """Each batch wrote another row."""
    source = Source("a", 5)
    steps = (Step("s0", Select("a", ROW)),)
    return Case((source,), steps, (), (View("seen", "s0", "whole"),), batches(source, [row(1), row(2)], [row(3)]))


def union_of_one_stream_that_keeps_the_last_row() -> Case:
    """All rows of the second query were written after those of the first."""
    source = Source("a", 5)
    steps = (
        Step("s0", Select("a", ROW, (), "n > 3")),
        Step("s1", Select("a", ROW, (), "n <= 3")),
        Step("s2", Union("s0", "s1")),
    )
    sinks = (Sink("out0", "s2", "table", "upsert", ("k",), "arrived"),)
    fed = batches(source, [row(1, number=1), row(2, number=5)], [row(3, "b", 5), row(4, "b", 1)])
    return Case((source,), steps, sinks, (View("seen", "s2", "arrived"),), fed)


def union_with_a_star_that_keeps_the_last_row() -> Case:
    """Rows had no offsets, and all rows of the second query were written after those of the first."""
    case = union_of_one_stream_that_keeps_the_last_row()
    return replace(case, steps=(*case.steps[:-1], Step("s2", Union("s0", "s1", has_star=True))))


def all_columns_of_records() -> Case:
    """Sinks left them out."""
    source = Source("a", 5)
    steps = (
        Step("s0", Select("a", (*ROW, *RECORD_COLUMNS))),
        Step("s1", Deduplicate("s0")),
        Step("s2", Select("s1", None)),
    )
    sinks = tuple(
        Sink(f"out{n}", f"s{n % 3}", kind) for n, kind in enumerate(("topic", "table", "files", "table", "topic"))
    )
    return Case((source,), steps, sinks, (), batches(source, [row(1), row(2, "b")], [row(3)]))


SAVED = {
    each.__name__: each()
    for each in (
        steps_of_one_stream_joined,
        exploded_beside_a_sibling,
        within_with_the_watermark_of_a_step,
        windows_behind_within,
        late_rows_of_windows,
        late_rows_of_a_join_with_two_topics,
        late_row_that_a_sink_of_files_would_drop,
        row_that_stops_the_stream,
        left_join_with_a_stream_of_null_keys,
        late_row_of_a_deduplicated_view,
        view_of_one_group,
        union_of_one_stream_that_keeps_the_last_row,
        union_with_a_star_that_keeps_the_last_row,
        all_columns_of_records,
    )
}
# Cases that the rules refuse, because they count on luck or on an order that is not there, with the code.
REFUSED = {
    "union_of_one_stream_that_keeps_the_last_row": "OP014",
    "union_with_a_star_that_keeps_the_last_row": "OP014",
}
