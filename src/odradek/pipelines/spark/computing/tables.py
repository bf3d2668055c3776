"""The frames of a plan's tables by name: functions of the sources' frames, the same for streams and batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, TopicOrigin, TopicTarget
from odradek.pipelines.planning.columns import source_columns
from odradek.pipelines.planning.plan import CANNOT_COMPUTE, OutputMode, RowSql
from odradek.pipelines.spark.computing.counts import OBSERVED, Count, Kind, observing, of_end
from odradek.pipelines.spark.computing.encoding import (
    Encoded,
    dead_letters,
    records_of_column,
    together,
    topic_record,
)
from odradek.pipelines.spark.computing.row_checks import judged
from odradek.pipelines.spark.computing.row_errors import IT, refused_count, refused_rows, try_rows
from odradek.pipelines.spark.computing.rows import ALWAYS, Frame, Rows, all_of, text_of
from odradek.pipelines.spark.computing.selecting import over_rows, select_rows
from odradek.pipelines.spark.computing.steps import frame_of, naming
from odradek.pipelines.spark.frames import (
    INTERNAL,
    ORIGIN,
    ORIGIN_FIELDS,
    REJECTED,
    event_times_of,
    quoted,
    shows_records,
    with_filter_barrier,
    with_one_event_time,
    with_records_shown,
)
from odradek.pipelines.spark.reading.records import decoded, unfiltered_rows
from odradek.pipelines.spark.writing.stored_values import check_of_end
from odradek.pipelines.sql.row_errors import expression_may_fail

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.planning.plan import End, Flow, Path, Plan, Table


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a table behind its checks, or those that an end writes, as columns of a frame."""

    frame: Frame
    rows: Rows
    must_hold: tuple[str, ...] = ()  # conditions that raise an error instead of returning false
    refused: tuple[Rows, ...] = ()  # for dead letters, with the reason
    counts: tuple[Count, ...] = ()
    encoded: Encoded | None = None  # the records of a topic's end


class Tables:
    """The frames of all tables, each built on first use. `load` reads a source: Spark's Kafka columns for a topic, rows
    for other sources. The `give_…` methods set frames that already exist, such as that of a batch.

    The tables of a row program are columns of one frame, that of its root. Its flow counts what it owns."""

    def __init__(
        self,
        session: SparkSession,
        plan: Plan,
        load: Callable[[Source], DataFrame],
        mode: OutputMode = OutputMode.APPEND,
        counted: Collection[str] = (),  # tables whose refused rows the query that reads them observes
        program: Flow | None = None,
    ) -> None:
        self._session, self._plan, self._load, self._mode, self._counted = session, plan, load, mode, counted
        self._program = program
        self._decoded: dict[str, DataFrame] = {}
        self._unchecked: dict[str, DataFrame] = {}
        self._checked: dict[str, Made] = {}
        self._rows: dict[str, DataFrame] = {}
        self._ends: dict[str, Made] = {}

    def give_decoded(self, name: str, frame: DataFrame) -> None:
        self._decoded[name] = frame

    def give_before_checks(self, name: str, frame: DataFrame) -> None:
        self._unchecked[name] = frame

    def give_rows(self, name: str, frame: DataFrame) -> None:
        self._rows[name] = frame

    def rows(self, name: str) -> DataFrame:
        """The rows that the readers of a table see: parsed, computed, and without those that checks remove."""
        if name not in self._rows:
            table = self._plan.table(name)
            with naming(table):
                made, counts = self.checked(name), self.observed(name)
                frame = kept_rows(made, observing(made.frame.frame, counts, f"{OBSERVED} of {name}"))
                frame = self._with_event_time(table, frame)
                owner, watermark = table.owner, getattr(table.owner, "watermark", None)
                if watermark is not None and frame.isStreaming and table.name == owner.name:
                    frame = with_filter_barrier(frame.withWatermark(quoted(watermark.column), watermark.delay.spark))
                self._rows[name] = frame
        return self._rows[name]

    def _with_event_time(self, table: Table, frame: DataFrame) -> DataFrame:
        """The rows of a SELECT with the mark that Spark does not give to a field of a window: `w.end as until`."""
        time = table.path.event_time
        if not isinstance(table.made_by, RowSql) or time is None or not frame.isStreaming:
            return frame
        if time.lower() in {each.lower() for each in event_times_of(frame)}:
            return frame
        return with_one_event_time(frame, time, [self.rows(each) for each in table.inputs])

    def decoded(self, name: str) -> DataFrame:
        """The records of a topic, each parsed or with the reason why it was rejected."""
        if name not in self._decoded:
            source = self._plan.table(name).made_by
            assert isinstance(source, Source)
            self._decoded[name] = decoded(self._load(source), source)
        return self._decoded[name]

    def before_checks(self, name: str) -> DataFrame:
        """The rows of a table before its checks, if it is neither a topic nor a plain SELECT."""
        if name not in self._unchecked:
            table = self._plan.table(name)
            if isinstance(table.made_by, Source):
                self._unchecked[name] = self._of_source(table.made_by)
            else:
                inputs = {each: self.rows(each) for each in table.inputs}
                self._unchecked[name] = frame_of(self._session, self._plan, table, inputs, self._mode)
        return self._unchecked[name]

    def groups(self, flow: Flow) -> DataFrame | None:
        """The groups that changed in a batch, those that checks or HAVING remove behind the root included."""
        if flow.mode is OutputMode.APPEND:
            return None
        wanted, groups = group_columns(self._plan.path(flow.root)), self.before_checks(flow.root)
        return groups.select(*(quoted(name) for name in groups.columns if name.lower() in wanted)).distinct()

    def letters(self, name: str) -> DataFrame:
        """The dead letters of a table."""
        return self._letters(self.checked(name), self._plan.table(name).owner.name)

    def letters_of_end(self, end: End) -> DataFrame:
        return self._letters(self.end(end), end.name)

    def _letters(self, made: Made, place: str) -> DataFrame:
        encoded = dead_letters(made.frame, self._plan.pipeline, [(place, each) for each in made.refused])
        column = made.frame.add("__letters", together(encoded))
        return records_of_column(made.frame.frame, column)

    def observed(self, name: str) -> list[Count]:
        """The counts that a query observes where it reads a table whose refused rows have no other flow."""
        counts = self.checked(name).counts if name in self._counted else ()
        return [each for each in counts if each.kind is not Kind.READ]

    def checked(self, name: str) -> Made:
        if name not in self._checked:
            table = self._plan.table(name)
            with naming(table):
                self._checked[name] = self._check(table)
        return self._checked[name]

    def end(self, end: End) -> Made:
        """What an end writes, and the rows that have no record or that its target cannot store."""
        if end.described not in self._ends:
            self._ends[end.described] = self._end(end)
        return self._ends[end.described]

    def _end(self, end: End) -> Made:
        frame, rows = self._columns_of(end.input)
        if isinstance(end.target, TopicTarget):
            types = self._plan.table(end.input).columns
            encoded = topic_record(frame, self._plan.pipeline, end.name, end.target, rows, types)
            counts = tuple(refused_count(end.name, each, is_of_end=True) for each in encoded.refused)
            return Made(frame, encoded.rows, refused=encoded.refused, counts=counts, encoded=encoded)
        schema = frame.schema_of(rows)
        check = check_of_end(self._plan.pipeline, end, schema, shows_records=rows.shows_records)
        found = judged(frame, end.name, [] if check is None else [check], rows)
        return Made(frame, found.kept, refused=found.refused, counts=of_end(found.counts))

    def of_end(self, end: End) -> DataFrame:
        """The rows that an end writes."""
        made = self.end(end)
        return kept_rows(made, made.frame.frame) if made.counts else self.rows(end.input)

    def _columns_of(self, name: str) -> tuple[Frame, Rows]:
        """The rows of a table for what reads them row by row."""
        if self._program is None:
            return as_rows(self.rows(name))
        made = self.checked(self._plan.table(name).name)
        return made.frame, made.rows

    def _check(self, table: Table) -> Made:
        made = table.made_by
        refused, counts = tuple[Rows, ...](), list[Count]()
        if isinstance(made, Source) and isinstance(made.origin, TopicOrigin):
            records = unfiltered_rows(self.decoded(table.name), made)
            frame = Frame(records, {name: (f"_{name}",) for name in ORIGIN_FIELDS})
            rows, refused = record_rows(frame, made)
            unread = Count(Kind.REFUSED, table.name, f"count(if({rows.condition}, null, 1))")
            counts = [Count(Kind.READ, table.name, "count(1)"), unread]
        elif isinstance(made, RowSql) and made.shape.is_plain and table.name not in self._unchecked:
            (name,) = table.inputs
            frame, rows = self._columns_of(name)
            types = self._plan.table(name).columns
            selected = select_rows(frame, table.name, made.query.part, {name.lower(): rows}, types)
            rows, refused = selected.rows, selected.refused
            counts = [refused_count(table.name, each) for each in refused]
        else:
            frame, rows = as_rows(self.before_checks(table.name))
        checks = [each for each in table.checks if each.name != CANNOT_COMPUTE]
        is_owned = self._program is None or table.name in self._program.owned
        found = judged(frame, table.name, checks, rows, table.owner.name, is_owned=is_owned, types=table.columns)
        if not is_owned:
            return Made(frame, found.kept, found.must_hold)
        return Made(frame, found.kept, found.must_hold, (*refused, *found.refused), (*counts, *found.counts))

    def _of_source(self, source: Source) -> DataFrame:
        frame = self._load(source)
        for each in source.columns:
            _, rows = as_rows(frame)
            frame = frame.withColumn(each.name, F.expr(over_rows(each.expression, rows)))
        return frame


def as_rows(frame: DataFrame) -> tuple[Frame, Rows]:
    """The rows of a frame, each of which is the one row of its record."""
    fields = {name: (name,) for name in frame.columns if name not in INTERNAL}
    return Frame(frame), Rows(fields, shows_records=shows_records(frame))


def record_rows(frame: Frame, source: Source) -> tuple[Rows, tuple[Rows, ...]]:
    """The rows of a topic, and the records that are not parsed, or whose columns cannot be computed."""
    fields = {name: (name,) for name in frame.frame.columns if name not in INTERNAL}
    refused = [Rows({**fields, REJECTED: (REJECTED,)}, f"{REJECTED} is not null")]
    rows = Rows(fields, f"{REJECTED} is null")
    types = source_columns(source)
    for each in source.columns:
        expression = over_rows(each.expression, rows)
        if expression_may_fail(each.expression, types):
            column = try_rows(frame, source.name, rows, expression)
            refused.append(refused_rows(frame, source.name, rows, column))
            condition = all_of([rows.condition, f"{quoted(column)} is not null"])
            rows = Rows({**rows.fields, each.name: (column, IT)}, condition)
        else:
            column = frame.add(f"__{source.name}.{each.name}", rows.mapped(expression))
            rows = Rows({**rows.fields, each.name: (column,)}, rows.condition)
    return rows, tuple(refused)


def group_columns(path: Path) -> frozenset[str]:
    """The columns by which rows are grouped, in lower case."""
    return frozenset(name.lower() for names in path.groups or () for name in names)


def kept_rows(made: Made, frame: DataFrame) -> DataFrame:
    """The rows of a frame behind its checks, with their origin. A row that must not be there raises an error.

    Every query that reads the table evaluates its checks, so that none of them commits a batch with such a row."""
    rows = made.rows
    if made.must_hold:
        # The partition id, which is never negative, makes the condition nondeterministic: otherwise Spark would
        # evaluate conditions of later tables first, and a row that these remove would not stop the pipeline.
        frame = frame.where(f"({all_of(made.must_hold)}) or spark_partition_id() < 0")
    origin = [ORIGIN] if ORIGIN in frame.columns else []
    if rows.array is not None:
        selected = frame.select(F.explode(quoted(rows.array)).alias("__it"), *origin).select("__it.*", *origin)
    else:
        frame = frame if rows.condition == ALWAYS else frame.where(rows.condition)
        selected = frame.select(*(F.expr(text_of(path)).alias(name) for name, path in rows.fields.items()), *origin)
    return with_records_shown(selected) if rows.shows_records else selected
