"""Processes one batch of a flow: reads it once, caches it, counts, and writes to all sinks."""

from __future__ import annotations

import functools
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import TableTarget
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning import failing_steps
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.computing.counts import BatchReport, Violations
from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.expectations import (
    fail_on,
    quarantined,
    violation_counts,
)
from odradek.pipelines.spark.flow_writes import writes_of
from odradek.pipelines.spark.hidden_columns import REJECTED
from odradek.pipelines.spark.observed_counts import written_name
from odradek.pipelines.spark.reading.records import decoded, rejects_of
from odradek.pipelines.spark.reading.sources import is_topic
from odradek.pipelines.spark.reading.table_copies import BatchSources
from odradek.pipelines.spark.sinks.batches import topic_frames
from odradek.pipelines.spark.sinks.outputs import outputs_of
from odradek.pipelines.spark.writing.delivery import transactions_of
from odradek.pipelines.spark.writing.kafka_records import producer_of
from odradek.pipelines.spark.writing.outputs import WrittenOutputs, write_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source, Step
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.spark.writing.kafka_records import Producer
    from odradek.pipelines.spark.writing.warehouse import BatchNumber

    Kept = DataFrame | BatchSources  # unpersisted when the batch ends

MOST_PARTITIONS = 1 << 20


@dataclass(frozen=True, slots=True)
class Counts:
    rows: int | None
    rejected: Mapping[str, int]  # by source
    violations: tuple[Violations, ...]
    written: Mapping[str, int]  # rows by sink, without tables


class FanOut:
    """Processes the batches of a flow; `load` reads static sources, with the batch's session."""

    def __init__(
        self,
        pipeline: Pipeline,
        graph: Graph,
        flow: Flow,
        load: Callable[[DataFrame, Source], DataFrame],
        before_writing: Callable[[], None] = lambda: None,  # called once the queries of a batch are analysed
    ) -> None:
        self.pipeline = pipeline
        self.graph = graph
        self.flow = flow
        self._load = load
        self._before_writing = before_writing
        self._sources = {each.name: each for each in pipeline.sources}
        self._steps = {each.name: each for each in pipeline.steps}
        owned = [self._steps[name] for name in graph.order if name in flow.owned and name in self._steps]
        self._judged: list[Step] = [step for step in owned if step.expectations]
        self._is_checked_before = bool(failing_steps.in_query(pipeline, graph, flow))
        failing = failing_steps.in_batch(pipeline, graph, flow)
        self._checked = [each for each in failing if each not in self._judged]  # owned by other flows
        topics = [each.name for each in pipeline.sources if is_topic(each)]
        self._is_decoder = flow.root in topics and flow.aggregate is None
        self._parsing = [name for name in topics if name in flow.owned]
        # Rows of tables are counted when they are written. A run over all rows would compute the others twice.
        self._counted = {each.name: each.input for each in flow.sinks if not isinstance(each.target, TableTarget)}

    def __call__(self, batch: DataFrame, number: int, stamp: BatchNumber | None) -> BatchReport:
        """Processes a batch of the root's rows."""
        flow = self.flow
        frame = decoded(batch, self._sources[flow.root]) if self._is_decoder else batch
        static = BatchSources(batch.sparkSession, self.pipeline.directory, functools.partial(self._load, batch))
        kept: list[Kept] = [static]

        def load(source: Source) -> DataFrame:
            return batch if source.name == flow.root else static.read(source)

        tables = Tables(batch.sparkSession, self.pipeline, self.graph, load, flow.mode)
        if self._uses() > 1:
            frame = frame.persist()
            kept.append(frame)
        if self._is_decoder:
            tables.give_decoded(flow.root, frame)
        elif flow.aggregate is not None:
            tables.give_rows(flow.root, frame)
        elif flow.root in self._steps:
            tables.give_rows_before_expectations(flow.root, frame)
        root = frame if self._is_checked_before else None
        written = WrittenOutputs.of_flow(batch.sparkSession, self.pipeline, flow.name)
        return self._write(tables, number, stamp, kept, root, written)

    def whole(self, session: SparkSession, load: Callable[[Source], DataFrame], stamp: BatchNumber) -> BatchReport:
        """Processes all rows as one batch."""
        static = BatchSources(session, self.pipeline.directory, load)
        kept: list[Kept] = [static]

        def read(source: Source) -> DataFrame:
            return load(source) if is_topic(source) else static.read(source)

        tables = Tables(session, self.pipeline, self.graph, read, self.flow.mode)
        for name in self._parsing:
            frame = tables.decoded(name).persist()
            kept.append(frame)
            tables.give_decoded(name, frame)
        return self._write(tables, 0, stamp, kept)

    def _write(
        self, tables: Tables, number: int, stamp: BatchNumber | None, kept: Sequence[Kept],
        checked: DataFrame | None = None, written: WrittenOutputs | None = None,
    ) -> BatchReport:  # fmt: skip
        """Counts, and writes all outputs. `checked` is counted first because its plan raises for a row that fails."""
        began_at = time.perf_counter()
        flow, pipeline = self.flow, self.pipeline
        try:
            if checked is not None:
                checked.count()
            counts = self._count(tables, is_whole=written is None)
            records = [*topic_frames(flow.sinks, tables, pipeline), *self._dead_letters(tables, counts)]
            self._before_writing()
            transactions = transactions_of(pipeline, writes_of(pipeline, flow), stamp)
            rows = Counter(counts.written)
            write_outputs(outputs_of(pipeline, flow, tables, records, stamp, transactions, rows), stamp, written)
        finally:
            for each in kept:
                each.unpersist()
        seconds = time.perf_counter() - began_at
        rejected = sum(counts.rejected.values())
        return BatchReport(flow.name, number, counts.rows, rejected, counts.violations, seconds, dict(rows))

    def _uses(self) -> int:
        ends = len(self.flow.sinks) + len(self.flow.views)
        counted = len(set(self._counted.values()))
        return ends + counted + len(self._judged) + len(self._checked) + len(self._parsing) + self._is_checked_before

    def _count(self, tables: Tables, *, is_whole: bool) -> Counts:
        """Computes all counts in one job, which also caches the batch; raises if an expectation stops the pipeline.

        The rows of sinks are then counted after that: to read them raises an error of Spark, which says less."""
        parts: list[DataFrame] = []
        for name in self._parsing:
            numbers = F.array(F.count(F.lit(1)), F.count(F.col(REJECTED)))
            parts.append(counted(tables.decoded(name), name, numbers))
        judged = [*self._judged, *self._checked]
        parts += judged_counts(tables, judged)
        sinks = {} if is_whole else self._counted
        every = F.array(F.count(F.lit(1)))
        rows = [counted(tables.rows(each), written_name(each), every) for each in dict.fromkeys(sinks.values())]
        can_fail = any(each.otherwise is Otherwise.FAIL for step in judged for each in step.expectations)
        found = collected(parts if can_fail else [*parts, *rows])
        violations = violations_in(found, judged)
        fail_on(violations)
        found |= collected(rows) if can_fail else {}
        owned = {step.name for step in self._judged}
        return Counts(
            sum(found[name][0] for name in self._parsing) if self._parsing else None,
            {name: found[name][1] for name in self._parsing},
            tuple(each for each in violations if each.step in owned),
            {sink: found[written_name(name)][0] for sink, name in sinks.items()},
        )

    def _dead_letters(self, tables: Tables, counts: Counts) -> list[tuple[Producer, DataFrame]]:
        """The dead letters of sources and steps with rejected rows; no job is run for those without."""
        topic, name = self.pipeline.dead_letters, self.pipeline.name
        if topic is None:
            return []
        refusing = {each.step for each in counts.violations if each.rows and each.otherwise is Otherwise.QUARANTINE}
        frames = []
        for source, rows in counts.rejected.items():
            if rows:
                frames.append(dead_letters(rejects_of(tables.decoded(source)), name, source, topic))
        for step in self._judged:
            if step.name in refusing:
                refused = quarantined(tables.judged(step.name), step.expectations)
                frames.append(dead_letters(refused, name, step.name, topic))
        return [(producer_of(self.pipeline), frame) for frame in frames]


def without_partitioning(frame: DataFrame) -> DataFrame:
    """The same stream and partitions, of which Spark does not know by which columns they are hashed.

    A plan that reads a batch twice, such as a union of two topics, has two instances of the batch. Spark compares a
    batch with the cached one by its columns and its hashing, whose columns differ between instances. The second
    instance would compute the state of the batch again, and count its late rows and state rows twice.
    """
    return frame.coalesce(MOST_PARTITIONS)


def judged_counts(tables: Tables, steps: Iterable[Step]) -> list[DataFrame]:
    """For each step, the rows that do not meet each expectation, and all of its rows."""
    return [
        counted(
            tables.judged(step.name), step.name,
            F.array(*violation_counts(step.name, step.expectations), F.count(F.lit(1))),
        )
        for step in steps
    ]  # fmt: skip


def violations_in(found: Mapping[str, Sequence[int]], steps: Iterable[Step]) -> list[Violations]:
    """The violations in the counts of `judged_counts`."""
    return [
        Violations(step.name, each.name, each.otherwise, found[step.name][number], found[step.name][-1])
        for step in steps
        for number, each in enumerate(step.expectations)
    ]


def collected(parts: Sequence[DataFrame]) -> dict[str, list[int]]:
    """The counts by name, computed in one job."""
    if not parts:
        return {}
    return {row["name"]: row["counts"] for row in functools.reduce(DataFrame.unionAll, parts).collect()}


def counted(frame: DataFrame, name: str, numbers: Column) -> DataFrame:
    return frame.agg(numbers.alias("counts")).select(F.lit(name).alias("name"), "counts")
