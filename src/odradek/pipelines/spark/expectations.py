"""Expectations: each row of a step is checked once; `otherwise` decides what happens to rows that do not meet one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.hidden_columns import ORIGIN, REJECTED, VIOLATED, has_origin, user_expression
from odradek.pipelines.spark.sessions.failures import STOPS, PipelineError, plain_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import Expectation, Step
    from odradek.pipelines.spark.computing.counts import Violations


class ExpectationFailed(PipelineError):
    """Rows do not meet an expectation with `otherwise: fail`."""

    healing = Healing.NEVER


@contextmanager
def as_expectation_failures() -> Iterator[None]:
    """Converts Spark's error for a row that does not meet an expectation before it was counted."""
    try:
        yield
    except PySparkException as error:
        if STOPS in str(error):
            raise ExpectationFailed(plain_message(error)) from error
        raise


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


def kept(frame: DataFrame, step: Step) -> DataFrame:
    """The rows that are passed on; a row that does not meet an expectation with `otherwise: fail` raises an error.

    Every query that reads the step evaluates the check itself, so that none of them commits a batch with such a row.
    """
    for number, each in enumerate(step.expectations):
        if each.otherwise is Otherwise.FAIL:
            is_met = F.col(VIOLATED).bitwiseAND(F.lit(1 << number)) == 0
            stop = F.raise_error(unmet_message(frame, step, each)).isNull()
            # The partition id, which is never negative, makes the condition nondeterministic: otherwise Spark would
            # evaluate conditions of later steps first, and a row that these remove would not stop the pipeline.
            frame = frame.where(F.when(is_met, F.lit(True)).otherwise(stop) | (F.spark_partition_id() < F.lit(0)))
    out = mask(step.expectations, (Otherwise.DROP, Otherwise.QUARANTINE))
    return frame.where(F.col(VIOLATED).bitwiseAND(F.lit(out)) == 0).drop(VIOLATED)


def unmet_message(frame: DataFrame, step: Step, expectation: Expectation) -> Column:
    said = f"step '{step.name}': a row does not meet '{expectation.name}', {STOPS}"
    if not has_origin(frame):
        return F.lit(said)
    topic, partition, offset = (F.col(f"{ORIGIN}.{name}").cast("string") for name in ("topic", "partition", "offset"))
    position = F.concat(F.lit(" (record of "), topic, F.lit("-"), partition, F.lit(" at offset "), offset, F.lit(")"))
    return F.concat(F.lit(said), F.coalesce(position, F.lit("")))


def unmet_reason(expectation: Expectation) -> str:
    """The reason of a dead letter."""
    return f"expectation '{expectation.name}' not met: {expectation.check}"


def quarantined(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """The rows for the dead-letter topic; the reason is the first expectation that a row does not meet."""
    bits = mask(expectations, (Otherwise.QUARANTINE,))
    reason = F.coalesce(
        *(
            F.when(F.col(VIOLATED).bitwiseAND(F.lit(1 << number)) != 0, F.lit(unmet_reason(each)))
            for number, each in enumerate(expectations)
            if each.otherwise is Otherwise.QUARANTINE
        )
    )
    return frame.where(F.col(VIOLATED).bitwiseAND(F.lit(bits)) != 0).withColumn(REJECTED, reason).drop(VIOLATED)


def violation_counts(step: str, expectations: Sequence[Expectation]) -> list[Column]:
    """Aggregates of a judged frame, one for each expectation."""
    return [
        F.count_if(F.col(VIOLATED).bitwiseAND(F.lit(1 << number)) != 0).alias(f"{step}/{number}")
        for number in range(len(expectations))
    ]


def fail_on(violations: Iterable[Violations]) -> None:
    for each in violations:
        if each.otherwise is Otherwise.FAIL and each.rows:
            count = f"{each.rows} rows do" if each.rows > 1 else "a row does"
            raise ExpectationFailed(f"step '{each.step}': {count} not meet '{each.expectation}', {STOPS}")
