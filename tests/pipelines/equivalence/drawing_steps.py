"""Draws steps: each kind is a function of the draft and the input, which returns the operation and its shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import (
    RENAMED,
    ROW,
    Aggregate,
    Deduplicate,
    Explode,
    Number,
    Operation,
    Python,
    Select,
    Shape,
    StaticJoin,
    StreamJoin,
    Union,
    inputs_of,
)
from tests.pipelines.equivalence.drafts import Draft
from tests.pipelines.equivalence.drawing_ends import draw_expectations

Drawn = tuple[Operation, Shape]
Kind = Callable[[Draft, str, Shape], Drawn]
FILTERS = ("n > 3", "n % 2 = 0", "k <> 'b'", "k is not null", "id % 3 <> 0")
COMPUTED = (
    ("x", "coalesce(n, 0) + 1"),
    ("x", "n * 2"),
    ("text", "concat(k, '-', id)"),
    ("text", "upper(k)"),
)
GROWING, SHRINKING = "events > 1", "events < 2"
SIZES = ((10, None), (10, 5), (30, None))
GAPS = (5, 15)


def add_step(draft: Draft, kind: Kind, read: str) -> None:
    """Adds a step of this kind, if its input allows it."""
    if kind is sibling:
        kind, read = select, previous_input(draft, read)
    shape = draft.shapes[read]
    if kind in allowed_kinds(draft, read, shape):
        operation, made = kind(draft, read, shape)
        draft.add(operation, made, draw_expectations(draft, made))


def previous_input(draft: Draft, name: str) -> str:
    """The input of a step; a source itself."""
    operation = draft.operation(name)
    reads = () if operation is None or name == "timed" else inputs_of(operation)
    return reads[0] if len(reads) == 1 else name


def allowed_kinds(draft: Draft, read: str, shape: Shape) -> list[Kind]:
    if shape.groups is not None:
        is_open = shape.is_windowed and not shape.is_nested and not draft.has_late_rows
        return [select_groups, *([window_of_windows] if is_open else [])]
    if not set(ROW).issubset(shape.columns):
        return [select_numbers]
    kinds: list[Kind] = [select, static_join, python]
    if shape.has_outer_rows:
        return kinds
    if not draft.has_late_rows:
        kinds.append(number)
    if "tags" in shape.columns:
        kinds.append(explode)
    if shape.has_time or not shape.is_joined:
        kinds.append(aggregate)
    if shape.has_time:
        kinds.append(sessions)
    if not shape.is_joined:
        kinds.append(tally)
    if "tag" not in shape.columns and not shape.is_joined:
        kinds.append(deduplicate)
    if others(draft, shape):
        kinds.append(union)
    if join_partners(draft, read, shape):
        kinds += [stream_join, declared_join]
    return kinds


def others(draft: Draft, shape: Shape) -> list[str]:
    shapes = {name: draft.shapes[name] for name in draft.readable()}
    return [
        name
        for name, each in shapes.items()
        if each.groups is None
        and set(ROW).issubset(each.columns)
        and each.has_time == shape.has_time
        and not each.has_outer_rows
    ]


def join_partners(draft: Draft, read: str, shape: Shape) -> list[str]:
    """The names that may be joined; with late rows both streams of the case, which no other step reads."""
    if not shape.has_time or "other" in shape.columns:
        return []
    found = [name for name in others(draft, shape) if draft.shapes[name].has_time]
    if draft.has_late_rows:
        return [name for name in found if name in {"a", "b"} and name != read and not draft.steps]
    return found


def select(draft: Draft, read: str, shape: Shape) -> Drawn:
    where = draft.filter(*FILTERS)
    if draft.draw(st.booleans()):
        return Select(read, None, (), where), shape
    has_functions = not draft.is_realtime  # Python functions in SQL
    choices = (*COMPUTED, ("text", "shout(k)")) if has_functions else COMPUTED
    computed = draft.draw(st.lists(st.sampled_from(choices), max_size=2, unique_by=lambda each: each[0]))
    kept = tuple(name for name in shape.columns if name not in {"x", "text", "label", "ts"})
    made = replace(shape, columns=(*kept, *(name for name, _ in computed)))
    return Select(read, kept, tuple(computed), where), made


def select_groups(draft: Draft, read: str, shape: Shape) -> Drawn:
    where = draft.filter(GROWING, SHRINKING) if shape.is_windowed else draft.filter(GROWING)
    is_filtered, is_shrinking = where is not None, where == SHRINKING
    made = replace(
        shape,
        is_group_filtered=shape.is_group_filtered or is_filtered,
        is_shrinking=shape.is_shrinking or is_shrinking,
    )
    return Select(read, None, (), where), made


def select_numbers(draft: Draft, read: str, shape: Shape) -> Drawn:
    choices = ("i <= 2", "k is not null") if "i" in shape.columns else ("k is not null",)
    return Select(read, None, (), draft.filter(*choices)), shape


def explode(draft: Draft, read: str, shape: Shape) -> Drawn:
    style = "lateral" if draft.is_realtime else draft.one_of("select", "outer", "lateral")
    return Explode(read, style), replace(shape, columns=(*ROW, "tag"), has_unique_ids=False, has_unique_times=False)


def static_join(draft: Draft, read: str, shape: Shape) -> Drawn:
    how, is_checked = draft.one_of(("inner", False), ("left", True), ("semi", True), ("anti", False), ("inner", True))
    if "label" in shape.columns:
        return select(draft, read, shape)
    added = ("label",) if how in {"inner", "left"} else ()
    return StaticJoin(read, how, is_checked), replace(shape, columns=(*shape.columns, *added))


def python(draft: Draft, read: str, shape: Shape) -> Drawn:
    columns = tuple(name for name in shape.columns if name != "x")
    return Python(read, "positive"), replace(shape, columns=(*columns, "x"))


def tally(draft: Draft, read: str, shape: Shape) -> Drawn:
    """A Python function that aggregates."""
    return Python(read, "tallied"), Shape(("k", "events"), False, False, False, groups=("k",), is_counted=True)


def aggregate(draft: Draft, read: str, shape: Shape) -> Drawn:
    by = ("k", "tag") if "tag" in shape.columns and draft.draw(st.booleans()) else ("k",)
    is_sql = draft.one_of(False, True)
    has_window = shape.has_time and (shape.is_joined or draft.has_late_rows or draft.one_of(True, True, False))
    if not has_window:
        return Aggregate(read, by, is_sql=is_sql), grouped(by, shape)
    size, slide = draft.draw(st.sampled_from(SIZES))
    return Aggregate(read, by, size, slide, is_sql), grouped(by, shape, is_windowed=True)


def sessions(draft: Draft, read: str, shape: Shape) -> Drawn:
    made = Aggregate(read, ("k",), is_sql=draft.one_of(False, True), gap=draft.one_of(*GAPS))
    return made, replace(grouped(("k",), shape, is_windowed=True), is_final=True)


def window_of_windows(draft: Draft, read: str, shape: Shape) -> Drawn:
    """Windows over the ends of windows or sessions; only final rows are written."""
    by = draft.draw(st.sampled_from(((), ("k",))))
    made = Aggregate(read, by, 60, is_sql=draft.draw(st.booleans()), time="window_end", value="events")
    return made, replace(grouped(by, shape, is_windowed=True), is_nested=True)


def grouped(by: tuple[str, ...], shape: Shape, *, is_windowed: bool = False) -> Shape:
    key = ("window_start", "window_end", *by) if is_windowed else by
    columns = (*key, "events", "total", "top")
    return Shape(
        columns, False, False, False, groups=key, is_windowed=is_windowed, is_counted=True, is_joined=shape.is_joined
    )


def deduplicate(draft: Draft, read: str, shape: Shape) -> Drawn:
    within = draft.one_of(None, 10, 40) if shape.has_time else None
    is_unique = shape.has_unique_ids or within is None
    return Deduplicate(read, within), replace(shape, is_counted=True, has_unique_ids=is_unique)


def number(draft: Draft, read: str, shape: Shape) -> Drawn:
    return Number(read), Shape(("k", "i"), False, False, False, is_counted=True, is_joined=shape.is_joined)


def stream_join(draft: Draft, read: str, shape: Shape) -> Drawn:
    right = draft.draw(st.sampled_from(join_partners(draft, read, shape)[::-1]))
    how, minutes = draft.one_of("inner", "left"), draft.one_of(5, 15)
    made = Shape((*ROW, "other", "other_n"), True, False, False, is_counted=True, is_joined=True)
    return StreamJoin(read, right, how, minutes), made


def declared_join(draft: Draft, read: str, shape: Shape) -> Drawn:
    """`join: {stream: …}`, behind a step that gives the columns of the right side other names."""
    right = draft.draw(st.sampled_from(join_partners(draft, read, shape)[::-1]))
    columns = ("k", *(name for name, _ in RENAMED))
    renamed = draft.add(Select(right, ("k",), RENAMED), Shape(columns, False, False, False, is_joined=True))
    how, minutes = draft.one_of("inner", "left", "right", "full"), draft.one_of(5, 15)
    is_outer = how in {"right", "full"}
    made = Shape(
        (*shape.columns, *columns[1:]),
        has_time=not is_outer,
        has_unique_ids=False,
        has_unique_times=False,
        has_outer_rows=is_outer,
        is_counted=True,
        is_joined=True,
    )
    return StreamJoin(read, renamed, how, minutes, is_declared=True), made


def union(draft: Draft, read: str, shape: Shape) -> Drawn:
    right = draft.draw(st.sampled_from(others(draft, shape)[::-1]))
    other = draft.shapes[right]
    has_star = shape.columns == other.columns == ROW and draft.draw(st.booleans())
    return Union(read, right, has_star), Shape(
        ROW,
        shape.has_time and other.has_time,
        has_unique_ids=False,
        has_unique_times=shape.has_unique_times and other.has_unique_times,
        is_counted=shape.is_counted or other.is_counted,
        is_joined=shape.is_joined or other.is_joined,
    )


def sibling(draft: Draft, read: str, shape: Shape) -> Drawn:
    """Stands for a second step that reads what the last step reads."""
    return select(draft, read, shape)


# What a case is about: steps that read each other in turn.
THEMES: tuple[tuple[Kind, ...], ...] = (
    (select, sibling, stream_join),
    (deduplicate, explode, sibling),
    (deduplicate, aggregate),
    (stream_join,),
    (declared_join, select),
    (explode, aggregate),
    (sessions, window_of_windows),
    (aggregate, window_of_windows),
    (number, select_numbers),
    (aggregate, select_groups),
    (python, tally),
    (select, static_join, deduplicate),
    (select,),
    (),
)
LATE_THEMES: tuple[tuple[Kind, ...], ...] = (
    (aggregate,),
    (select, aggregate),
    (static_join, sessions, select_groups),
    (sessions,),
    (explode, aggregate),
    (deduplicate,),
    (deduplicate, aggregate),
    (stream_join,),
    (declared_join,),
)
