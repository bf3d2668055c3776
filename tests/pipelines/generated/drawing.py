"""Draws cases from seeds: a definition, its oracle and its records. Each step is one that its input allows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from odradek.pipelines.definition.places import Problems
from tests.pipelines.generated.constructs import Construct, constructs_of
from tests.pipelines.generated.definitions import planned
from tests.pipelines.generated.drafts import STREAM, Draft, schema_of
from tests.pipelines.generated.ends import draw_ends
from tests.pipelines.generated.oracle import Grouped, Oracle, Outcome, RowByRow, Table, Topic
from tests.pipelines.generated.records import Feed
from tests.pipelines.generated.row_steps import (
    explode,
    look_up,
    python,
    select,
    table_join,
    union,
    unitable,
)
from tests.pipelines.generated.state_steps import (
    can_deduplicate,
    can_group,
    can_join,
    declared_join,
    deduplicate,
    group,
    is_timely_enough,
    join_in_sql,
    keyed_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.pipelines.planning.plan import Plan
    from tests.pipelines.generated.ends import End
    from tests.pipelines.generated.records import Batches

    Kind = Callable[[Draft, str], None]

TIMED = ("id", "k", "n", "at", "tags", "t")  # the columns of a step with the watermark of its source


@dataclass(frozen=True, slots=True)
class Case:
    """A drawn definition, with the tables of the oracle and the records of each batch."""

    seed: int
    definition: dict[str, Any]
    tables: tuple[Table, ...]
    ends: tuple[End, ...]
    batches: Batches
    has_late_rows: bool
    changing: frozenset[str] = frozenset()  # steps whose groups each batch may count again

    @property
    def text(self) -> str:
        return yaml.safe_dump(self.definition, sort_keys=False, width=1000)

    def plan(self, problems: Problems) -> Plan:
        return planned(self.definition, problems, is_checked=True)

    def outcome(self, batches: Batches, *, is_stream: bool) -> Outcome:
        """What the oracle expects of the records in these batches."""
        oracle = Oracle(self.tables, batches, is_stream=is_stream)
        oracle.outcome.rows = {each.name: each.rows(oracle) for each in self.ends}
        return oracle.outcome

    def constructs(self) -> Counter[str]:
        """How often it has each construct, and records with each kind of value."""
        found = Counter[str]({str(each): count for each, count in constructs_of(self.plan(Problems())).items()})
        records = [each for batch in self.batches for records in batch.values() for each in records]
        return found + Counter(f"record: {kind}" for each in records for kind in each.kinds)


def case_of(seed: int, *, is_realtime: bool = False) -> Case:
    """The case of a seed."""
    chance = random.Random(f"{seed} {is_realtime}")
    draft = Draft(chance, has_late_rows=not is_realtime and chance.randrange(3) == 0, is_realtime=is_realtime)
    if is_realtime:
        draft.definition["engine"] = "realtime"
    delays = draw_sources(draft)
    for _ in range(draft.one_of(1, 2, 2, 3, 3, 4)):
        read = draft.one_of(*draft.readable()[::-1][:3])
        kinds = allowed_kinds(draft, read)
        if kinds:
            draft.one_of(*kinds)(draft, read)
    draw_ends(draft)
    definition = {name: value for name, value in draft.definition.items() if value}
    windows = [each.made_by.window for each in draft.tables if isinstance(each.made_by, Grouped)]
    feed = Feed(draft, delays, max((each.gap for each in windows if each is not None), default=0))
    paths = {name: draft.path(name) for name in draft.columns}
    changing = frozenset(name for name, path in paths.items() if path.groups is not None and path.can_change)
    return Case(seed, definition, tuple(draft.tables), tuple(draft.ends), feed.batches(), draft.has_late_rows, changing)


def draw_sources(draft: Draft) -> dict[str, int]:
    """One or two topics, with a watermark, or with a step behind one that has it."""
    delays: dict[str, int] = {}
    for name in ("a", "b")[: 1 if draft.is_realtime else draft.one_of(1, 1, 2)]:
        delays[name] = draft.one_of(5, 20)
        watermark = {"column": "at", "delay": f"{delays[name]} minutes"}
        source = {"topic": name, "schema": schema_of(STREAM), "tombstones": "dead_letters"}
        has_step = draft.happens(5)
        draft.definition["sources"][name] = source if has_step else {**source, "watermark": watermark}
        draft.columns[name] = STREAM
        draft.tables.append(Table(name, name, Topic(), None if has_step else delays[name]))
        if has_step:
            add_timed(draft, name, watermark, delays[name])
        else:
            draft.unique[name] = ("k", "at")
    return delays


def add_timed(draft: Draft, read: str, watermark: dict[str, str], delay_minutes: int) -> None:
    """A step that gives the rows of a source their watermark."""
    name = f"timed_{read}"
    sql = f"select {', '.join(TIMED)} from {read}"
    draft.definition["steps"][name] = {"sql": sql, "watermark": watermark}
    made = RowByRow(read, lambda values: [{column: values[column] for column in TIMED}])
    draft.columns[name] = TIMED
    draft.tables.append(Table(name, name, made, delay_minutes))
    draft.unique[name] = ("k", "at")


def allowed_kinds(draft: Draft, read: str) -> list[Kind]:
    """The kinds of steps that may read a table, those with state twice."""
    path, columns, is_row = draft.path(read), draft.columns[read], draft.is_row(read)
    generators = [explode] if is_row and "tags" in columns else []
    if draft.is_realtime:
        return [select, *generators]
    joins = [] if "label" in columns or "k" not in columns else [table_join]
    found: list[Kind] = [select, *generators, *joins, *([look_up] if "k" in columns else [])]
    found += [python] if is_row and path.groups is None else []
    found += [union] if read in unitable(draft) else []
    is_timely = is_timely_enough(draft, read)
    is_first = is_timely or all(each in deduplications(draft) for each in path.state)
    weight = 3 if path.groups is None else 6
    found += [group] * weight if can_group(draft, read) and is_first else []
    found += [deduplicate, deduplicate] if can_deduplicate(draft, read) and is_timely else []
    found += [declared_join, join_in_sql, declared_join, join_in_sql] if can_join(draft, read) else []
    is_free = not draft.has_late_rows and draft.fits(Construct.STATE, read, is_ordered=True)
    found += [keyed_state, keyed_state] if is_free and "k" in columns else []
    return found


def deduplications(draft: Draft) -> set[str]:
    """The steps that pass on the first rows at once."""
    steps = draft.definition["steps"]
    return {name for name, each in steps.items() if "deduplicate" in each and "within" not in each["deduplicate"]}
