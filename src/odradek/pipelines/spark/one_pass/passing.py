"""One pass over the rows of a flow's root: every step, expectation and output of the flow as a column of one frame.

The frame is planned once, when the query starts, and not again for each batch. `observe` counts along the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Sql, TopicTarget
from odradek.pipelines.definition.vocabulary import Delivery, Otherwise
from odradek.pipelines.spark.delivery import origin_split
from odradek.pipelines.spark.expectations import Violations
from odradek.pipelines.spark.hidden_columns import ORIGIN, REJECTED, quoted, visible_names
from odradek.pipelines.spark.one_pass.records import REASON, add_letters, add_records
from odradek.pipelines.spark.one_pass.row_columns import (
    NotLiftable,
    RowColumns,
    Rows,
    frame_of,
    literal,
    struct_of,
    together,
)
from odradek.pipelines.spark.one_pass.selecting import Scope, select_expression
from odradek.pipelines.spark.records import decoded, unfiltered_rows
from odradek.pipelines.spark.sinks.topics import producer_of
from odradek.pipelines.spark.sources import is_topic
from odradek.pipelines.spark.transactional_writer import SPLIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Expectation, Pipeline, Source, Step
    from odradek.pipelines.spark.flows import Flow
    from odradek.pipelines.spark.sinks.topics import Producer

OBSERVED = "counts"
REFUSING = frozenset({Otherwise.DROP, Otherwise.QUARANTINE})
RECORD_FIELDS = ("topic", "key", "value", "headers")


@dataclass(frozen=True, slots=True)
class Count:
    """An aggregate that is observed: records that were not parsed, or rows that fall short of an expectation."""

    name: str
    aggregate: str
    step: str = ""
    expectation: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """The frame of a whole flow, and where in it the outputs are."""

    frame: DataFrame
    records: Mapping[Producer, str]  # the column with an array of records
    tables: Mapping[str, Rows]  # what sinks other than topics, and views, read
    counts: tuple[Count, ...]
    must_hold: tuple[str, ...]  # conditions that raise an error instead of being false

    @property
    def is_direct(self) -> bool:
        """One set of records is all that is written, and no row of a batch keeps the others from being written."""
        return not self.tables and len(self.records) == 1 and not self.must_hold

    def observed(self) -> DataFrame:
        """With only what is written, and counted."""
        kept = [*self.records.values(), *(rows.name for rows in self.tables.values())]
        kept += [SPLIT] if SPLIT in self.frame.columns else []
        frame = self.frame
        if self.must_hold:
            frame = frame.where(all_of(self.must_hold))
        if self.counts:
            first, *others = (F.expr(each.aggregate).alias(each.name) for each in self.counts)
            frame = frame.observe(OBSERVED, first, *others)
        return frame.select(*map(quoted, kept))

    def records_in(self, batch: DataFrame) -> list[tuple[Producer, DataFrame]]:
        return [(producer, records_of_column(batch, column)) for producer, column in self.records.items()]

    def rows(self, batch: DataFrame, name: str) -> DataFrame:
        return frame_of(batch, self.tables[name])

    def counted(self, observed: Mapping[str, int]) -> tuple[int, tuple[Violations, ...]]:
        """How many records were not parsed, and how many rows fell short."""
        rejected = sum(observed.get(each.name, 0) for each in self.counts if each.expectation is None)
        violations = tuple(
            Violations(each.step, each.expectation.name, each.expectation.otherwise, observed.get(each.name, 0))
            for each in self.counts
            if each.expectation is not None
        )
        return rejected, violations


def records_of_column(frame: DataFrame, column: str) -> DataFrame:
    beside = [SPLIT] if SPLIT in frame.columns else []
    each = frame.select(F.explode(F.col(column)).alias("__it"), *beside).where("__it is not null")
    return each.select(*(F.col(f"__it.{name}") for name in RECORD_FIELDS), *beside)


class PassBuilder:
    """Adds the parts of a flow to a frame; `NotLiftable` where one has no place in it."""

    def __init__(self, pipeline: Pipeline, flow: Flow) -> None:
        self._pipeline = pipeline
        self._flow = flow
        self._steps = {each.name: each for each in pipeline.steps}
        self._rows: dict[str, Rows] = {}
        self._letters: list[Rows] = []
        self._counts: list[Count] = []
        self._must_hold: list[str] = []

    def of_topic(self, raw: DataFrame, source: Source) -> Pass:
        """From the records of a topic; those that do not parse become dead letters."""
        frame = unfiltered_rows(decoded(raw, source), source)
        for each in source.columns:
            frame = frame.withColumn(each.name, F.when(F.col(REJECTED).isNull(), F.expr(each.expression)))
        self._columns = RowColumns(frame)
        names = [name for name in frame.columns if name != REJECTED]
        self._rows[source.name] = self._columns.add_record(rows_name(source.name), names, f"{REJECTED} is null")
        if source.name in self._flow.owned:
            self._counts.append(Count(f"rejected {source.name}", f"count({REJECTED})"))
            if self._pipeline.dead_letters is not None:
                refused = struct_of({ORIGIN: ORIGIN, REASON: REJECTED})
                rows = self._columns.add(f"__refused_{source.name}", f"if({REJECTED} is not null, {refused}, null)")
                self._add_letters(source.name, rows)
        made = self._finished()
        if self._pipeline.delivery is Delivery.EXACTLY_ONCE:
            return replace(made, frame=made.frame.withColumn(SPLIT, origin_split()))
        return made

    def of_rows(self, frame: DataFrame) -> Pass:
        """From the rows of the root."""
        root = self._flow.root
        self._columns = RowColumns(frame)
        self._rows[root] = self._columns.add_record(rows_name(root), frame.columns)
        if root in self._steps and self._flow.aggregate is None:  # else they were judged before they were counted
            self._judge(self._steps[root])
        return self._finished()

    def _finished(self) -> Pass:
        for name in self._flow.after:
            step = self._steps[name]
            if not isinstance(step.operation, Sql) or step.watermark is not None:
                raise NotLiftable(name)
            self._rows[name] = self._columns.add(rows_name(name), select_expression(step.operation.text, self._rows))
            self._judge(step)
        written = self._written()
        for number, rows in enumerate(written.values()):
            self._columns.add(f"__written_{number}", together(rows))
        records = {producer: f"__written_{number}" for number, producer in enumerate(written)}
        read = [each.input for each in self._flow.views]
        read += [each.input for each in self._flow.sinks if not isinstance(each.target, TopicTarget)]
        tables = {name: self._rows[name] for name in read}
        return Pass(self._columns.frame, records, tables, tuple(self._counts), tuple(self._must_hold))

    def _written(self) -> dict[Producer, list[Rows]]:
        written: dict[Producer, list[Rows]] = {}
        if self._letters:
            written[producer_of(self._pipeline)] = list(self._letters)
        for sink in self._flow.sinks:
            if isinstance(sink.target, TopicTarget):
                rows = add_records(self._columns, self._pipeline.name, sink, sink.target, self._rows[sink.input])
                written.setdefault(producer_of(self._pipeline, sink.target), []).append(rows)
        return written

    def _judge(self, step: Step) -> None:
        """Counts and leaves out the rows that an expectation refuses."""
        if not step.expectations:
            return
        rows = self._rows[step.name]
        every = self._columns.add(f"__every_{step.name}", rows.column)
        scope = Scope(step.name.lower(), every)
        checks = {each.name: f"coalesce({scope.text(each.check)}, false)" for each in step.expectations}
        if step.name in self._flow.owned:
            for each in step.expectations:
                unmet = f"not {checks[each.name]}"
                self._counts.append(Count(f"{step.name}: {each.name}", every.count(unmet), step.name, each))
            self._quarantine(step, every, checks)
        for each in step.expectations:
            if each.otherwise is Otherwise.FAIL:
                refusal = f"raise_error({unmet_message(step, each, every)}) is null"
                self._must_hold.append(every.holds_or(checks[each.name], refusal))
        refusing = [checks[each.name] for each in step.expectations if each.otherwise in REFUSING]
        if refusing:
            self._rows[step.name] = self._columns.add(rows.name, every.filtered(all_of(refusing)))

    def _quarantine(self, step: Step, every: Rows, checks: Mapping[str, str]) -> None:
        quarantining = [each for each in step.expectations if each.otherwise is Otherwise.QUARANTINE]
        if not quarantining or self._pipeline.dead_letters is None:
            return
        bad = self._columns.add(
            f"__bad_{step.name}", every.filtered(f"not ({all_of([checks[each.name] for each in quarantining])})")
        )
        scope = Scope(step.name.lower(), bad)
        again = {each.name: f"coalesce({scope.text(each.check)}, false)" for each in quarantining}
        parts = {REASON: reason_of(quarantining, again)}
        if ORIGIN in bad.fields.names:
            parts[ORIGIN] = f"{bad.row}.{ORIGIN}"
        else:
            shown = {name: f"{bad.row}.{quoted(name)}" for name in visible_names(bad.fields.names)}
            parts["json"] = f"to_json({struct_of(shown)})"
        refused = self._columns.add(f"__refused_{step.name}", bad.mapped(struct_of(parts)))
        self._add_letters(step.name, refused)

    def _add_letters(self, place: str, refused: Rows) -> None:
        topic = self._pipeline.dead_letters
        assert topic is not None
        self._letters.append(add_letters(self._columns, self._pipeline.name, place, refused, topic))


def rows_name(name: str) -> str:
    return f"__rows_{name}"


def all_of(conditions: Sequence[str]) -> str:
    return " and ".join(conditions)


def unmet_message(step: Step, expectation: Expectation, rows: Rows) -> str:
    """Why the pipeline stops, with the record that is to blame where it is known."""
    said = f"step '{step.name}': a row does not meet '{expectation.name}', which stops the pipeline"
    if rows.is_many or ORIGIN not in rows.fields.names:
        return literal(said)
    origin = f"{rows.row}.{ORIGIN}"
    place = f"{origin}.topic, '-', {origin}.partition, ' at offset ', {origin}.offset"
    return f"concat({literal(f'{said} (record of ')}, {place}, ')')"


def reason_of(expectations: Sequence[Expectation], checks: Mapping[str, str]) -> str:
    cases = " ".join(
        f"when not {checks[each.name]} then {literal(f'{each.name}: not true that {each.check}')}"
        for each in expectations
    )
    return f"case {cases} end"


def whole_pass(pipeline: Pipeline, flow: Flow, frame: DataFrame) -> Pass:
    """All of a flow in one pass over its root: the records of a topic as Spark reads them, or any other rows."""
    source = next((each for each in pipeline.sources if each.name == flow.root), None)
    builder = PassBuilder(pipeline, flow)
    if flow.aggregate is None and source is not None and is_topic(source):
        return builder.of_topic(frame, source)
    return builder.of_rows(frame)
