"""The frames of a plan's tables by name: functions of the sources' frames, the same for streams and batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, TopicOrigin
from odradek.pipelines.planning.plan import CANNOT_COMPUTE, OutputMode, RowSql
from odradek.pipelines.spark.computing.counts import OBSERVED, Count, Kind, observing, of_end
from odradek.pipelines.spark.computing.encoding import dead_letter
from odradek.pipelines.spark.computing.row_checks import Judged, judged
from odradek.pipelines.spark.computing.row_errors import refused_count
from odradek.pipelines.spark.computing.row_program import group_columns, record_rows, records_of_column
from odradek.pipelines.spark.computing.rows import ALWAYS, Frame, Rows, all_of, text_of, together
from odradek.pipelines.spark.computing.selecting import over_rows, select_rows
from odradek.pipelines.spark.computing.steps import frame_of, naming
from odradek.pipelines.spark.frames import (
    INTERNAL,
    ORIGIN,
    ORIGIN_FIELDS,
    event_times_of,
    quoted,
    shows_records,
    with_filter_barrier,
    with_one_event_time,
    with_records_shown,
)
from odradek.pipelines.spark.reading.records import decoded, unfiltered_rows
from odradek.pipelines.spark.writing.stored_values import check_of_end

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.planning.plan import End, Flow, Plan, Table


@dataclass(frozen=True, slots=True)
class Checked:
    """A table in front of its checks, as columns of a frame: which rows it keeps, and which are dead letters."""

    frame: Frame
    judged: Judged
    refused: tuple[Rows, ...]
    counts: tuple[Count, ...]


class Tables:
    """The frames of all tables, each built on first use. `load` reads a source: Spark's Kafka columns for a topic, rows
    for other sources. The `give_…` methods set frames that already exist, such as that of a batch."""

    def __init__(
        self,
        session: SparkSession,
        plan: Plan,
        load: Callable[[Source], DataFrame],
        mode: OutputMode = OutputMode.APPEND,
        counted: Collection[str] = (),  # tables whose refused rows the query that reads them observes
    ) -> None:
        self._session, self._plan, self._load, self._mode, self._counted = session, plan, load, mode, counted
        self._decoded: dict[str, DataFrame] = {}
        self._unchecked: dict[str, DataFrame] = {}
        self._checked: dict[str, Checked] = {}
        self._rows: dict[str, DataFrame] = {}
        self._ends: dict[str, Checked] = {}

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
                checked, counts = self.checked(name), self.observed(name)
                frame = kept_rows(checked, observing(checked.frame.frame, counts, f"{OBSERVED} of {name}"))
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

    def checked(self, name: str) -> Checked:
        if name not in self._checked:
            table = self._plan.table(name)
            with naming(table):
                self._checked[name] = self._check(table)
        return self._checked[name]

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
        return self._letters(self.checked_end(end), end.name)

    def _letters(self, checked: Checked, place: str) -> DataFrame:
        encoded = [dead_letter(checked.frame, self._plan.pipeline, place, each) for each in checked.refused]
        texts = [[each.records for each in encoded if each.rows.is_many is is_many] for is_many in (False, True)]
        column = checked.frame.add("__letters", together(*texts))
        return records_of_column(checked.frame.frame, column)

    def observed(self, name: str) -> list[Count]:
        """The counts that a query observes where it reads a table whose refused rows have no other flow."""
        counts = self.checked(name).counts if name in self._counted else ()
        return [each for each in counts if each.kind is not Kind.READ]

    def checked_end(self, end: End) -> Checked:
        """The rows in front of an end, some of which its target may not be able to store."""
        if end.name not in self._ends:
            frame, rows = as_rows(self.rows(end.input))
            schema = self.rows(end.input).schema
            check = check_of_end(self._plan.pipeline, end, schema, shows_records=rows.shows_records)
            found = judged(frame, end.name, [] if check is None else [check], rows)
            self._ends[end.name] = Checked(frame, found, as_refused(found), of_end(found.counts))
        return self._ends[end.name]

    def of_end(self, end: End) -> DataFrame:
        """The rows that an end writes."""
        checked = self.checked_end(end)
        return kept_rows(checked, checked.frame.frame) if checked.counts else self.rows(end.input)

    def _check(self, table: Table) -> Checked:
        made, refused = table.made_by, list[Rows]()
        if isinstance(made, Source) and isinstance(made.origin, TopicOrigin):
            records = unfiltered_rows(self.decoded(table.name), made)
            frame = Frame(records, {name: (f"_{name}",) for name in ORIGIN_FIELDS})
            rows, refused = record_rows(frame, made)
        elif isinstance(made, RowSql) and made.shape.is_plain and table.name not in self._unchecked:
            (name,) = table.inputs
            frame, rows = as_rows(self.rows(name))
            types = self._plan.table(name).columns
            selected = select_rows(frame, table.name, made.query.part, {name.lower(): rows}, types)
            rows, refused = selected.rows, [] if selected.refused is None else [selected.refused]
        else:
            frame, rows = as_rows(self.before_checks(table.name))
        checks = [each for each in table.checks if each.name != CANNOT_COMPUTE]
        found = judged(frame, table.name, checks, rows, table.owner.name, types=table.columns)
        if isinstance(made, RowSql):
            counts = [refused_count(table.name, each) for each in refused]
        else:
            is_topic = bool(refused)
            unread = Count(Kind.REFUSED, table.name, f"count(if({rows.condition}, null, 1))")
            counts = [Count(Kind.READ, table.name, "count(1)"), unread] if is_topic else []
        refused += as_refused(found)
        return Checked(frame, found, tuple(refused), (*counts, *found.counts))

    def _of_source(self, source: Source) -> DataFrame:
        frame = self._load(source)
        for each in source.columns:
            _, rows = as_rows(frame)
            frame = frame.withColumn(each.name, F.expr(over_rows(each.expression, rows)))
        return frame


def as_refused(found: Judged) -> tuple[Rows, ...]:
    return () if found.refused is None else (found.refused,)


def as_rows(frame: DataFrame) -> tuple[Frame, Rows]:
    """The rows of a frame, each of which is the one row of its record."""
    fields = {name: (name,) for name in frame.columns if name not in INTERNAL}
    return Frame(frame), Rows(fields, shows_records=shows_records(frame))


def kept_rows(checked: Checked, frame: DataFrame) -> DataFrame:
    """The rows of a frame behind its checks, with their origin. A row that must not be there raises an error.

    Every query that reads the table evaluates its checks, so that none of them commits a batch with such a row."""
    rows, must_hold = checked.judged.kept, checked.judged.must_hold
    if must_hold:
        # The partition id, which is never negative, makes the condition nondeterministic: otherwise Spark would
        # evaluate conditions of later tables first, and a row that these remove would not stop the pipeline.
        frame = frame.where(f"({all_of(must_hold)}) or spark_partition_id() < 0")
    origin = [ORIGIN] if ORIGIN in frame.columns else []
    if rows.array is not None:
        made = frame.select(F.explode(quoted(rows.array)).alias("__it"), *origin).select("__it.*", *origin)
    else:
        frame = frame if rows.condition == ALWAYS else frame.where(rows.condition)
        made = frame.select(*(F.expr(text_of(path)).alias(name) for name, path in rows.fields.items()), *origin)
    return with_records_shown(made) if rows.shows_records else made
