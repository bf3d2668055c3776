"""Expectations: each row of a step is checked once; `otherwise` decides what happens to rows that do not meet one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.hidden_columns import REJECTED, VIOLATED, user_expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import Expectation


class ExpectationFailed(PipelineError):
    """Rows do not meet an expectation with `otherwise: fail`."""


@dataclass(frozen=True, slots=True)
class Violations:
    """The number of rows of a step that did not meet an expectation."""

    step: str
    expectation: str
    otherwise: Otherwise
    rows: int


def judged(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Adds a bit set of the expectations that each row does not meet; a check that is null is not met."""
    bits = [
        F.when(F.coalesce(user_expression(frame, each.check), F.lit(False)), F.lit(0)).otherwise(F.lit(1 << number))
        for number, each in enumerate(expectations)
    ]
    total: Column = F.lit(0).cast("bigint")
    for bit in bits:
        total += bit.cast("bigint")
    return frame.withColumn(VIOLATED, total)


def mask(expectations: Sequence[Expectation], kinds: Iterable[Otherwise]) -> int:
    chosen = set(kinds)
    return sum(1 << number for number, each in enumerate(expectations) if each.otherwise in chosen)


def kept(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """The rows that are passed on."""
    out = mask(expectations, (Otherwise.DROP, Otherwise.QUARANTINE, Otherwise.FAIL))
    return frame.where(F.col(VIOLATED).bitwiseAND(F.lit(out)) == 0).drop(VIOLATED)


def quarantined(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """The rows for the dead-letter topic; the reason is the first expectation that a row does not meet."""
    bits = mask(expectations, (Otherwise.QUARANTINE,))
    reason = F.coalesce(
        *(
            F.when(
                F.col(VIOLATED).bitwiseAND(F.lit(1 << number)) != 0, F.lit(f"{each.name}: not true that {each.check}")
            )
            for number, each in enumerate(expectations)
            if each.otherwise is Otherwise.QUARANTINE
        )
    )
    return frame.where(F.col(VIOLATED).bitwiseAND(F.lit(bits)) != 0).withColumn(REJECTED, reason).drop(VIOLATED)


def has_quarantine(expectations: Sequence[Expectation]) -> bool:
    return bool(mask(expectations, (Otherwise.QUARANTINE,)))


def violation_counts(step: str, expectations: Sequence[Expectation]) -> list[Column]:
    """Aggregates of a judged frame, one for each expectation."""
    return [
        F.count_if(F.col(VIOLATED).bitwiseAND(F.lit(1 << number)) != 0).alias(f"{step}/{number}")
        for number in range(len(expectations))
    ]


def fail_on(violations: Iterable[Violations]) -> None:
    for each in violations:
        if each.otherwise is Otherwise.FAIL and each.rows:
            raise ExpectationFailed(
                f"step '{each.step}': {each.rows} rows do not meet '{each.expectation}', which stops the pipeline"
            )
