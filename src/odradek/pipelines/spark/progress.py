"""The report of a finished batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.spark.expectations import Violations


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A finished batch."""

    flow: str
    number: int
    rows: int | None  # None: not counted
    rejected: int
    violations: tuple[Violations, ...]
    seconds: float
    written: Mapping[str, int] = field(default_factory=dict)  # rows by sink or view; those without a count are missing

    def __str__(self) -> str:
        parts = [f"{self.flow} batch {self.number}"]
        if self.rows is not None:
            parts.append("1 row" if self.rows == 1 else f"{self.rows} rows")
        if self.rejected:
            parts.append(f"{self.rejected} not parsed")
        parts += [f"{each.rows} × {each.expectation} ({each.otherwise})" for each in self.violations if each.rows]
        return f"{parts[0]}: {', '.join([*parts[1:], f'{self.seconds * 1000:.0f} ms'])}"
