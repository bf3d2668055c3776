"""Processes one batch of a pass with several kinds of outputs: computes it once and writes it to each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.spark.flow_writes import writes_of
from odradek.pipelines.spark.sinks.outputs import outputs_of
from odradek.pipelines.spark.writing.delivery import transactions_of
from odradek.pipelines.spark.writing.outputs import WrittenOutputs, write_outputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.spark.one_pass.passing import Pass
    from odradek.pipelines.spark.writing.warehouse import BatchNumber


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch, by step."""

    made: Pass
    batch: DataFrame

    def rows(self, name: str) -> DataFrame:
        return self.made.rows(self.batch, name)


def write_batch(pipeline: Pipeline, flow: Flow, made: Pass, batch: DataFrame, stamp: BatchNumber) -> Counter[str]:
    """Returns the rows of tables and views, by name."""
    is_kept = made.can_fail or len(made.records) + len(flow.sinks) + len(flow.views) > 1
    frame = batch.persist() if is_kept else batch
    try:
        if made.can_fail or not (made.records or made.tables):
            frame.count()  # an expectation with otherwise: fail raises here, before anything is written
        tables = BatchRows(made, frame)
        transactions = transactions_of(pipeline, writes_of(pipeline, flow), stamp)
        rows: Counter[str] = Counter()
        outputs = outputs_of(pipeline, flow, tables, made.records_in(frame), stamp, transactions, rows)
        write_outputs(outputs, stamp, WrittenOutputs.of_flow(batch.sparkSession, pipeline, flow.name))
    finally:
        if is_kept:
            frame.unpersist()
    return rows
