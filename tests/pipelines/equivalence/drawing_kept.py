"""Draws definitions whose tables and views keep a row of each key, or have one row, and rows with all record columns.

The records of a key are in one partition, so that the order of their arrival is defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import (
    RECORD_COLUMNS,
    STREAM_COLUMNS,
    Aggregate,
    Case,
    Deduplicate,
    Python,
    Select,
    Shape,
    Sink,
    Source,
    StaticJoin,
    Union,
    View,
    inputs_of,
)
from tests.pipelines.equivalence.drafts import Draft
from tests.pipelines.equivalence.drawing_records import draw_batches
from tests.pipelines.equivalence.drawing_steps import (
    Kind,
    add_step,
    aggregate,
    deduplicate,
    explode,
    python,
    select,
    static_join,
    union,
)

if TYPE_CHECKING:
    from tests.pipelines.equivalence.drawing_ends import Choice

KINDS: tuple[Kind, ...] = (union, union, select, explode, static_join, deduplicate, python)
KEPT, ORDERED, LOST = "kept", "ordered", "lost"  # the order of arrival, by offsets or by the order of the rows


@st.composite
def kept_cases(draw: st.DrawFn) -> Case:
    draft = Draft(draw)
    draft.sources.append(Source("a", draw(st.sampled_from((5, 20))), draw(st.booleans())))
    draft.shapes["a"] = Shape(STREAM_COLUMNS)
    if draw(st.booleans()):
        columns = (*STREAM_COLUMNS, *RECORD_COLUMNS)
        draft.add(Select("a", columns), Shape(columns))
    for _ in range(draw(st.integers(1, 3))):
        add_step(draft, draw(st.sampled_from(KINDS)), draw(st.sampled_from(list(draft.shapes)[::-1])))
    if draw(st.booleans()):
        read = draw(st.sampled_from(list(draft.shapes)))
        draft.add(*aggregate(draft, read, draft.shapes[read]))
    ends = [each.name for each in draft.steps] or ["a"]
    for number in range(draw(st.integers(1, 3))):
        read = draw(st.sampled_from(ends[::-1]))
        kind, mode, key, form = draw(st.sampled_from(kept_choices(draft, read)))
        draft.sinks.append(Sink(f"out{number}", read, kind, mode, key, form))
    draw_kept_view(draft, draw(st.sampled_from(ends)))
    fed = draw_batches(
        tuple(draft.sources),
        min(each.delay_minutes or 0 for each in draft.sources),
        0,
        has_null_keys=False,
        has_null_tags=not any("tag" in each.key for each in draft.sinks),
        is_keyed=True,
    )
    return Case(tuple(draft.sources), tuple(draft.steps), tuple(draft.sinks), tuple(draft.views), draw(fed))


def kept_choices(draft: Draft, read: str) -> list[Choice]:
    shape = draft.shapes[read]
    if shape.groups is None:
        plain: list[Choice] = [("topic", "append", (), ""), ("files", "append", (), ""), ("table", "append", (), "")]
        arrived: list[Choice] = [("table", "upsert", ("k",), "arrived"), ("table", "upsert", ("id",), "arrived")]
        return plain + (arrived if arrival(draft, read) != LOST else [])
    ordered = ["by events", "by top", *(["by window_start"] if shape.is_windowed else [])]
    kept: list[Choice] = [("table", "upsert", shape.groups, form) for form in ["", *ordered]]
    if shape.is_windowed:  # the last window of each group
        others = tuple(name for name in shape.groups if name not in {"window_start", "window_end"})
        kept.append(("table", "upsert", others, "by window_end"))
    return kept


def draw_kept_view(draft: Draft, read: str) -> None:
    shape = draft.shapes[read]
    if shape.groups is not None:
        return
    forms = ["whole", *(["arrived"] if arrival(draft, read) != LOST else [])]
    draft.views.append(View("seen", read, draft.draw(st.sampled_from(forms))))


def arrival(draft: Draft, name: str) -> str:
    """Whether rows keep the order in which their records arrived; a Python step drops the offsets."""
    operation = draft.operation(name)
    if operation is None:
        return KEPT
    before = {arrival(draft, each) for each in inputs_of(operation)}
    if LOST in before or (before == {ORDERED} and isinstance(operation, StaticJoin | Deduplicate | Union)):
        return LOST
    if isinstance(operation, Aggregate) or (len(before) > 1 and isinstance(operation, Union)):
        return LOST
    return ORDERED if isinstance(operation, Python) else min(before)
