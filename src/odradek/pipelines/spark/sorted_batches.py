"""Streaming queries that sort the rows of each batch, which `deduplicate` and keyed state may do (`row_order`).

Spark refuses to sort and to number the rows of a stream, because the result depends on the batches; that of a
deduplication does not. So its query is checked by Spark without the sort, and started without the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Deduplication, KeyedState
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.spark.engines.settings import SHUFFLE_PARTITIONS, UNCHECKED, query_settings
from odradek.pipelines.spark.sessions.private_names import OPERATORS, analysed_plan, or_plainly, private
from odradek.pipelines.spark.stateful_plans import sorts_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline


SORTING = "spark.odradek.sorting"  # a setting of a session: whether queries that are compiled may sort their batches


def may_sort(session: SparkSession) -> bool:
    return session.conf.get(SORTING, "true") == "true"


def has_several_partitions(session: SparkSession) -> bool:
    """Whether an exchange may divide the rows of a key, so that they lose their order."""
    return int(session.conf.get(SHUFFLE_PARTITIONS) or "1") > 1


def sorting_settings(
    session: SparkSession,
    pipeline: Pipeline,
    names: Collection[str],
    mode: SinkMode,
    frame: DataFrame,
    build: Callable[[], DataFrame],
) -> Mapping[str, str]:
    """Settings for a query of the steps with these names; raises if Spark does not support it. `build` compiles its
    frame again.

    They turn off Spark's check if the query sorts its batches."""
    operations = [each.operation for each in pipeline.steps if each.name in names]
    if not any(isinstance(each, Deduplication | KeyedState) for each in operations) or not sorts_rows(frame):
        return {}
    with query_settings(session, {SORTING: "false"}):
        unsorted = build()
    or_plainly(OPERATORS, lambda: check_operators(unsorted, mode), None)
    return UNCHECKED


def check_operators(frame: DataFrame, mode: SinkMode) -> None:
    """Raises Spark's AnalysisException if a streaming query of the frame would be refused."""
    jvm = private(frame.sparkSession, "jvm")
    modes = private(jvm, "output modes")
    written = modes.Append() if mode is SinkMode.APPEND else modes.Update()
    private(jvm, "operator check")(analysed_plan(frame), written)
