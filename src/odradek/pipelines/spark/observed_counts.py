"""Counts that a query observes in its plan, and what they mean in its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.computing.counts import Violations
from odradek.pipelines.spark.hidden_columns import REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Expectation, Step


OBSERVED = "counts"  # begins the names of observed metrics


def unparsed_name(source: str) -> str:
    """The name of an observed count of records that failed to parse."""
    return f"rejected {source}"


def checked_name(step: str) -> str:
    """The name of an observed count of the rows of a step that expectations check."""
    return f"checked {step}"


def written_name(end: str) -> str:
    """The name of an observed count of rows that a sink writes."""
    return f"written to {end}"


@dataclass(frozen=True, slots=True)
class Count:
    """An observed aggregate: records of a source or those that failed to parse, rows of a step that expectations check
    or that do not meet one of them, or rows of a sink."""

    name: str
    aggregate: str
    step: str = ""
    expectation: Expectation | None = None
    sink: str | None = None
    is_of_all: bool = False  # all rows of a step with expectations


def unparsed_counts(source: str) -> tuple[Count, ...]:
    """Of the decoded records of a source."""
    return (Count(unparsed_name(source), f"count({REJECTED})"),)


def unmet_name(step: Step, expectation: Expectation) -> str:
    """The name of an observed count of the rows of a step that do not meet an expectation."""
    return f"{step.name}: {expectation.name}"


def observing(frame: DataFrame, counts: Sequence[Count], name: str = OBSERVED) -> DataFrame:
    """The frame, whose query observes the counts under this name, which no other part of the query may have."""
    if not counts:
        return frame
    first, *others = (F.expr(each.aggregate).alias(each.name) for each in counts)
    return frame.observe(name, first, *others)


def unparsed_rows(counts: Iterable[Count], observed: Mapping[str, int]) -> int:
    """The records that failed to parse."""
    return sum(observed.get(each.name) or 0 for each in counts if not each.step and each.sink is None)


def observed_violations(counts: Sequence[Count], observed: Mapping[str, int]) -> tuple[Violations, ...]:
    checked = {each.step: observed.get(each.name) or 0 for each in counts if each.is_of_all}
    return tuple(
        Violations(
            each.step,
            each.expectation.name,
            each.expectation.otherwise,
            observed.get(each.name) or 0,
            checked[each.step],
        )
        for each in counts
        if each.expectation is not None
    )


def written_rows(counts: Iterable[Count], observed: Mapping[str, int]) -> dict[str, int]:
    """The rows by sink, without tables, whose rows are counted when they are written."""
    return {each.sink: observed.get(each.name) or 0 for each in counts if each.sink is not None}
