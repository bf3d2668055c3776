"""Optimizes the plan of a row program once, before its query starts.

Spark optimizes the plan of a stream for each batch, which takes as long as a small batch itself. The plan of a row
program is the same for every batch: the optimized plan is put into the frame once, and the query excludes the rules of
the optimizer that have been applied. A private name that has changed costs time and no results: Spark then optimizes
the plan of every batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from odradek.pipelines.spark.sessions.private_names import PLANNING, analysed_plan, items, or_plainly, private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


def optimized(frame: DataFrame) -> DataFrame:
    """The frame with its optimized plan; unchanged if the plan reads the clock, which would become a constant."""
    return or_plainly(PLANNING, lambda: _with_optimized_plan(frame), frame)


def _with_optimized_plan(frame: DataFrame) -> DataFrame:
    session, plan = frame.sparkSession, analysed_plan(frame)
    jvm = private(session, "jvm")
    has_clock_words = not private(jvm, "clock words").apply(plan).fastEquals(plan)  # cast('today' as date)
    if has_clock_words or private(plan, "contains")(private(jvm, "clock pattern")()):
        return frame
    better = private(_optimizer_of(session), "execute")(plan)
    return DataFrame(private(jvm, "dataset")(private(session, "session"), better), session)


def redundant_rules(session: SparkSession) -> str:
    """The rules to exclude for an optimized plan, as a Spark setting; includes the user's exclusions."""
    chosen = session.conf.get(EXCLUDED_RULES, "") or ""
    return or_plainly(PLANNING, lambda: _excludable_rules(session, chosen), chosen)


def _excludable_rules(session: SparkSession, chosen: str) -> str:
    optimizer = _optimizer_of(session)
    needed = set(items(private(optimizer, "needed rules")()))
    names = [rule.ruleName() for batch in items(private(optimizer, "batches")()) for rule in items(batch.rules())]
    needless = [name for name in names if name not in needed and name.startswith("org.apache.spark.sql.")]
    return ",".join(dict.fromkeys([*filter(None, chosen.split(",")), *needless]))


def _optimizer_of(session: SparkSession) -> Any:
    return private(private(private(session, "session"), "state")(), "optimizer")()
