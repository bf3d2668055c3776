"""Counts that a query observes in its plan, and what they mean in its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.expectations import Violations
from odradek.pipelines.spark.hidden_columns import REJECTED, VIOLATED
from odradek.pipelines.spark.records import OBSERVED, checked_name, read_name, unparsed_name, written_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Expectation, Sink, Step

ROWS = "count(1)"


@dataclass(frozen=True, slots=True)
class Count:
    """An observed aggregate: records of a source or those that failed to parse, rows of a step that expectations check
    or that do not meet one of them, or rows of a sink."""

    name: str
    aggregate: str
    step: str = ""
    expectation: Expectation | None = None
    sink: str | None = None
    is_of_all: bool = False  # all records of a source, or all rows of a step with expectations


class Counting(Protocol):
    """A query that observes counts."""

    @property
    def counts(self) -> tuple[Count, ...]: ...


def unparsed_counts(source: str) -> tuple[Count, ...]:
    """Of the decoded records of a source."""
    return (Count(unparsed_name(source), f"count({REJECTED})"),)


def record_counts(source: str) -> tuple[Count, ...]:
    """Of the decoded records of a source, all of them included."""
    return (Count(read_name(source), ROWS, is_of_all=True), *unparsed_counts(source))


def expectation_counts(step: Step) -> tuple[Count, ...]:
    """Of the judged rows of a step."""
    unmet = [
        Count(unmet_name(step, each), f"count_if(({VIOLATED} & {1 << number}L) != 0)", step.name, each)
        for number, each in enumerate(step.expectations)
    ]
    return (Count(checked_name(step.name), ROWS, step.name, is_of_all=True), *unmet)


def written_counts(sink: Sink) -> tuple[Count, ...]:
    """Of the rows of a sink."""
    return (Count(written_name(sink.name), ROWS, sink=sink.name),)


def unmet_name(step: Step, expectation: Expectation) -> str:
    """The name of an observed count of the rows of a step that do not meet an expectation."""
    return f"{step.name}: {expectation.name}"


def observing(frame: DataFrame, counts: Sequence[Count], name: str = OBSERVED) -> DataFrame:
    """The frame, whose query observes the counts under this name, which no other part of the query may have."""
    if not counts:
        return frame
    first, *others = (F.expr(each.aggregate).alias(each.name) for each in counts)
    return frame.observe(name, first, *others)


def read_rows(counts: Iterable[Count], observed: Mapping[str, int]) -> int | None:
    """The records of all sources; None if the query does not count them."""
    names = [each.name for each in counts if is_of_source(each) and each.is_of_all]
    return sum(observed.get(name) or 0 for name in names) if names else None


def unparsed_rows(counts: Iterable[Count], observed: Mapping[str, int]) -> int:
    """The records that failed to parse."""
    return sum(observed.get(each.name) or 0 for each in counts if is_of_source(each) and not each.is_of_all)


def is_of_source(count: Count) -> bool:
    return not count.step and count.sink is None


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
