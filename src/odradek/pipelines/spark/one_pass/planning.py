"""Optimizes a query's plan once, before the query starts.

Spark optimizes the plan of a stream for each batch, which takes as long as a small batch itself. The plan of a flow
from a topic to topics is the same for every batch: the optimized plan is put into the frame once, and the query
excludes the optimizer rules that have been applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from odradek.pipelines.spark.sessions.private_names import PLANNING, analysed_plan, or_plainly, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


def optimized(frame: DataFrame) -> DataFrame:
    """The frame with its optimized plan; unchanged if the plan reads the clock, which would become a constant."""
    return or_plainly(PLANNING, lambda: with_optimized_plan(frame), frame)


def with_optimized_plan(frame: DataFrame) -> DataFrame:
    session = frame.sparkSession
    jvm = private(session, "jvm")
    plan = analysed_plan(frame)
    has_words = not private(jvm, "clock words").apply(plan).fastEquals(plan)  # cast('today' as date)
    if has_words or private(plan, "contains")(private(jvm, "clock pattern")()):
        return frame
    better = private(optimizer_of(session), "execute")(plan)
    return DataFrame(private(jvm, "dataset")(private(session, "session"), better), session)


def redundant_rules(session: SparkSession) -> str:
    """The optimizer rules to exclude for an optimized plan, as a Spark setting; includes the user's exclusions."""
    chosen = session.conf.get(EXCLUDED_RULES, "") or ""
    return or_plainly(PLANNING, lambda: excludable_rules(session, chosen), chosen)


def excludable_rules(session: SparkSession, chosen: str) -> str:
    optimizer = optimizer_of(session)
    needed = set(scala_items(private(optimizer, "needed rules")()))
    batches = scala_items(private(optimizer, "batches")())
    names = [rule.ruleName() for batch in batches for rule in scala_items(batch.rules())]
    needless = [name for name in names if name not in needed and name.startswith("org.apache.spark.sql.")]
    return ",".join(dict.fromkeys([*(name for name in chosen.split(",") if name), *needless]))


def optimizer_of(session: SparkSession) -> Any:
    return private(private(private(session, "session"), "state")(), "optimizer")()


def scala_items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
