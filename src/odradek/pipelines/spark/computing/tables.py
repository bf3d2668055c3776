"""The frames of a plan's tables by name: functions of the sources' frames, the same for streams and batches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, TopicOrigin, TopicTarget
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.planning.columns import source_columns
from odradek.pipelines.planning.plan import CANNOT_COMPUTE, GroupSql, OutputMode, PairSql, RowSql, StaticSql, UnionSql
from odradek.pipelines.spark.computing.counts import OBSERVED, Count, Kind, observing, of_end
from odradek.pipelines.spark.computing.encoding import (
    dead_letters,
    records_of_column,
    together,
    topic_record,
)
from odradek.pipelines.spark.computing.groups import aggregated, grouped
from odradek.pipelines.spark.computing.keyed_rows import deduplicated, keyed_state
from odradek.pipelines.spark.computing.row_checks import Made, judged
from odradek.pipelines.spark.computing.row_errors import IT, refused_count, refused_rows, try_rows
from odradek.pipelines.spark.computing.rows import ALWAYS, Frame, Rows, all_of, text_of
from odradek.pipelines.spark.computing.selecting import over_rows, select_rows
from odradek.pipelines.spark.computing.sql_steps import row_by_row, run_text, united
from odradek.pipelines.spark.computing.stream_joins import Match, join_streams, pairs_of
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
    without_internal,
)
from odradek.pipelines.spark.reading.records import decoded, unfiltered_rows
from odradek.pipelines.spark.sessions.failures import (
    PipelineError,
    is_from_java,
    message_with_location,
    plain_message,
)
from odradek.pipelines.spark.sessions.user_code import load_reference
from odradek.pipelines.spark.writing.stored_values import check_of_end
from odradek.pipelines.sql.row_errors import expression_may_fail

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.planning.plan import End, Flow, Path, Plan, Table


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
            return Made(frame, encoded.rows, encoded.refused, counts, encoded=encoded)
        schema = frame.schema_of(rows)
        check = check_of_end(self._plan.pipeline, end, schema, shows_records=rows.shows_records)
        found = judged(frame, end.name, [] if check is None else [check], rows)
        return replace(found, counts=of_end(found.counts))

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
            return found
        return replace(found, refused=(*refused, *found.refused), counts=(*counts, *found.counts))

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


@contextmanager
def naming(table: Table) -> Iterator[None]:
    """Adds the declaration and its place to errors of Spark and of user code."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        is_of_spark = isinstance(error, PySparkException) or is_from_java(error)
        words = plain_message(error) if is_of_spark else message_with_location(error)
        raise PipelineError(f"{table.place()}: {table.described}: {words}") from error


def frame_of(
    session: SparkSession, plan: Plan, table: Table, inputs: Mapping[str, DataFrame], mode: OutputMode
) -> DataFrame:
    """The rows of a table before its checks; `inputs` has those of the tables that it reads, by name."""
    made = table.made_by
    times = {name: plan.path(name).event_time for name in table.inputs}
    match made:
        case RowSql():
            return row_by_row(made, inputs)
        case UnionSql(parts):
            return united([inputs[each] for each in parts])
        case GroupSql(query):
            (stream,) = (each.table for each in query.tables)
            return grouped(query, inputs, plan.path(stream).event_time, table.path.event_time)
        case PairSql(_, pairs):
            left, right = pairs.left.table, pairs.right.table
            sides = (plan.path(left).event_time, plan.path(right).event_time)
            return pairs_of(inputs[plan.table(left).name], inputs[plan.table(right).name], Match.of_pairs(pairs), sides)
        case StaticSql(part):
            frames = {name: without_internal(each) for name, each in inputs.items()}
            return run_text(session, part.text, part.renamed, frames)
        case PythonFunction():
            return called(plan, table, made, inputs)
    first, *others = table.inputs
    frame, time = inputs[first], times[first]
    match made:
        case Aggregation():
            return aggregated(frame, made, time)
        case Deduplication():
            return deduplicated(frame, made, time)
        case KeyedState():
            return keyed_state(frame, made, mode, plan.pipeline.directory, time)
        case StreamJoin():
            other = others[0] if others else first
            return join_streams(frame, inputs[other], made, (time, times[other]))
    raise PipelineError(f"{table.place()}: {table.described} cannot be computed")


def called(plan: Plan, table: Table, operation: PythonFunction, inputs: Mapping[str, DataFrame]) -> DataFrame:
    function = load_reference(operation.function, plan.pipeline.directory)
    result = function(*(without_internal(inputs[plan.table(name).name]) for name in operation.inputs))
    if not isinstance(result, DataFrame):
        kind = type(result).__name__
        raise PipelineError(f"{table.place()}: {operation.function} returned {kind} instead of a DataFrame")
    return result
