"""Counts the rows of static steps that do not meet their expectations, once when a stream starts.

Every batch reads these steps, so that each would count the same rows again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.planning.streams import streaming_names
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.expectations import as_expectation_failures
from odradek.pipelines.spark.fan_out import collected, judged_counts, violations_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.computing.counts import BatchReport, Violations

    Report = Callable[[BatchReport], None]


def static_violations(
    session: SparkSession, pipeline: Pipeline, graph: Graph, load: Callable[[Source], DataFrame]
) -> list[Violations]:
    """The violations of all static steps, computed in one job; no job is run if there are no such steps."""
    streaming = streaming_names(pipeline, graph)
    steps = [each for each in pipeline.steps if each.expectations and each.name not in streaming]
    if not steps:
        return []
    tables = Tables(session, pipeline, graph, load)
    with as_expectation_failures():
        return violations_in(collected(judged_counts(tables, steps)), steps)


def with_first(report: Report, violations: list[Violations]) -> Report:
    """Reports batches, with these violations in the first report; called from several threads."""
    pending = [tuple(violations)] if violations else []

    def report_batch(batch: BatchReport) -> None:
        with suppress(IndexError):  # another thread may have taken them
            batch = replace(batch, violations=batch.violations + pending.pop())
        report(batch)

    return report_batch
