"""One pass over the rows of a flow's root: each step, expectation and output of the flow is a column of one frame.

The frame is analysed once, when the query starts, and not for each batch. Counts are taken with `observe`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.function_calls import called_functions
from odradek.pipelines.definition.model import TableTarget, TopicTarget
from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.vocabulary import Delivery, Otherwise
from odradek.pipelines.spark.expectations import unmet_reason
from odradek.pipelines.spark.hidden_columns import (
    HIDDEN,
    ORIGIN,
    ORIGIN_FIELDS,
    REJECTED,
    quoted,
    shows_records,
    user_expression,
)
from odradek.pipelines.spark.observed_counts import (
    OBSERVED,
    Count,
    checked_name,
    observing,
    unmet_name,
    unparsed_counts,
    written_name,
)
from odradek.pipelines.spark.one_pass.records import dead_letters_of, encoded, records_of
from odradek.pipelines.spark.one_pass.row_columns import (
    PLACE_FIELDS,
    ROW,
    NotLiftable,
    RowColumns,
    Rows,
    literal,
    struct_of,
    text_of,
    together,
)
from odradek.pipelines.spark.one_pass.selecting import Scope, select_rows
from odradek.pipelines.spark.reading.records import decoded, unfiltered_rows
from odradek.pipelines.spark.reading.sources import is_topic
from odradek.pipelines.spark.sessions.failures import STOPS
from odradek.pipelines.spark.writing.delivery import origin_split
from odradek.pipelines.spark.writing.kafka_records import producer_of
from odradek.pipelines.spark.writing.transactional_writer import SPLIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Expectation, Pipeline, Source, Step
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.spark.one_pass.row_columns import Path, Table
    from odradek.pipelines.spark.writing.kafka_records import Producer

REFUSING = frozenset({Otherwise.DROP, Otherwise.QUARANTINE})
QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"  # a text in double quotes is a column
RECORD_FIELDS = ("topic", "key", "value", "headers")
MOST_BITS = 62


@dataclass(frozen=True, slots=True)
class Pass:
    """The frame of a whole flow, and the columns of its outputs."""

    frame: DataFrame
    records: Mapping[Producer, str]  # the column with an array of records
    tables: Mapping[str, Table]  # read by views and by sinks other than topics
    counts: tuple[Count, ...]
    must_hold: tuple[str, ...]  # conditions that raise an error instead of returning false
    is_of_topic: bool = False  # its rows are records of a topic as Spark reads them
    is_checked_before: bool = False  # a step before the root may raise an error instead of returning a row

    @property
    def can_fail(self) -> bool:
        """Whether a row may fail a batch, so that all rows must be computed before anything is written."""
        return bool(self.must_hold) or self.is_checked_before

    @property
    def is_direct(self) -> bool:
        """Whether Spark's Kafka sink can write the result: records are the only output, and no row can fail a batch."""
        return not self.tables and len(self.records) == 1 and not self.can_fail

    def observed(self, name: str = OBSERVED) -> DataFrame:
        """The frame with its output columns only, and with the counts observed under this name."""
        kept = [*self.records.values(), *(table.column for table in self.tables.values())]
        kept += [SPLIT] if SPLIT in self.frame.columns else []
        frame = self.frame
        if self.must_hold:
            frame = frame.where(all_of(self.must_hold))
        return observing(frame, self.counts, name).select(*map(quoted, kept))

    def records_in(self, batch: DataFrame) -> list[tuple[Producer, DataFrame]]:
        return [(producer, records_of_column(batch, column)) for producer, column in self.records.items()]

    def rows(self, batch: DataFrame, name: str) -> DataFrame:
        return self.tables[name].read(batch)


def records_of_column(frame: DataFrame, column: str) -> DataFrame:
    split = [SPLIT] if SPLIT in frame.columns else []
    each = frame.select(F.explode(F.col(column)).alias("__it"), *split).where("__it is not null")
    return each.select(*(F.col(f"__it.{name}") for name in RECORD_FIELDS), *split)


class PassBuilder:
    """Adds the parts of a flow to a frame; raises `NotLiftable` for a part that cannot be expressed as columns."""

    def __init__(self, pipeline: Pipeline, flow: Flow) -> None:
        self._pipeline = pipeline
        self._flow = flow
        self._steps = {each.name: each for each in pipeline.steps}
        self._rows: dict[str, Rows] = {}
        self._refused: dict[str, Rows] = {}  # by the source or step that rejects them
        self._counts: list[Count] = []
        self._must_hold: list[str] = []

    def of_topic(self, raw: DataFrame, source: Source) -> Pass:
        """Starts from the records of a topic; records that fail to parse become dead letters."""
        frame = unfiltered_rows(decoded(raw, source), source)
        for each in source.columns:
            value = user_expression(frame, each.expression)
            frame = frame.withColumn(each.name, F.when(F.col(REJECTED).isNull(), value))
        self._columns = RowColumns(frame, origin_of(source))
        fields = {name: (name,) for name in frame.columns if name not in HIDDEN}
        self._rows[source.name] = Rows(fields, f"{REJECTED} is null")
        if source.name in self._flow.owned:
            self._counts += unparsed_counts(source.name)
            self._refuse_records(source, fields)
        made = replace(self._finished(), is_of_topic=True)
        if self._pipeline.delivery is Delivery.EXACTLY_ONCE:
            return replace(made, frame=made.frame.withColumn(SPLIT, origin_split()))
        return made

    def _refuse_records(self, source: Source, fields: Mapping[str, Path]) -> None:
        """Adds the reasons of records that failed to parse, for their dead letters."""
        if self._pipeline.dead_letters is None:
            return
        is_refused = f"{REJECTED} is not null"
        self._refused[source.name] = Rows({**fields, REJECTED: (REJECTED,)}, is_refused)

    def of_rows(self, frame: DataFrame) -> Pass:
        """Starts from the rows of the root."""
        root = self._flow.root
        self._columns = RowColumns(frame)
        fields = {name: (name,) for name in frame.columns if name not in HIDDEN}
        self._rows[root] = Rows(fields, shows_records=shows_records(frame))
        if root in self._steps and self._flow.aggregate is None:  # otherwise they were checked before the aggregation
            self._judge(self._steps[root])
        return self._finished()

    def _finished(self) -> Pass:
        for name in self._flow.after:
            step = self._steps[name]
            if not isinstance(step.operation, Sql) or step.watermark is not None:
                raise NotLiftable(name)
            self._rows[name] = select_rows(self._columns, name, step.operation.text, self._rows)
            self._judge(step)
        records = {
            producer: self._columns.add(f"__written_{number}", together(*written))
            for number, (producer, written) in enumerate(self._written().items())
        }
        read = [each.input for each in self._flow.views]
        read += [each.input for each in self._flow.sinks if not isinstance(each.target, TopicTarget)]
        tables = {name: self._columns.add_table(f"__table_{name}", self._rows[name]) for name in dict.fromkeys(read)}
        for sink in self._flow.sinks:
            if not isinstance(sink.target, TableTarget):
                self._counts.append(Count(written_name(sink.name), self._rows[sink.input].total(), sink=sink.name))
        return Pass(self._columns.frame, records, tables, tuple(self._counts), tuple(self._must_hold))

    def _written(self) -> dict[Producer, tuple[list[str], list[str]]]:
        """The output records by producer, for steps with at most one row per record and for others."""
        columns, name, topic = self._columns, self._pipeline.name, self._pipeline.dead_letters
        sinks = [(sink, sink.target) for sink in self._flow.sinks if isinstance(sink.target, TopicTarget)]
        rows = {sink.name: encoded(columns, sink, target, self._rows[sink.input]) for sink, target in sinks}
        written: dict[Producer, tuple[list[str], list[str]]] = {}
        if topic is not None:
            for place, refused in self._refused.items():
                letters = dead_letters_of(columns, name, place, refused, topic)
                written.setdefault(producer_of(self._pipeline), ([], []))[refused.is_many].append(letters)
        for sink, target in sinks:
            records = records_of(columns, name, sink, target, rows[sink.name])
            producer = producer_of(self._pipeline, target)
            written.setdefault(producer, ([], []))[rows[sink.name].is_many].append(records)
        return written

    def _judge(self, step: Step) -> None:
        """Counts and removes the rows that expectations reject."""
        if not step.expectations:
            return
        rows = self._rows[step.name]
        checks = self._checks(step, rows)
        if step.name in self._flow.owned:
            self._counts.append(Count(checked_name(step.name), rows.total(), step.name, is_of_all=True))
            for each in step.expectations:
                unmet = rows.count(f"not {checks[each.name]}")
                self._counts.append(Count(unmet_name(step, each), unmet, step.name, each))
            self._quarantine(step, rows, checks)
        for each in step.expectations:
            if each.otherwise is Otherwise.FAIL:
                refusal = f"raise_error({unmet_message(step, each, self._place(rows))}) is null"
                self._must_hold.append(rows.all_hold_or(checks[each.name], refusal))
        refusing = [checks[each.name] for each in step.expectations if each.otherwise in REFUSING]
        if refusing:
            kept = self._columns.add(f"__kept_{step.name}", rows.filtered(all_of(refusing)))
            self._rows[step.name] = rows.narrowed(kept)

    def _checks(self, step: Step, rows: Rows) -> dict[str, str]:
        """SQL for the check of each expectation. Those of a single row are evaluated once, to a set of bits, because
        each is used by a count, by the reason of a dead letter and by the filter."""
        scope = Scope("", rows)
        checks = {each.name: f"coalesce({scope.text(each.check)}, false)" for each in step.expectations}
        if rows.is_many or not 1 < len(checks) <= MOST_BITS:
            return checks
        bits = [f"if({check}, 0L, {1 << number}L)" for number, check in enumerate(checks.values())]
        unmet = quoted(self._columns.add(f"__unmet_{step.name}", rows.mapped(" + ".join(bits))))
        return {name: f"({unmet} & {1 << number}L) = 0" for number, name in enumerate(checks)}

    def _quarantine(self, step: Step, rows: Rows, checks: Mapping[str, str]) -> None:
        quarantining = [each for each in step.expectations if each.otherwise is Otherwise.QUARANTINE]
        if not quarantining or self._pipeline.dead_letters is None:
            return
        reason = unmet_reasons(quarantining, checks)
        if rows.array is None:
            column = self._columns.add(f"__reason_{step.name}", rows.mapped(reason))
            marked = {**rows.fields, REJECTED: (column,)}
            refused = replace(rows, fields=marked, condition=f"{quoted(column)} is not null")
        else:
            bad = rows.filtered(f"not ({all_of([checks[each.name] for each in quarantining])})")
            fields = {name: text_of(path) for name, path in rows.fields.items()}
            made = f"transform({bad}, {ROW} -> {struct_of({**fields, REJECTED: reason})})"
            refused = Rows.several(self._columns.add(f"__refused_{step.name}", made), [*fields, REJECTED])
        self._refused[step.name] = refused

    def _place(self, rows: Rows) -> list[str]:
        is_known = self._columns.has_origin and not rows.is_many
        return [self._columns.origin(name) for name in PLACE_FIELDS] if is_known else []


def origin_of(source: Source) -> dict[str, Path]:
    """The columns with the fields of the origin record; the definition may redefine `_key`, `_value` …."""
    own = {each.name.lower() for each in source.columns}
    return {name: (ORIGIN, name) if f"_{name}" in own else (f"_{name}",) for name in ORIGIN_FIELDS}


def all_of(conditions: Sequence[str]) -> str:
    return " and ".join(conditions)


def unmet_message(step: Step, expectation: Expectation, place: Sequence[str]) -> str:
    """The message of a failed expectation, with the topic, partition and offset of the record if they are known."""
    said = f"step '{step.name}': a row does not meet '{expectation.name}', {STOPS}"
    if not place:
        return literal(said)
    topic, partition, offset = place
    return f"concat({literal(f'{said} (record of ')}, {topic}, '-', {partition}, ' at offset ', {offset}, ')')"


def unmet_reasons(expectations: Sequence[Expectation], checks: Mapping[str, str]) -> str:
    cases = " ".join(f"when not {checks[each.name]} then {literal(unmet_reason(each))}" for each in expectations)
    return f"case {cases} end"


def whole_pass(pipeline: Pipeline, flow: Flow, frame: DataFrame) -> Pass:
    """Compiles a flow to one pass over its root: the records of a topic as Spark reads them, or any other rows."""
    ends = [*(each.name for each in flow.sinks), *(each.name for each in flow.views)]
    if called_functions(pipeline, (flow.root, *flow.after, *ends)):
        raise NotLiftable("a Python function, which Spark does not run for the elements of an array")
    if frame.sparkSession.conf.get(QUOTED_NAMES, "false") == "true":
        raise NotLiftable(QUOTED_NAMES)
    source = next((each for each in pipeline.sources if each.name == flow.root), None)
    builder = PassBuilder(pipeline, flow)
    if flow.aggregate is None and source is not None and is_topic(source):
        return builder.of_topic(frame, source)
    return builder.of_rows(frame)
