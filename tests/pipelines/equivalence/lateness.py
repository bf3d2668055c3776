"""Which rows are late, by the rule that docs/pipelines.md states, computed from the records of a case alone.

The rows of a batch are compared with the watermark that the batch before it started with: the greatest event time of
the batches before that one, minus the delay; of several sources the smallest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.pipelines.equivalence.cases import Case, Select

if TYPE_CHECKING:
    from tests.pipelines.equivalence.cases import Source

MINUTE_MS = 60_000


def late_marks(case: Case) -> list[int | None]:
    """The watermark in milliseconds by which rows of each batch are late; None if no row is."""
    return [watermark_after(case, number - 1) for number in range(len(case.batches))]


def watermark_after(case: Case, count: int) -> int | None:
    """The watermark of a query of all sources after `count` batches."""
    if count < 1:
        return None
    marks: list[int] = []
    for source in case.sources:
        times = [
            round(dict(each.values)["at"].timestamp() * 1000)  # type: ignore[attr-defined]  # a datetime
            for batch in case.batches[:count]
            for each in batch[source.name]
            if each.rejected is None
        ]
        if not times:
            return None
        marks.append(max(times) - delay_of(case, source) * MINUTE_MS)
    return min(marks)


def delay_of(case: Case, source: Source) -> int:
    """The delay of a source, which may be declared by the first step behind it."""
    delays = [source.delay_minutes] + [
        each.delay_minutes
        for each in case.steps
        if isinstance(each.operation, Select) and each.operation.input == source.name
    ]
    return next(each for each in delays if each is not None)


def period_end_ms(time_ms: int, within_minutes: int, *, is_shifted: bool) -> int:
    """The end of the period of `deduplicate.within` that a row belongs to."""
    size_ms = 2 * within_minutes * MINUTE_MS
    shift_ms = within_minutes * MINUTE_MS if is_shifted else 0
    return (time_ms + shift_ms) // size_ms * size_ms + size_ms - shift_ms
