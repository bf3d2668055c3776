"""Counts that a query observes in its plan, and the report of a batch that is made of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.vocabulary import Otherwise
    from odradek.pipelines.planning.plan import Check

OBSERVED = "counts"  # begins the names of observed metrics


class Kind(StrEnum):
    READ = "read"  # records of a source
    REFUSED = "refused"  # records of a source that fail to parse
    CHECKED = "checked"  # rows of a table with checks
    UNMET = "unmet"  # rows that do not meet a check
    WRITTEN = "written"  # rows of an end, without tables, whose rows are counted when they are written


@dataclass(frozen=True, slots=True)
class Count:
    """An aggregate over the rows of a frame."""

    kind: Kind
    of: str  # the source, the table or the end
    aggregate: str
    check: Check | None = None
    is_of_end: bool = False  # whether an end refuses the rows, which may have the name of a table

    @property
    def name(self) -> str:
        of = f"end {self.of}" if self.is_of_end else self.of
        return f"{self.kind} {of}" if self.check is None else f"{self.kind} {of}: {self.check.name}"


@dataclass(frozen=True, slots=True)
class Violations:
    """The rows of a step that did not meet a check, and those that were checked."""

    step: str
    expectation: str
    otherwise: Otherwise
    rows: int
    checked: int = 0


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A finished batch."""

    flow: str
    number: int
    rows: int | None  # None: not counted
    rejected: int
    violations: tuple[Violations, ...]
    seconds: float
    written: Mapping[str, int] = field(default_factory=dict)  # rows by end; those without a count are missing

    def __str__(self) -> str:
        parts = [f"{self.flow} batch {self.number}"]
        if self.rows is not None:
            parts.append("1 row" if self.rows == 1 else f"{self.rows} rows")
        if self.rejected:
            parts.append(f"{self.rejected} not parsed")
        parts += [f"{each.rows} × {each.expectation} ({each.otherwise})" for each in self.violations if each.rows]
        return f"{parts[0]}: {', '.join([*parts[1:], f'{self.seconds * 1000:.0f} ms'])}"


def observing(frame: DataFrame, counts: Sequence[Count], name: str = OBSERVED) -> DataFrame:
    """The frame, whose query observes the counts under this name, which no other part of the query may have."""
    if not counts:
        return frame
    first, *others = (F.expr(each.aggregate).alias(each.name) for each in counts)
    return frame.observe(name, first, *others)


def of_end(counts: Iterable[Count]) -> tuple[Count, ...]:
    """The counts of the rows that an end refuses."""
    return tuple(replace(each, is_of_end=True) for each in counts if each.kind is Kind.UNMET)


def total(kind: Kind, counts: Iterable[Count], observed: Mapping[str, int | None]) -> int | None:
    """The sum of the counts of a kind; None if the query does not count them."""
    found = [observed.get(each.name) or 0 for each in counts if each.kind is kind]
    return sum(found) if found else None


def written(counts: Iterable[Count], observed: Mapping[str, int | None]) -> dict[str, int]:
    return {each.of: observed.get(each.name) or 0 for each in counts if each.kind is Kind.WRITTEN}


def violations(
    counts: Sequence[Count], observed: Mapping[str, int | None], steps: Mapping[str, str]
) -> tuple[Violations, ...]:
    """The violations by step; `steps` has the declared step of each hidden table. A check that the definition does not
    write is reported if a row does not meet it."""
    checked: Counter[str] = Counter()
    unmet: Counter[tuple[str, str, Otherwise]] = Counter()
    for each in counts:
        step, found = steps.get(each.of, each.of), observed.get(each.name) or 0
        if each.kind is Kind.CHECKED:
            checked[step] += found
        elif each.check is not None and (found or not each.check.is_implicit):
            unmet[step, each.check.name, each.check.otherwise] += found
    return tuple(Violations(*about, rows, checked[about[0]]) for about, rows in unmet.items())
