"""Processes one batch of a flow as frames: reads it once, caches it, counts, and writes to all ends."""

from __future__ import annotations

import functools
import time
from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, TableTarget, TopicOrigin, TopicTarget
from odradek.pipelines.definition.vocabulary import Delivery, Otherwise
from odradek.pipelines.spark.computing.counts import BatchReport, Count, Kind, total, violations, written
from odradek.pipelines.spark.computing.encoding import records_of_column, together
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.reading.records import decoded
from odradek.pipelines.spark.reading.table_copies import BatchSources
from odradek.pipelines.spark.sessions.failures import STOPS, PipelineError
from odradek.pipelines.spark.writing.delivery import origin_split
from odradek.pipelines.spark.writing.kafka_records import producer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from odradek.pipelines.planning.plan import Check, Flow, Plan
    from odradek.pipelines.spark.computing.counts import Violations
    from odradek.pipelines.spark.computing.row_checks import Made
    from odradek.pipelines.spark.computing.row_program import Records, Write
    from odradek.pipelines.spark.writing.kafka_records import Producer

    Counted = tuple[DataFrame, Sequence[Count]]


MOST_PARTITIONS = 1 << 20


class FanOut:
    """Processes the batches of a flow, or all rows; `load` reads the sources that are not given, with a session."""

    def __init__(self, plan: Plan, flow: Flow, load: Callable[[SparkSession, Source], DataFrame]) -> None:
        self._plan, self._flow, self._load = plan, flow, load
        self._steps = {each.name: each.owner.name for each in plan.tables.values()}
        in_batch = [each for each in plan.tables.values() if each.name in {flow.root, *flow.after}]
        self._owned = [each.name for each in plan.tables.values() if each.name in flow.owned]
        stopping = {each.name for each in plan.tables.values() if _stops(each.checks)}
        self._counted = [*self._owned, *(each.name for each in in_batch if each.name in stopping - flow.owned)]
        self._is_checked_before = not stopping.isdisjoint(plan.upstream(flow.root)[:-1])
        root = plan.tables.get(flow.root.lower())  # a run over all rows has none
        source = None if root is None else root.made_by
        self._topic = source if isinstance(source, Source) and isinstance(source.origin, TopicOrigin) else None

    def __call__(self, batch: DataFrame, number: int, write: Write) -> BatchReport:
        """Processes a batch of the root's rows."""
        session, root = batch.sparkSession, self._flow.root
        static = self._static(session)
        frame = (batch if self._topic is None else decoded(batch, self._topic)).persist()
        tables = Tables(session, self._plan, static.read, self._flow.mode)
        give = tables.give_before_checks if self._topic is None else tables.give_decoded
        give(root, frame)
        try:
            if self._is_checked_before:
                frame.count()  # its plan raises for a row that must not be there
            return self._process(tables, number, write, is_whole=False)
        finally:
            frame.unpersist()
            static.unpersist()

    def whole(self, session: SparkSession, write: Write) -> BatchReport:
        """Processes all rows as one batch."""
        static = self._static(session)
        frames: list[DataFrame] = []

        def read(source: Source) -> DataFrame:
            return self._load(session, source) if isinstance(source.origin, TopicOrigin) else static.read(source)

        tables = Tables(session, self._plan, read, self._flow.mode)
        for name in self._owned:
            source = self._plan.table(name).made_by
            if isinstance(source, Source) and isinstance(source.origin, TopicOrigin):
                frames.append(tables.decoded(name).persist())
                tables.give_decoded(name, frames[-1])
        try:
            return self._process(tables, 0, write, is_whole=True)
        finally:
            for each in frames:
                each.unpersist()
            static.unpersist()

    def _static(self, session: SparkSession) -> BatchSources:
        return BatchSources(session, lambda source: self._load(session, source))

    def _process(self, tables: Tables, number: int, write: Write, *, is_whole: bool) -> BatchReport:
        """Counts, and writes all outputs. Rows of tables are counted when they are written; a run over all rows would
        compute those of the other ends twice, unless they are counted anyway because some may be refused."""
        began_at, names = time.perf_counter(), self._steps
        ends = [(each, tables.end(each)) for each in self._flow.ends]
        checked = [made for made in map(tables.checked, self._counted) if made.counts]
        counts = [count for made in checked for count in made.counts]
        observed = collected([(made.frame.frame, made.counts) for made in checked])
        refuse_stopped(violations(counts, observed, names))
        parts: list[Counted] = []
        for end, made in ends:
            own = list(made.counts)
            if not isinstance(end.target, TableTarget) and (own or not is_whole):
                own.append(Count(Kind.WRITTEN, end.name, made.rows.count()))
            parts += [(made.frame.frame, own)] if own else []
        observed |= collected(parts)
        counts += [count for _, own in parts for count in own]
        rows = Counter(written(counts, observed))
        records = [self._records(end.target, made) for end, made in ends if isinstance(end.target, TopicTarget)]
        write(tables, [*records, *self._letters(tables, counts, observed)], rows)
        owned = [each for each in counts if each.of in self._flow.owned or each.kind is Kind.UNMET]
        return BatchReport(
            self._flow.name, number, total(Kind.READ, owned, observed), total(Kind.REFUSED, owned, observed) or 0,
            violations(owned, observed, names), time.perf_counter() - began_at, dict(rows),
        )  # fmt: skip

    def _records(self, target: TopicTarget, made: Made) -> tuple[Producer, DataFrame]:
        pipeline = self._plan.pipeline
        assert made.encoded is not None
        column = made.frame.add("__written", together([made.encoded]))
        frame = made.frame.frame
        if pipeline.delivery is Delivery.EXACTLY_ONCE and made.frame.has_origin:
            frame = frame.select("*", origin_split())
        return producer_of(pipeline, target), records_of_column(frame, column)

    def _letters(self, tables: Tables, counts: Sequence[Count], observed: Mapping[str, int]) -> Records:
        """The dead letters of tables and ends with refused rows; no job is run for those without."""
        pipeline = self._plan.pipeline
        if pipeline.dead_letters is None:
            return []
        kinds = {Kind.REFUSED, Kind.UNMET}
        refusing = {
            (each.of, each.is_of_end)
            for each in counts
            if each.kind in kinds and observed.get(each.name) and _is_quarantining(each)
        }
        found = [tables.letters(name) for name in self._owned if (name, False) in refusing]
        ends = (each for each in self._flow.ends if tables.end(each).refused)
        found += [tables.letters_of_end(each) for each in ends if (each.name, True) in refusing]
        return [(producer_of(pipeline), frame) for frame in found]


def without_partitioning(frame: DataFrame) -> DataFrame:
    """The same stream and partitions, of which Spark does not know by which columns they are hashed.

    A plan that reads a batch twice, such as a union of two topics, has two instances of the batch. Spark compares a
    batch with the cached one by its columns and its hashing, whose columns differ between instances. The second
    instance would compute the state of the batch again, and count its late rows and state rows twice.
    """
    return frame.coalesce(MOST_PARTITIONS)


def static_violations(session: SparkSession, plan: Plan, load: Callable[[Source], DataFrame]) -> tuple[Violations, ...]:
    """The violations of all static tables, counted once when a stream starts: every batch reads these tables, so that
    each would count the same rows again."""
    used = {name for end in plan.ends for name in plan.upstream(end.input)}
    checked = [each for each in plan.tables.values() if each.checks and each.name in used and not each.path.is_stream]
    if not checked:
        return ()
    tables = Tables(session, plan, load)
    found = [tables.checked(each.name) for each in checked]
    observed = collected([(each.frame.frame, each.counts) for each in found])
    steps = {each.name: each.owner.name for each in checked}
    unmet = violations([count for each in found for count in each.counts], observed, steps)
    refuse_stopped(unmet)
    return unmet


def _stops(checks: Sequence[Check]) -> bool:
    return any(each.otherwise is Otherwise.FAIL for each in checks)


def _is_quarantining(count: Count) -> bool:
    return count.check is None or count.check.otherwise is Otherwise.QUARANTINE


def collected(parts: Sequence[Counted]) -> dict[str, int]:
    """The counts by name, computed in one job."""
    frames = []
    for frame, counts in parts:
        names, numbers = [F.lit(each.name) for each in counts], [F.expr(each.aggregate) for each in counts]
        frames.append(frame.agg(F.map_from_arrays(F.array(*names), F.array(*numbers)).alias("counts")))
    if not frames:
        return {}
    found = functools.reduce(DataFrame.unionAll, frames).collect()
    return {name: rows for row in found for name, rows in row["counts"].items()}


def refuse_stopped(unmet: Sequence[Violations]) -> None:
    for each in unmet:
        if each.otherwise is Otherwise.FAIL and each.rows:
            count = f"{each.rows} rows do" if each.rows > 1 else "a row does"
            raise PipelineError(f"step '{each.step}': {count} not meet '{each.expectation}', {STOPS}")
