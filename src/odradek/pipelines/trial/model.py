"""The model of a test file: cases of given and expected rows, as immutable values with their places."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.definition.vocabulary import Duration
    from odradek.pipelines.planning.plan import Plan


class Outlet(StrEnum):
    """A part of the pipeline whose rows a test can check."""

    SINK = "sink"
    VIEW = "view"
    DEAD_LETTERS = "dead letters"


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A plain value, as `json.loads` returns it, and its place."""

    value: Any
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """The expected rows of an outlet; without `rows` only their count is checked."""

    outlet: Outlet
    name: str
    place: Place
    rows: tuple[PlacedValue, ...] | None = None
    count: int | None = None
    may_have_more: bool = False
    in_order: bool = False
    all_columns: bool = False  # rows must not have columns other than the expected ones

    @property
    def label(self) -> str:
        return f"{self.outlet} '{self.name}'" if self.name else str(self.outlet)


@dataclass(frozen=True, slots=True)
class ExpectedCount:
    """The expected number of rows of a step that do not meet an expectation."""

    step: str
    expectation: str
    count: int
    place: Place

    @property
    def label(self) -> str:
        return f"step '{self.step}', expectation '{self.expectation}'"


@dataclass(frozen=True, slots=True)
class GivenBatch:
    """The rows of one micro-batch, by source."""

    rows: Mapping[str, tuple[PlacedValue, ...]]


@dataclass(frozen=True, slots=True)
class Advance:
    """Event time and processing time move on."""

    duration: Duration
    place: Place


@dataclass(frozen=True, slots=True)
class Check:
    """What is expected after the batches so far."""

    rows: tuple[ExpectedRows, ...] = ()
    counts: tuple[ExpectedCount, ...] = ()


Turn = GivenBatch | Advance | Check


@dataclass(frozen=True, slots=True)
class Case:
    """One test. The last turn is the check at the end."""

    name: str
    place: Place
    turns: tuple[Turn, ...] = ()
    closes_windows: bool = True  # event time passes the end of every window before the last check
    error: PlacedValue | None = None  # a part of the expected error message

    @property
    def batches(self) -> list[GivenBatch]:
        return [each for each in self.turns if isinstance(each, GivenBatch)]

    @property
    def checks(self) -> list[Check]:
        return [each for each in self.turns if isinstance(each, Check)]


@dataclass(frozen=True, slots=True)
class CaseFile:
    """All tests of one pipeline in one file."""

    file: str
    plan: Plan
    cases: tuple[Case, ...]
