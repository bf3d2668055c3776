"""Draws definitions with their records: each step is one that its input allows, so that most definitions are sound."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import (
    STREAM_COLUMNS,
    Aggregate,
    Case,
    Select,
    Shape,
    Sink,
    Source,
    Step,
    StreamJoin,
)
from tests.pipelines.equivalence.drafts import Draft
from tests.pipelines.equivalence.drawing_ends import draw_ends, draw_expectations
from tests.pipelines.equivalence.drawing_kept import kept_cases
from tests.pipelines.equivalence.drawing_records import draw_batches
from tests.pipelines.equivalence.drawing_steps import (
    LATE_THEMES,
    THEMES,
    Kind,
    add_step,
    allowed_kinds,
    declared_join,
    explode,
    select,
    stream_join,
)

JOINS = {stream_join, declared_join}
KEPT_EVERY = 10  # of so many seeds the last draws a definition whose tables and views keep a row of each key


def case_of(seed: int, strategy: st.SearchStrategy[Case] | None = None) -> Case:
    """The case of a seed. Each is drawn by itself, because Hypothesis varies earlier examples of a run."""
    drawn: list[Case] = []
    if strategy is None:
        strategy = kept_cases() if seed % KEPT_EVERY == KEPT_EVERY - 1 else cases()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=2,  # the first is the simplest of all, whatever the seed
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=strategy)
    def take(case: Case) -> None:
        drawn.append(case)

    take()
    return drawn[-1]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A definition, with late rows or without."""
    is_late = draw(st.sampled_from((False, False, True)))
    return with_batches(late_draft(draw) if is_late else timely_draft(draw))


def timely_draft(draw: st.DrawFn) -> Draft:
    """A few steps of a theme, and further ones behind them."""
    draft = Draft(draw, has_later_duplicates=draw(st.booleans()))
    theme = draw(st.sampled_from(THEMES))
    draw_sources(draft, 2 if JOINS.intersection(theme[:1]) else draw(st.integers(1, 2)))
    for kind in theme:
        add_step(draft, kind, list(draft.shapes)[-1])
    for _ in range(draw(st.integers(0 if draft.steps else 2, 2))):
        read = draw(st.sampled_from(draft.readable()[::-1]))
        add_step(draft, draw(st.sampled_from(allowed_kinds(draft, read, draft.shapes[read]))), read)
    draw_ends(draft)
    return draft


def late_draft(draw: st.DrawFn) -> Draft:
    """A chain of steps that read one source, or a join of both."""
    draft = Draft(draw, has_late_rows=True)
    theme: tuple[Kind, ...] = draw(st.sampled_from(LATE_THEMES))
    draw_sources(draft, 2 if JOINS.intersection(theme) else 1)
    for number, kind in enumerate(theme):
        add_step(draft, kind, list(draft.shapes)[-1] if number or len(draft.sources) == 1 else "a")
    draw_ends(draft)
    return draft


def draw_sources(draft: Draft, count: int) -> None:
    draw = draft.draw
    for name in ("a", "b")[:count]:
        draft.sources.append(Source(name, draw(st.sampled_from((5, 20))), draw(st.booleans())))
        draft.shapes[name] = Shape(STREAM_COLUMNS, has_unique_ids=not draft.has_later_duplicates)
    if count == 1 and draw(st.sampled_from((False, False, True))):  # the watermark is that of a step
        source = draft.sources[0]
        draft.sources[0] = replace(source, delay_minutes=None)
        draft.steps.append(Step("timed", Select("a", STREAM_COLUMNS), delay_minutes=source.delay_minutes))
        draft.shapes["timed"] = draft.shapes["a"]


def with_batches(draft: Draft) -> Case:
    """The case of a draft, with records that its definition can take."""
    delays = [each.delay_minutes for each in draft.sources] + [each.delay_minutes for each in draft.steps]
    gaps = [each.operation.gap or 0 for each in draft.steps if isinstance(each.operation, Aggregate)]
    drawn = draw_batches(
        tuple(draft.sources),
        min(each for each in delays if each is not None),
        min(draft.withins, default=0) if draft.has_later_duplicates else 0,
        has_null_keys=not needs_keys(draft),
        has_null_tags=not any("tag" in each.key for each in draft.sinks),
        late_minutes=max(gaps, default=0) if draft.has_late_rows else None,
    )
    batches = draft.draw(drawn)
    return Case(tuple(draft.sources), tuple(draft.steps), tuple(draft.sinks), tuple(draft.views), batches)


def needs_keys(draft: Draft) -> bool:
    """Whether a null in `k` would stop the pipeline, or be removed before a join counts its late rows."""
    is_key = any("k" in each.key or each.form in {"changes", "history"} for each in draft.sinks)
    is_joined = any(isinstance(each.operation, StreamJoin) for each in draft.steps)
    return is_key or bool(draft.views) or (draft.has_late_rows and is_joined)


@st.composite
def stateless_cases(draw: st.DrawFn) -> Case:
    """Cases that the realtime engine runs: no step keeps state, and all sinks are topics."""
    draft = Draft(draw, is_realtime=True)
    draft.sources.append(Source("a", 5, draw(st.booleans())))
    draft.shapes["a"] = Shape(STREAM_COLUMNS)
    for _ in range(draw(st.integers(1, 3))):
        read = draw(st.sampled_from(list(draft.shapes)[::-1]))
        shape = draft.shapes[read]
        kinds = [select, *([explode] if "tags" in shape.columns else [])]
        operation, made = draw(st.sampled_from(kinds))(draft, read, shape)
        draft.add(operation, made, draw_expectations(draft, made))
    for number in range(draw(st.integers(1, 2))):
        read = draw(st.sampled_from(list(draft.shapes)[:0:-1]))
        draft.sinks.append(Sink(f"out{number}", read, "topic", form=draft.one_of("", "deletes")))
    batches = draw(draw_batches(tuple(draft.sources), 5, 0))
    return Case(tuple(draft.sources), tuple(draft.steps), tuple(draft.sinks), (), batches)
