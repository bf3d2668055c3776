"""Draws steps with state: groups, windows and sessions, deduplication, keyed state, joins of streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tests.pipelines.generated.constructs import Construct
from tests.pipelines.generated.drafts import ROW, Draft
from tests.pipelines.generated.expressions import (
    AGGREGATES,
    COUNT,
    HAVING,
    KEYS,
    OF_ALIAS,
    OF_GROUPS,
    Aggregate,
    Expression,
)
from tests.pipelines.generated.oracle import First, Grouped, Numbered, Paired, RowByRow, Table, Window
from tests.pipelines.generated.row_steps import condition, unitable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.pipelines.generated.expressions import Values

SIZES = ((10, 0), (30, 0), (10, 5), (30, 10))
GAPS = (5, 15)
OUTER = ("left", "right", "full")


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups that are being drawn."""

    by: tuple[str, ...]
    keys: tuple[Expression, ...]  # expressions, in SQL
    aggregates: tuple[Aggregate, ...]
    window: Window | None
    having: Expression | None = None

    def select(self) -> list[str]:
        items = [f"{each.sql} as {each.name}" if each.sql != each.name else each.name for each in self.keys]
        return [*self.by, *items, *(f"{each.sql} as {each.name}" for each in self.aggregates)]

    @property
    def columns(self) -> tuple[str, ...]:
        keys = (*self.by, *(each.name for each in self.keys))
        return (*keys, *(each.name for each in self.aggregates))

    def made(self, read: str, columns: tuple[tuple[str, str], ...] = ()) -> Grouped:
        by = tuple(Expression(name, (name,), itemgetter(name), name) for name in self.by)
        return Grouped(read, (*by, *self.keys), self.aggregates, self.window, self.having, columns)


def can_group(draft: Draft, read: str) -> bool:
    path = draft.path(read)
    if path.groups is not None:
        return draft.fits(Construct.WINDOW_BEHIND_WINDOW, read) and "events" in draft.columns[read]
    can_be_current = draft.fits(Construct.GROUP, read) and not path.keeps_other_state
    return draft.is_row(read) and (draft.fits(Construct.WINDOW, read) or can_be_current)


def group(draft: Draft, read: str) -> None:
    """Groups, declared or in SQL: by columns, by the event time, by windows or by sessions."""
    path, columns = draft.path(read), draft.columns[read]
    is_sql, is_nested, time = draft.happens(2), path.groups is not None, path.event_time
    kinds = ["window", "window", "sliding", "session", "time"] if time is not None and not is_nested else []
    kinds += ["nested", "nested sliding"] if is_nested else []
    kinds += ["plain", "plain"] if not (path.keeps_other_state or is_nested or path.never_final) else []
    kind = draft.one_of(*kinds)
    by: tuple[str, ...] = tuple(draft.some([each for each in ("k", "tag", "label", "name") if each in columns], 0, 2))
    keys = tuple(draft.some([each for each in KEYS if each.fits(columns) and each.name not in by], 0, 1))
    keys = keys if is_sql and not is_nested and draft.happens(2) else ()
    by = by or (() if keys or kind in {"window", "sliding"} or is_nested else ("k",))
    by += (time,) if kind == "time" and time is not None else ()
    grouping = Grouping(by, keys, draw_aggregates(draft, columns, {*by, *(each.name for each in keys)}), None)
    window = None if time is None else draw_window(draft, kind, time)
    grouping = replace(grouping, window=window)
    if is_sql:
        group_in_sql(draft, read, grouping)
    else:
        declare_groups(draft, read, grouping)


def draw_window(draft: Draft, kind: str, time: str) -> Window | None:
    size, slide = draft.one_of(*(SIZES[2:] if kind == "sliding" else SIZES[:2]))
    windows = {
        "window": Window(time, size),
        "sliding": Window(time, size, slide),
        "session": Window(time, gap=draft.one_of(*GAPS)),
        "nested": Window(time, 60),
        "nested sliding": Window(time, 60, 30),
    }
    return windows.get(kind)


def draw_aggregates(draft: Draft, columns: tuple[str, ...], taken: set[str]) -> tuple[Aggregate, ...]:
    choices = OF_GROUPS if "events" in columns else AGGREGATES
    found = [each for each in choices if each.fits(columns) and each.name not in taken]
    return (COUNT, *{each.name: each for each in draft.some(found, 1, 3)}.values())


def declare_groups(draft: Draft, read: str, grouping: Grouping) -> None:
    declaration: dict[str, Any] = {"from": read, "aggregate": {each.name: each.sql for each in grouping.aggregates}}
    if grouping.by:
        declaration["by"] = list(grouping.by)
    window, edges = grouping.window, tuple[str, ...]()
    if window is not None:
        lengths = {"size": window.size, "slide": window.slide, "gap": window.gap}
        spans = {name: f"{minutes} minutes" for name, minutes in lengths.items() if minutes}
        declaration["window"], edges = {"column": window.time, **spans}, ("window_start", "window_end")
    unique = ("k", "window_end") if grouping.by == ("k",) else None
    draft.add(declaration, grouping.made(read), (*edges, *grouping.columns), unique=unique)


def group_in_sql(draft: Draft, read: str, grouping: Grouping) -> None:
    """`SELECT … GROUP BY`, with WHERE and HAVING; a window is selected by its edges."""
    name, where, window = draft.next_name(), condition(draft, read), grouping.window
    if draft.happens(8) and len(grouping.columns) > len(grouping.aggregates):
        grouping = replace(grouping, aggregates=())
    elif draft.happens(3):
        alias = () if "events" in draft.columns[read] else (OF_ALIAS,)
        grouping = replace(grouping, having=draft.one_of(*HAVING, *alias))
    form = draft.one_of("edges", "end") if window is not None else "none"
    call, word = written_window(window)
    edges = {
        "edges": [f"{word}.start as window_start", f"{word}.end as window_end"],
        "end": [f"{word}.end as until"],
        "none": [],
    }[form]
    items = [*edges, *grouping.select()]
    by = written_keys(draft, grouping, len(edges)) + ([call] if window is not None else [])
    behind = "" if where is None else f" where {where.sql}"
    having = "" if grouping.having is None else f" having {grouping.having.sql}"
    sql = f"select {', '.join(items)} from {read}{behind} group by {', '.join(by)}{having}"
    if window is None and not by[0].isdigit() and grouping.aggregates and draft.happens(4):
        sql = sql.replace(f"group by {', '.join(by)}", "group by all")
    rows = Table(
        f"{name} rows", name, RowByRow(read, lambda values: [values] if not where or where.value(values) else [])
    )
    shown = {"edges": ("window_start", "window_end"), "end": ("until",), "none": ()}[form]
    edge = "until" if form == "end" else "window_end"
    unique = ("k", edge) if grouping.by == ("k",) and not grouping.keys else None
    made = grouping.made(rows.name, (("window_end", "until"),) if form == "end" else ())
    draft.add({"sql": sql}, made, (*shown, *grouping.columns), parts=[rows], unique=unique)


def written_window(window: Window | None) -> tuple[str, str]:
    """The call of a window, and the name by which its edges are selected."""
    if window is None:
        return "", ""
    if window.gap:
        return f"session_window({window.time}, '{window.gap} minutes')", "session_window"
    slide = f", '{window.slide} minutes'" if window.slide else ""
    return f"window({window.time}, '{window.size} minutes'{slide})", "window"


def written_keys(draft: Draft, grouping: Grouping, before: int) -> list[str]:
    """The expressions of GROUP BY: by name, by position, or the aliases and texts of expressions."""
    keys = (*grouping.by, *(each.name for each in grouping.keys))
    if draft.happens(4):
        return [str(before + number) for number in range(1, len(keys) + 1)]
    return [*grouping.by, *(draft.one_of(each.sql, each.name) for each in grouping.keys)]


def can_deduplicate(draft: Draft, read: str) -> bool:
    return draft.fits(Construct.DEDUPLICATE, read, is_ordered=bool(key_of_duplicates(draft, read)))


def key_of_duplicates(draft: Draft, read: str) -> list[str]:
    """The columns by which rows are the same: all, if they have no order of arrival."""
    path, columns = draft.path(read), draft.plan().table(read).columns
    if path.is_ordered and path.groups is None:
        return [each for each in ("id",) if each in draft.columns[read]]
    names = [] if columns is None else columns.names
    return names if {each.lower() for each in names} == set(draft.columns[read]) else []


def deduplicate(draft: Draft, read: str) -> None:
    key, time = key_of_duplicates(draft, read), draft.path(read).event_time
    within = draft.one_of(None, 10, 40) if time is not None else None
    limit = {} if within is None else {"within": f"{within} minutes"}
    declaration = {"from": read, "deduplicate": {"key": key, **limit}}
    made = First(read, tuple(key), time, within)
    draft.add(declaration, made, draft.columns[read], unique=draft.unique.get(read))


def keyed_state(draft: Draft, read: str) -> None:
    """Numbers the rows of each `k`; only by arrival it says which row has which number."""
    path = draft.path(read)
    is_ordered = path.is_ordered and path.groups is None and "id" in draft.columns[read] and draft.happens(2)
    kept = ("k", "id") if is_ordered else ("k",)
    state: dict[str, Any] = {"key": ["k"], "processor": f"processors:{'NumberedRows' if is_ordered else 'Numbers'}"}
    state |= {} if is_ordered else {"order": "any"}
    state |= {"clock": "event"} if path.event_time is not None and draft.happens(2) else {}
    schema = ", ".join(f"{name} {'STRING' if name == 'k' else 'BIGINT'}" for name in (*kept, "i"))
    draft.add({"from": read, "state": state, "schema": schema}, Numbered(read, kept), (*kept, "i"))


def partners(draft: Draft, read: str) -> list[str]:
    """The tables that may be joined with one."""
    found = [each for each in unitable(draft) if draft.fits(Construct.STREAM_JOIN, each)]
    return [each for each in found if is_timely_enough(draft, each)]


def is_timely_enough(draft: Draft, read: str) -> bool:
    """With late rows, one operator of a path drops them; `deduplicate` passes rows on at once."""
    return not draft.has_late_rows or not draft.path(read).state


def can_join(draft: Draft, read: str) -> bool:
    is_free = {"other", "other_n", "other_at"}.isdisjoint(draft.columns[read])
    return is_free and read in partners(draft, read)


def declared_join(draft: Draft, read: str) -> None:
    """`join: {stream: …}`, behind a step that gives the columns of the right side other names."""
    right = draft.one_of(*partners(draft, read))
    time, right_time = draft.path(read).event_time, draft.path(right).event_time
    assert time is not None
    assert right_time is not None
    renames = (("id", "other"), ("n", "other_n"), (right_time, "other_at"))
    items = ", ".join(f"{name} as {new}" for name, new in renames)

    def renamed(values: Values) -> Iterator[Values]:
        yield {"k": values["k"], **{new: values[name] for name, new in renames}}

    columns = ("k", *(new for _, new in renames))
    name = draft.add_named(
        f"renamed{len(draft.columns)}", {"sql": f"select k, {items} from {right}"}, RowByRow(right, renamed), columns
    )
    left = draft.columns[read]
    minutes, how = draft.one_of(None, None, 5, 15), draft.one_of("inner", "inner", *OUTER)
    if draft.has_late_rows or how != "inner":
        minutes = minutes or 15

    def make(one: Values, other: Values) -> Values:
        made = {name: one[name] for name in left} | {name: other[name] for name in columns}
        return {**made, "k": other["k"] if one["k"] is None else one["k"]}

    within = "forever" if minutes is None else f"{minutes} minutes"
    declaration = {"from": read, "join": {"stream": name, "on": ["k"], "within": within, "how": how}}
    low = None if minutes is None else -minutes
    paired = Paired(read, name, (time, "other_at"), make, how, low, minutes)
    draft.add(declaration, paired, (*left, *columns[1:]))


def join_in_sql(draft: Draft, read: str) -> None:
    """A join in ON, with USING or a comma; of an inner join further conditions filter pairs."""
    right = draft.one_of(*partners(draft, read))
    time, right_time = draft.path(read).event_time, draft.path(right).event_time
    assert time is not None
    assert right_time is not None
    how, form = draft.one_of("inner", "inner", *OUTER), draft.one_of("on", "on", "comma", "using")
    form = form if how == "inner" else "on"
    low, high, is_open, bound = draw_bound(draft, f"l.{time}", f"r.{right_time}")
    has_residual = how == "inner" and draft.happens(3)
    bound += " and r.n >= l.n" if has_residual else ""
    kept = [each for each in draft.columns[read] if each in {*ROW, "d", "tags", time}]
    items = [*(f"l.{each}" for each in kept), "r.id as other", "r.n as other_n", f"r.{right_time} as other_at"]
    word = {"inner": "join", "left": "left join", "right": "right join", "full": "full outer join"}[how]
    behind = {
        "on": f"{word} {right} r on l.k = r.k and {bound}",
        "comma": f", {right} r where l.k = r.k and {bound}",
        "using": f"join {right} r using (k) where {bound}",
    }[form]

    def make(one: Values, other: Values) -> Values:
        made = {name: one[name] for name in kept}
        return {**made, "other": other["id"], "other_n": other["n"], "other_at": other[right_time]}

    def residual(one: Values, other: Values) -> bool:
        return one["n"] is not None and other["n"] is not None and other["n"] >= one["n"]

    pairs = Paired(read, right, (time, right_time), make, how, low, high, is_open, residual if has_residual else None)
    sql = f"select {', '.join(items)} from {read} l {behind}".replace(" l ,", " l,")
    draft.add({"sql": sql}, pairs, (*kept, "other", "other_n", "other_at"))


def draw_bound(draft: Draft, left: str, right: str) -> tuple[int, int, bool, str]:
    """The least and the greatest distance in minutes, whether the greatest is left out, and the condition."""
    before, after = draft.one_of(0, 5, 15), draft.one_of(5, 10)
    earliest = f"{left} - interval {before} minutes" if before else left
    latest = f"{left} + interval {after} minutes"
    forms = (
        (0, 0, False, f"{left} = {right}"),
        (-before, after, False, f"{right} between {earliest} and {latest}"),
        (-before, after, True, f"{right} >= {earliest} and {latest} > {right}"),
    )
    return draft.one_of(*forms, forms[1])
