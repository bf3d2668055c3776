"""The outputs of a batch: those that recognize a replayed batch first, then those that would repeat it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import LakehouseTarget, TableTarget, TopicTarget
from odradek.pipelines.spark.sinks.batches import write_other_sink, write_tables
from odradek.pipelines.spark.sinks.lakehouse import write_lakehouse
from odradek.pipelines.spark.writing.batches import BatchId
from odradek.pipelines.spark.writing.kafka_records import by_producer, write_to_cluster
from odradek.pipelines.spark.writing.outputs import Output

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.spark.sinks.batches import RowsByName
    from odradek.pipelines.spark.writing.delivery import Transactions
    from odradek.pipelines.spark.writing.kafka_records import Producer
    from odradek.pipelines.spark.writing.warehouse import BatchNumber


def outputs_of(
    pipeline: Pipeline,
    flow: Flow,
    tables: RowsByName,
    records: Iterable[tuple[Producer, DataFrame]],
    batch: BatchNumber | None,
    transactions: Transactions | None,
    rows: Counter[str],
) -> list[Output]:
    """The outputs in the order in which they are written. User code, which is the likeliest to fail, is before topics
    that would repeat their records. The rows of tables and views are added to `rows` when they are written."""
    found: list[Output] = []
    if flow.views or any(isinstance(each.target, TableTarget) for each in flow.sinks):
        is_aggregated = flow.aggregate is not None
        write = functools.partial(
            write_tables, flow.sinks, flow.views, tables, pipeline, batch, rows, is_aggregated=is_aggregated
        )
        found.append(Output("tables", write, is_repeating=batch is None))
    number = 0 if batch is None else BatchId(batch.number, batch.query)
    for sink in flow.sinks:
        if isinstance(sink.target, LakehouseTarget):
            write = functools.partial(write_lakehouse, sink, sink.target, tables, pipeline, batch)
            found.append(Output(f"sink {sink.name}", write, is_repeating=batch is None))
        elif not isinstance(sink.target, TopicTarget | TableTarget):
            write = functools.partial(write_other_sink, sink, tables, pipeline, number)
            found.append(Output(f"sink {sink.name}", write, is_repeating=True))
    for producer, frames in by_producer(records).items():
        write_records = write_to_cluster if transactions is None else transactions.write
        write = functools.partial(write_records, producer, frames)
        found.append(Output(f"topics {producer.name}", write, is_repeating=transactions is None))
    return sorted(found, key=lambda each: each.is_repeating)
