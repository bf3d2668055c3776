"""The outputs of a batch: those that recognize a replayed batch first, then those that would repeat it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import LakehouseTarget, TableTarget, TopicTarget
from odradek.pipelines.spark.writing.batches import BatchId, write_rows, write_tables
from odradek.pipelines.spark.writing.kafka_records import by_producer, write_to_cluster
from odradek.pipelines.spark.writing.lakehouse import write_lakehouse

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.writing.delivery import Transactions
    from odradek.pipelines.spark.writing.kafka_records import Producer
    from odradek.pipelines.spark.writing.warehouse import BatchNumber


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a batch, written by one call."""

    name: str
    write: Callable[[], None]
    is_repeating: bool  # a replayed batch would be written again


def outputs_of(
    plan: Plan,
    flow: Flow,
    tables: RowsByName,
    records: Iterable[tuple[Producer, DataFrame]],
    stamp: BatchNumber | None,
    transactions: Transactions | None,
    written: Counter[str],
) -> list[Output]:
    """The outputs in the order in which they are written. User code, which is the likeliest to fail, is before topics
    that would repeat their records. The rows of tables are added to `written`, by end, when they are written."""
    found: list[Output] = []
    if any(isinstance(each.target, TableTarget) for each in flow.ends):
        write = functools.partial(write_tables, plan, flow, tables, stamp, written)
        found.append(Output("tables", write, is_repeating=stamp is None))
    number = 0 if stamp is None else BatchId(stamp.number, stamp.query)
    for end in flow.ends:
        if isinstance(end.target, LakehouseTarget):
            write = functools.partial(write_lakehouse, plan, flow, end, end.target, tables, stamp)
            found.append(Output(f"sink {end.name}", write, is_repeating=stamp is None))
        elif not isinstance(end.target, TopicTarget | TableTarget):
            write = functools.partial(write_rows, plan.pipeline, end, tables, number)
            found.append(Output(f"sink {end.name}", write, is_repeating=True))
    for producer, frames in by_producer(records).items():
        write_records = write_to_cluster if transactions is None else transactions.write
        write = functools.partial(write_records, producer, frames)
        found.append(Output(f"topics {producer.name}", write, is_repeating=transactions is None))
    return sorted(found, key=lambda each: each.is_repeating)
