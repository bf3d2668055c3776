"""Writes all outputs of a batch: those that recognize a replayed batch first, then those that would repeat it.

If an output fails, the names of the repeating outputs that are written are stored, and a retry of the batch skips them.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.model import LakehouseTarget, TableTarget, TopicTarget
from odradek.pipelines.operating.checkpoints import checkpoint_of
from odradek.pipelines.operating.small_files import LocalFiles
from odradek.pipelines.spark.sessions.hadoop_files import HadoopFiles
from odradek.pipelines.spark.writing.batches import BatchId, write_rows, write_tables
from odradek.pipelines.spark.writing.kafka_records import by_producer, write_to_cluster
from odradek.pipelines.spark.writing.lakehouse import write_lakehouse

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.small_files import SmallFiles
    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.computing.batch_rows import RowsByName
    from odradek.pipelines.spark.writing.delivery import Transactions
    from odradek.pipelines.spark.writing.kafka_records import Producer
    from odradek.pipelines.spark.writing.warehouse import BatchNumber

FILE = "outputs.json"  # in the folder of the flow's checkpoint, with which it is removed


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a batch, written by one call."""

    name: str  # the same in a retry
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


def write_outputs(outputs: Sequence[Output], stamp: BatchNumber | None, stored: WrittenOutputs | None) -> None:
    """Writes the outputs in their order, except those that an earlier attempt at this batch has written."""
    written = set() if stored is None or stamp is None else set(stored.of(stamp))
    is_retry = bool(written)
    try:
        for each in outputs:
            if each.name not in written:
                each.write()
                if each.is_repeating:
                    written.add(each.name)
    except BaseException:
        if stored is not None and stamp is not None:
            stored.store(stamp, written)
        raise
    if is_retry and stored is not None:
        stored.clear()


class WrittenOutputs:
    """The outputs of a failed batch that were written before the failure: a file that exists only after a failure."""

    def __init__(self, files: SmallFiles) -> None:
        self._files = files

    @classmethod
    def of_flow(cls, session: SparkSession, pipeline: Pipeline, flow: str) -> WrittenOutputs:
        folder = checkpoint_of(pipeline, flow)
        return cls(HadoopFiles(session, folder) if "://" in folder else LocalFiles(Path(folder)))

    def of(self, stamp: BatchNumber) -> frozenset[str]:
        """The names of the outputs of this batch that are written."""
        found = self._read()
        is_same = (found.get("query"), found.get("batch")) == (stamp.query, stamp.number)
        return frozenset(found["outputs"]) if is_same else frozenset()

    def store(self, stamp: BatchNumber, outputs: Collection[str]) -> None:
        if outputs:
            found = {"query": stamp.query, "batch": stamp.number, "outputs": sorted(outputs)}
            self._files.replace(FILE, json.dumps(found))

    def clear(self) -> None:
        self._files.remove(FILE)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._files.read(FILE) or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
