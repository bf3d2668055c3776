"""What a file of tests says: cases of given rows and expected rows, as frozen values that know where they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place


class Outlet(StrEnum):
    """Where rows of a pipeline can be looked at."""

    SINK = "sink"
    VIEW = "view"
    STEP = "step"
    DEAD_LETTERS = "dead letters"


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A plain value, as `json.loads` would give it, and where it is written."""

    value: Any
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """What an outlet should give. Without `rows` only their count is of interest."""

    outlet: Outlet
    name: str
    place: Place
    rows: tuple[PlacedValue, ...] | None = None
    count: int | None = None
    may_have_more: bool = False
    in_order: bool = False
    all_columns: bool = False  # a row has no other columns than the expected ones

    @property
    def label(self) -> str:
        return f"{self.outlet} '{self.name}'" if self.name else str(self.outlet)


@dataclass(frozen=True, slots=True)
class ExpectedCount:
    """How many rows of a step do not meet an expectation."""

    step: str
    expectation: str
    count: int
    place: Place

    @property
    def label(self) -> str:
        return f"step '{self.step}', expectation '{self.expectation}'"


@dataclass(frozen=True, slots=True)
class Case:
    """One test."""

    name: str
    place: Place
    given: Mapping[str, tuple[PlacedValue, ...]] = field(default_factory=dict)  # by source, or by step in its stead
    rows: tuple[ExpectedRows, ...] = ()
    counts: tuple[ExpectedCount, ...] = ()
    error: PlacedValue | None = None  # a part of the message with which the pipeline stops


@dataclass(frozen=True, slots=True)
class CaseFile:
    """All tests of one pipeline in one file."""

    file: str
    pipeline: Pipeline
    cases: tuple[Case, ...]
