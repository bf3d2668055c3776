"""A definition that is being drawn: its text, its plan, and the tables of the oracle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.pipelines.definition.places import Problems
from tests.pipelines.generated.constructs import Construct, needs_of
from tests.pipelines.generated.definitions import KNOWN, KNOWN_STEP, LABELS, LABELS_SOURCE, planned
from tests.pipelines.generated.expressions import CONDITIONS, RARELY_UNMET, TYPES
from tests.pipelines.generated.oracle import Check, Table

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from odradek.pipelines.planning.plan import Path, Plan
    from tests.pipelines.generated.ends import End
    from tests.pipelines.generated.oracle import Made

Choice = TypeVar("Choice")
STREAM = ("id", "k", "n", "d", "t", "tags", "at", "seen")  # the columns of records
ROW = ("id", "k", "n")  # the columns of rows that are not groups


@dataclass
class Draft:
    """The parts that were drawn so far."""

    random: random.Random
    has_late_rows: bool = False
    is_realtime: bool = False
    definition: dict[str, Any] = field(
        default_factory=lambda: {"pipeline": "case", "dead_letters": "dead", "sources": {}, "steps": {}}
    )
    tables: list[Table] = field(default_factory=list)  # of the oracle
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of sources and steps that may be read
    unique: dict[str, tuple[str, str]] = field(default_factory=dict)  # `k` and a time that differs among its rows
    ends: list[End] = field(default_factory=list)
    is_stopping: bool = False
    _plan: Plan | None = None

    def one_of(self, *choices: Choice) -> Choice:
        return self.random.choice(choices)

    def some(self, choices: Sequence[Choice], least: int, most: int) -> list[Choice]:
        count = min(self.random.randint(least, most), len(choices))
        return [choices[number] for number in sorted(self.random.sample(range(len(choices)), count))]

    def happens(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def plan(self) -> Plan:
        """The plan of what is drawn, to which no rule has been applied."""
        if self._plan is None:
            self._plan = planned(self.definition, Problems(), is_checked=False)
        return self._plan

    def path(self, name: str) -> Path:
        return self.plan().path(name)

    def fits(self, construct: Construct, read: str, *, is_ordered: bool | None = None) -> bool:
        """Whether a table has what a construct needs; `is_ordered` if something stands in place of the arrival."""
        needs, path = needs_of(construct), self.path(read)
        has_order = (path.is_ordered and path.groups is None) if is_ordered is None else is_ordered
        has_time = path.event_time is not None
        return (
            (has_time or not (needs.event_time or needs.watermark_each))
            and (has_order or not needs.order)
            and (path.never_final is None or not needs.rows_or_final)
        )

    def is_row(self, name: str) -> bool:
        return set(ROW) <= set(self.columns[name])

    def readable(self) -> list[str]:
        return list(self.columns)

    def add(
        self,
        declaration: dict[str, Any],
        made_by: Made,
        columns: tuple[str, ...],
        *,
        parts: Sequence[Table] = (),
        unique: tuple[str, str] | None = None,
    ) -> str:
        """Adds a step; `parts` are tables before it that belong to it."""
        name = f"s{len(self.definition['steps'])}"
        return self.add_named(name, declaration, made_by, columns, parts=parts, unique=unique)

    def add_named(
        self,
        name: str,
        declaration: dict[str, Any],
        made_by: Made,
        columns: tuple[str, ...],
        *,
        parts: Sequence[Table] = (),
        unique: tuple[str, str] | None = None,
    ) -> str:
        self.definition["steps"][name] = declaration
        self.columns[name] = columns
        self._plan = None
        if unique is not None and set(unique) <= set(columns):
            self.unique[name] = unique
        checks = self.checks(name)
        if checks:
            declaration["expect"] = {
                each.name: {"check": each.condition.sql, "otherwise": each.otherwise} for each in checks
            }
            self._plan = None
        self.tables += [*parts, Table(name, name, made_by, checks=checks)]
        return name

    def next_name(self) -> str:
        return f"s{len(self.definition['steps'])}"

    def checks(self, name: str) -> tuple[Check, ...]:
        """Expectations of a new step. What is quarantined must be final."""
        fitting = [each for each in CONDITIONS if each.fits(self.columns[name])]
        if not fitting or not self.happens(3):
            return ()
        path = self.path(name)
        if RARELY_UNMET[0].fits(self.columns[name]) and not path.state and self.can_stop() and self.happens(6):
            self.is_stopping = True
            return (Check("rule0", self.one_of(*RARELY_UNMET), "fail"),)
        kinds = ("drop",) if path.groups is not None and path.can_change else ("warn", "drop", "quarantine")
        return tuple(
            Check(f"rule{number}", condition, self.one_of(*kinds))
            for number, condition in enumerate(self.some(fitting, 1, 2))
        )

    def can_stop(self) -> bool:
        return not (self.is_stopping or self.is_realtime or self.has_late_rows)

    def labels(self) -> tuple[str, dict[str, str]]:
        """A static table with a label of some `k`, or the step over it, and its rows."""
        self.definition["sources"]["labels"] = dict(LABELS_SOURCE)
        self._plan = None
        if not self.happens(3):
            return "labels", dict(LABELS)
        self.definition["steps"]["known"] = dict(KNOWN_STEP)
        return "known", dict(KNOWN)


def schema_of(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)
