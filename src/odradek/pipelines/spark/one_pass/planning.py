"""Optimizes a query's plan once, before the query starts.

Spark optimizes the plan of a stream for each batch, which takes as long as a small batch itself. The plan of a flow
from a topic to topics is the same for every batch: the optimized plan is put into the frame once, and the query
excludes the optimizer rules that have been applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import SparkSession

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


def optimized(frame: DataFrame) -> DataFrame:
    """The frame with its optimized plan; unchanged if the plan reads the clock, which would become a constant."""
    session = frame.sparkSession
    jvm = cast("JVMView", session._jvm)  # noqa: SLF001 - PySpark has no public API for it
    plan = java_frame(frame).queryExecution().analyzed()
    catalyst = jvm.org.apache.spark.sql.catalyst
    has_words = not catalyst.optimizer.SpecialDatetimeValues.apply(plan).fastEquals(plan)  # cast('today' as date)
    if has_words or plan.containsPattern(catalyst.trees.TreePattern.CURRENT_LIKE()):
        return frame
    better = optimizer_of(session).execute(plan)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, better), session)  # noqa: SLF001 - as above


def redundant_rules(session: SparkSession) -> str:
    """The optimizer rules to exclude for an optimized plan, as a Spark setting; includes the user's exclusions."""
    optimizer = optimizer_of(session)
    needed = set(scala_items(optimizer.nonExcludableRules()))
    names = [rule.ruleName() for batch in scala_items(optimizer.batches()) for rule in scala_items(batch.rules())]
    chosen = [name for name in (session.conf.get(EXCLUDED_RULES, "") or "").split(",") if name]
    needless = [name for name in names if name not in needed and name.startswith("org.apache.spark.sql.")]
    return ",".join(dict.fromkeys([*chosen, *needless]))


def optimizer_of(session: SparkSession) -> JavaObject:
    return session._jsparkSession.sessionState().optimizer()  # noqa: SLF001 - as above


def java_frame(frame: DataFrame) -> JavaObject:
    return frame._jdf  # noqa: SLF001 - as above


def scala_items(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(index) for index in range(sequence.size())]
