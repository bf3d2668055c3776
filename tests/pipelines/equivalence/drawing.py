"""Draws definitions: each step is chosen from those that its input allows, so that most definitions are sound."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import (
    ROW,
    STREAM_COLUMNS,
    Aggregate,
    Case,
    Deduplicate,
    Expectation,
    Explode,
    Number,
    Operation,
    Select,
    Shape,
    Sink,
    Source,
    StaticJoin,
    Step,
    StreamJoin,
    Union,
    View,
)
from tests.pipelines.equivalence.drawing_records import draw_batches

# Constructs with a known difference, which are not drawn, and the saved cases that show it. Remove a line when its
# defect is repaired: the saved cases must pass then.
KNOWN_DEFECTS: dict[str, tuple[str, ...]] = {}

FILTERS = ("n > 3", "n % 2 = 0", "k <> 'b'", "k is not null", "id % 3 <> 0")
COMPUTED = (("x", "coalesce(n, 0) + 1"), ("x", "n * 2"), ("text", "concat(k, '-', id)"), ("text", "upper(k)"))
CHECKS = ("n > 0", "n is not null", "k <> 'a'", "id % 2 = 0", "n between 0 and 6")
GROUP_FILTERS = ("events > 1", "total is not null")
SHRINKING_GROUP_FILTERS = ("events < 2", "total < 5")
SIZES = ((10, None), (10, 5), (30, None))


Choice = TypeVar("Choice")


@dataclass
class Draft:
    """A definition that is being drawn."""

    draw: st.DrawFn
    known: Collection[str]
    has_later_duplicates: bool = False  # duplicates may be later events than the first
    sources: list[Source] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    def one_of(self, *choices: Choice) -> Choice:
        return self.draw(st.sampled_from(choices))

    def is_drawn(self, construct: str) -> bool:
        return construct not in self.known


@st.composite
def cases(draw: st.DrawFn, known: Collection[str] = tuple(KNOWN_DEFECTS)) -> Case:
    """A few steps of a theme, and further ones behind them."""
    draft = Draft(draw, known, draw(st.booleans()))
    theme = draw(st.sampled_from(THEMES))
    draw_sources(draft, 2 if theme == (stream_join,) else draw(st.integers(1, 2)))
    for kind in theme:
        add_step(draft, kind, list(draft.shapes)[-1])
    for _ in range(draw(st.integers(0 if theme else 2, 2))):
        read = draw(st.sampled_from(readable(draft)[::-1]))
        add_step(draft, draw(st.sampled_from(allowed_kinds(draft, draft.shapes[read]))), read)
    ends = [each.name for each in draft.steps]
    written = draw(st.lists(st.sampled_from(ends[::-1]), min_size=min(2, len(ends)), max_size=2, unique=True))
    for number, read in enumerate(written):
        draw_sink(draft, f"out{number}", read)
    if draw(st.booleans()):
        draw_view(draft, draw(st.sampled_from(ends)))
    within = min(withins(draft.steps), default=0) if draft.has_later_duplicates else 0
    delays = [each.delay_minutes for each in draft.sources] + [each.delay_minutes for each in draft.steps]
    least = min(each for each in delays if each is not None)
    batches = draw(draw_batches(tuple(draft.sources), least, within, has_null_keys=not is_keyed_by_k(draft)))
    return Case(tuple(draft.sources), tuple(draft.steps), tuple(draft.sinks), tuple(draft.views), batches)


def is_keyed_by_k(draft: Draft) -> bool:
    return bool(draft.views) or any(each.mode == "upsert" and "k" in each.key for each in draft.sinks)


@st.composite
def stateless_cases(draw: st.DrawFn) -> Case:
    """Cases that the realtime engine runs: no step keeps state, and all sinks are topics."""
    draft = Draft(draw, tuple(KNOWN_DEFECTS))
    draft.sources.append(Source("a", 5, draw(st.booleans())))
    draft.shapes["a"] = Shape(STREAM_COLUMNS, roots=frozenset({"a"}))
    for _ in range(draw(st.integers(1, 3))):
        read = draw(st.sampled_from(list(draft.shapes)[::-1]))
        shape = draft.shapes[read]
        kinds = [select, static_join, *([explode] if "tags" in shape.columns else [])]
        operation, made = draw(st.sampled_from(kinds))(draft, read, shape)
        name = f"s{len(draft.steps)}"
        draft.steps.append(Step(name, operation, draw_expectations(draft, made)))
        draft.shapes[name] = made
    for number in range(draw(st.integers(1, 2))):
        draft.sinks.append(Sink(f"out{number}", draw(st.sampled_from(list(draft.shapes)[:0:-1])), "topic"))
    batches = draw(draw_batches(tuple(draft.sources), 5, 0))
    return Case(tuple(draft.sources), tuple(draft.steps), tuple(draft.sinks), (), batches)


def withins(steps: list[Step]) -> list[int]:
    operations = [each.operation for each in steps]
    return [each.within_minutes for each in operations if isinstance(each, Deduplicate) and each.within_minutes]


def draw_sources(draft: Draft, count: int) -> None:
    draw = draft.draw
    for name in ("a", "b")[:count]:
        draft.sources.append(Source(name, draw(st.sampled_from((5, 20))), draw(st.booleans())))
        has_unique_ids = not draft.has_later_duplicates
        draft.shapes[name] = Shape(STREAM_COLUMNS, has_unique_ids=has_unique_ids, roots=frozenset({name}))
    if count == 1 and draw(st.sampled_from((False, False, True))):  # the watermark is that of a step
        source = draft.sources[0]
        draft.sources[0] = replace(source, delay_minutes=None)
        draft.steps.append(Step("timed", Select("a", STREAM_COLUMNS), delay_minutes=source.delay_minutes))
        draft.shapes["timed"] = draft.shapes["a"]


def readable(draft: Draft) -> list[str]:
    """Sources and steps that a step may read: not a source whose watermark is that of a step."""
    without = {each.name for each in draft.sources if each.delay_minutes is None}
    return [name for name in draft.shapes if name not in without]


def add_step(draft: Draft, kind: Kind, read: str) -> None:
    """Adds a step of this kind, if its input allows it."""
    if kind is sibling:
        kind, read = select, previous_input(draft, read)
    shape = draft.shapes[read]
    if kind not in allowed_kinds(draft, shape):
        return
    name = f"s{len(draft.steps)}"
    operation, made = kind(draft, read, shape)
    draft.steps.append(Step(name, operation, draw_expectations(draft, made)))
    draft.shapes[name] = made


def previous_input(draft: Draft, name: str) -> str:
    """The input of a step; a source itself."""
    operation = next((each.operation for each in draft.steps if each.name == name), None)
    if operation is None or isinstance(operation, StreamJoin | Union):
        return name
    return name if name == "timed" else operation.input


def allowed_kinds(draft: Draft, shape: Shape) -> list[Kind]:
    if shape.groups is not None:
        return [select_groups]
    if not set(ROW).issubset(shape.columns):
        return [select_numbers]
    kinds: list[Kind] = [select, static_join, number]
    if others(draft, shape):
        kinds.append(union)
    if "tags" in shape.columns and (draft.is_drawn("explode behind state") or not shape.is_counted):
        kinds.append(explode)
    kinds.append(aggregate)
    if "tag" not in shape.columns and "other" not in shape.columns:
        kinds.append(deduplicate)
    if join_partners(draft, shape):
        kinds += [stream_join, stream_join]
    return kinds


def others(draft: Draft, shape: Shape) -> list[str]:
    shapes = {name: draft.shapes[name] for name in readable(draft)}
    return [
        name
        for name, each in shapes.items()
        if each.groups is None and set(ROW).issubset(each.columns) and each.has_time == shape.has_time
    ]


def join_partners(draft: Draft, shape: Shape) -> list[str]:
    if not shape.has_time:
        return []
    return [name for name in others(draft, shape) if draft.shapes[name].has_time]


def select(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    where = draft.one_of(None, *FILTERS)
    if draft.draw(st.booleans()):
        return Select(read, None, (), where), shape
    computed = draft.draw(st.lists(st.sampled_from(COMPUTED), max_size=2, unique_by=lambda each: each[0]))
    kept = tuple(name for name in shape.columns if name in (*ROW, "tags", "tag"))
    made = replace(shape, columns=(*kept, *(name for name, _ in computed)))
    return Select(read, kept, tuple(computed), where), made


def select_groups(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    return Select(read, None, (), draft.one_of(*GROUP_FILTERS, *SHRINKING_GROUP_FILTERS)), shape


def select_numbers(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    return Select(read, None, (), draft.one_of(None, "i <= 2", "k is not null")), shape


def explode(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    style = draft.one_of("select", "outer", "lateral")
    return Explode(read, style), replace(shape, columns=(*ROW, "tag"), has_unique_ids=False)


def static_join(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    how = draft.one_of("inner", "left", "semi", "anti")
    added = ("label",) if how in {"inner", "left"} and "label" not in shape.columns else ()
    return StaticJoin(read, how), replace(shape, columns=(*shape.columns, *added))


def aggregate(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    by = ("k", "tag") if "tag" in shape.columns and draft.draw(st.booleans()) else ("k",)
    is_sql = draft.draw(st.booleans())
    if shape.has_time and draft.draw(st.sampled_from((True, True, False))):
        size, slide = draft.draw(st.sampled_from(SIZES))
        made, groups = Aggregate(read, by, size, slide, is_sql), ("window_start", "window_end", *by)
    else:
        made, groups = Aggregate(read, by, is_sql=is_sql), by
    columns = (*groups, "events", "total", "top")
    return made, Shape(columns, False, False, groups, made.size is not None, True, shape.roots)


def deduplicate(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    within = draft.one_of(None, 10, 40) if shape.has_time and draft.is_drawn("deduplicate within") else None
    return Deduplicate(read, within), replace(shape, is_counted=True, has_unique_ids=True)


def number(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    return Number(read), Shape(("k", "i"), False, False, None, False, True, shape.roots)


def stream_join(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    right = draft.draw(st.sampled_from(join_partners(draft, shape)[::-1]))
    how, minutes = draft.draw(st.sampled_from(("inner", "left"))), draft.draw(st.sampled_from((5, 15)))
    roots = shape.roots | draft.shapes[right].roots
    made = Shape((*ROW, "other", "other_n"), True, False, None, False, True, roots)
    return StreamJoin(read, right, how, minutes), made


def union(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    right = draft.draw(st.sampled_from(others(draft, shape)[::-1]))
    other = draft.shapes[right]
    return Union(read, right), Shape(
        ROW,
        shape.has_time and other.has_time,
        False,
        None,
        False,
        shape.is_counted or other.is_counted,
        shape.roots | other.roots,
    )


def draw_expectations(draft: Draft, shape: Shape) -> tuple[Expectation, ...]:
    if not draft.draw(st.sampled_from((False, True))) or not set(ROW).issubset(shape.columns):
        return ()
    checks = draft.draw(st.lists(st.sampled_from(CHECKS), min_size=1, max_size=2, unique=True))
    kinds = st.sampled_from(("warn", "drop", "quarantine"))
    return tuple(Expectation(f"rule{number}", check, draft.draw(kinds)) for number, check in enumerate(checks))


def draw_sink(draft: Draft, name: str, read: str) -> None:
    shape = draft.shapes[read]
    choices: list[tuple[str, str, tuple[str, ...]]]
    if shape.groups is None:
        choices = [("topic", "append", ()), ("files", "append", ()), ("table", "append", ())]
        if shape.has_unique_ids and "id" in shape.columns:
            choices.append(("table", "upsert", ("id",)))
    else:
        choices = [("topic", "update", shape.groups), ("table", "upsert", shape.groups)]
        if shape.is_windowed:
            choices += [("topic", "append", ()), ("files", "append", ()), ("table", "append", ())]
    kind, mode, key = draft.draw(st.sampled_from(choices))
    draft.sinks.append(Sink(name, read, kind, mode, key))


def draw_view(draft: Draft, read: str) -> None:
    shape = draft.shapes[read]
    if shape.groups is not None or not set(ROW).issubset(shape.columns):
        return
    is_latest = shape.has_unique_ids and draft.draw(st.booleans())
    draft.views.append(View("seen", read, is_latest))


Kind = Callable[[Draft, str, Shape], tuple[Operation, Shape]]


def sibling(draft: Draft, read: str, shape: Shape) -> tuple[Operation, Shape]:
    """Stands for a second step that reads what the last step reads."""
    return select(draft, read, shape)


# What a case is about: steps that read each other in turn.
THEMES: tuple[tuple[Kind, ...], ...] = (
    (select, sibling, stream_join),
    (deduplicate, explode, sibling),
    (deduplicate, aggregate),
    (stream_join,),
    (explode, aggregate),
    (number, select_numbers),
    (aggregate, select_groups),
    (select, static_join, deduplicate),
    (),
)
