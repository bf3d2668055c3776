"""Draws expectations, sinks and views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import ROW, Expectation, Sink, View

if TYPE_CHECKING:
    from tests.pipelines.equivalence.cases import Shape
    from tests.pipelines.equivalence.drafts import Draft

CHECKS = ("n > 0", "n is not null", "k <> 'a'", "id % 2 = 0", "n between 0 and 6")
RARELY_UNMET = ("id < 7", "id <> 3")  # for expectations that stop the pipeline
NUMBER_CHECKS = ("i < 3", "k is not null")
Choice = tuple[str, str, tuple[str, ...], str]


def draw_expectations(draft: Draft, shape: Shape) -> tuple[Expectation, ...]:
    is_row = set(ROW).issubset(shape.columns)
    if shape.groups is not None or not (is_row or "i" in shape.columns) or not draft.one_of(False, True):
        return ()
    can_stop = is_row and not shape.is_counted and not draft.is_realtime and not draft.has_late_rows
    if can_stop and draft.one_of(False, False, False, True) and not draft.is_stopping:
        draft.is_stopping = True
        return (Expectation("rule0", draft.one_of(*RARELY_UNMET), "fail"),)
    choices = CHECKS if is_row else NUMBER_CHECKS
    checks = draft.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=2, unique=True))
    kinds = ("warn", "drop", "quarantine")
    return tuple(Expectation(f"rule{number}", check, draft.one_of(*kinds)) for number, check in enumerate(checks))


def draw_ends(draft: Draft) -> None:
    """Two or three outputs: of different steps, or of one."""
    ends = [each.name for each in draft.steps]
    first = draft.draw(st.sampled_from(ends[::-1]))
    written = [first, draft.draw(st.sampled_from([first, *ends[::-1]]))]
    if draft.one_of(False, False, True):
        written.append(first)
    for number, read in enumerate(written):
        choices = sink_choices(draft.shapes[read])
        kind, mode, key, form = draft.draw(st.sampled_from(choices))
        draft.sinks.append(Sink(f"out{number}", read, kind, mode, key, form))
    if draft.one_of(False, False, True):
        draw_view(draft, draft.draw(st.sampled_from(ends)))


def sink_choices(shape: Shape) -> list[Choice]:
    final: list[Choice] = [("topic", "append", (), ""), ("files", "append", (), ""), ("table", "append", (), "")]
    if shape.groups is not None:
        changing: list[Choice] = [("topic", "update", shape.groups, "")]
        kept: list[Choice] = [("table", "upsert", shape.groups, "")]
        if shape.is_nested or (shape.is_windowed and shape.is_joined):
            return final
        if shape.is_final:
            return final + kept
        if shape.is_shrinking:
            return final
        return (final if shape.is_windowed else []) + changing + ([] if shape.is_group_filtered else kept)
    if shape.has_outer_rows or not set(ROW).issubset(shape.columns):
        return final
    final.append(("topic", "append", (), "deletes"))
    if shape.has_unique_ids:
        final.append(("table", "upsert", ("id",), ""))
    if shape.has_unique_times:
        final += [
            ("table", "upsert", ("k",), "latest"),
            ("table", "append", (), "changes"),
            ("table", "append", (), "history"),
        ]
    return final


def draw_view(draft: Draft, read: str) -> None:
    shape = draft.shapes[read]
    if shape.groups is not None or not set(ROW).issubset(shape.columns) or shape.has_outer_rows:
        return
    forms = (() if shape.is_joined else ("groups",)) + (
        ("latest", "changes", "history") if shape.has_unique_times else ()
    )
    if forms:
        draft.views.append(View("seen", read, draft.one_of(*forms)))
