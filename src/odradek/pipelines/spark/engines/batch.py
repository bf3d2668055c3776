"""The batch engine: computes a plan once, over all existing records or over a range of offsets or times."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from odradek.pipelines.planning.splitting import whole_flow
from odradek.pipelines.spark.computing.fan_out import FanOut
from odradek.pipelines.spark.engines.standard import writing
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.writing.run_takeover import run_of, take_over, writes_of
from odradek.pipelines.spark.writing.warehouse import BatchNumber

if TYPE_CHECKING:
    from collections import Counter

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.computing.row_program import Records
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.reading.sources import Range
    from odradek.pipelines.spark.writing.topics import Cluster


def run_batch(session: SparkSession, plan: Plan, cluster: Cluster, span: Range | None = None) -> BatchReport:
    """Reads, computes and writes everything; each run counts as one batch with its own checkpoint id."""
    pipeline, flow = plan.pipeline, whole_flow(plan)

    def load(session: SparkSession, source: Source) -> DataFrame:
        is_ranged = source.is_stream or not plan.streams  # a static topic is read whole, as in every batch of a stream
        return read_once(session, source, pipeline, cluster.partitions_of, span if is_ranged else None)

    def write(tables: RowsByName, records: Records, rows: Counter[str]) -> None:
        cluster.create_awaited()  # the queries are analysed
        epoch = take_over(pipeline, [writes_of(plan, flow)], cluster.id)
        stamp = BatchNumber(str(uuid.uuid4()), 0, epoch, run_of(pipeline, flow.name, cluster.id))
        writing(plan, flow, stamp)(tables, records, rows)

    return FanOut(plan, flow, load).whole(session, write)
