"""A row program: the steps, checks and outputs of a flow as columns of one frame over the rows of its root.

The frame is analysed once, when the query starts, and not for each batch. Counts are taken with `observe`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, TableTarget, TopicOrigin, TopicTarget
from odradek.pipelines.definition.vocabulary import Delivery, Otherwise
from odradek.pipelines.planning.columns import source_columns
from odradek.pipelines.planning.plan import CANNOT_COMPUTE, OutputMode, RowSql
from odradek.pipelines.planning.splitting import is_of_current_groups
from odradek.pipelines.spark.computing.counts import OBSERVED, Count, Kind, observing, of_end
from odradek.pipelines.spark.computing.encoding import dead_letter, topic_record
from odradek.pipelines.spark.computing.row_checks import judged
from odradek.pipelines.spark.computing.row_errors import IT, refused_count, refused_rows, try_rows
from odradek.pipelines.spark.computing.rows import Frame, NotCompilable, Rows, all_of, text_of, together
from odradek.pipelines.spark.computing.selecting import over_rows, select_rows
from odradek.pipelines.spark.frames import INTERNAL, ORIGIN_FIELDS, REJECTED, quoted, shows_records
from odradek.pipelines.spark.reading.records import decoded, unfiltered_rows
from odradek.pipelines.spark.writing.delivery import origin_split
from odradek.pipelines.spark.writing.kafka_records import producer_of
from odradek.pipelines.spark.writing.stored_values import check_of_end
from odradek.pipelines.spark.writing.transactional_writer import SPLIT
from odradek.pipelines.sql.row_errors import expression_may_fail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from odradek.pipelines.planning.plan import End, Flow, Path, Plan, Table
    from odradek.pipelines.spark.computing.encoding import Encoded
    from odradek.pipelines.spark.computing.rows import TableColumn
    from odradek.pipelines.spark.writing.kafka_records import Producer

GROUPS = "__groups"  # the table of the groups of a batch
QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"  # a text in double quotes is a column
RECORD_FIELDS = ("topic", "key", "value", "headers")


@dataclass(frozen=True, slots=True)
class RowProgram:
    """The frame of a whole flow, and the columns of its outputs."""

    frame: DataFrame
    records: Mapping[Producer, str]  # the column with an array of records
    tables: Mapping[str, TableColumn]  # read by ends other than topics
    counts: tuple[Count, ...]
    must_hold: tuple[str, ...]  # conditions that raise an error instead of returning false
    is_of_topic: bool  # its rows are records of a topic as Spark reads them
    is_checked_before: bool  # a table before the root may raise an error instead of returning a row

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
        frame = self.frame.where(all_of(self.must_hold)) if self.must_hold else self.frame
        return observing(frame, self.counts, name).select(*map(quoted, kept))

    def records_in(self, batch: DataFrame) -> list[tuple[Producer, DataFrame]]:
        return [(producer, records_of_column(batch, column)) for producer, column in self.records.items()]

    def rows(self, batch: DataFrame, name: str) -> DataFrame:
        return self.tables[name].read(batch)


def rows_of_end(end: End) -> str:
    """The table with the rows of an end that cannot store all of its input."""
    return f"__end {end.name}"


def records_of_column(frame: DataFrame, column: str) -> DataFrame:
    split = [SPLIT] if SPLIT in frame.columns else []
    each = frame.select(F.explode(quoted(column)).alias("__it"), *split).where("__it is not null")
    return each.select(*(F.col(f"__it.{name}") for name in RECORD_FIELDS), *split)


def row_program(plan: Plan, flow: Flow, root: DataFrame) -> RowProgram:
    """Compiles a flow over its root: the records of a topic as Spark reads them, or rows before their checks.

    Raises `NotCompilable` for what would be another table than in Spark."""
    if root.sparkSession.conf.get(QUOTED_NAMES, "false") == "true":
        raise NotCompilable(f"{QUOTED_NAMES} is true")
    table = plan.table(flow.root)
    source = table.made_by
    if isinstance(source, Source) and isinstance(source.origin, TopicOrigin):
        frame = unfiltered_rows(decoded(root, source), source)
        builder = _Builder(plan, flow, Frame(frame, {name: (f"_{name}",) for name in ORIGIN_FIELDS}))
        builder.add_records(source)
        return builder.finished(is_of_topic=True)
    builder = _Builder(plan, flow, Frame(root))
    fields = {name: (name,) for name in root.columns if name not in INTERNAL}
    rows = Rows(fields, shows_records=shows_records(root))
    builder.add_groups(rows)
    builder.add_rows(table, rows)
    return builder.finished(is_of_topic=False)


class _Builder:
    """Adds the tables and the outputs of a flow to a frame."""

    def __init__(self, plan: Plan, flow: Flow, frame: Frame) -> None:
        self._plan, self._flow, self._frame = plan, flow, frame
        self._rows: dict[str, Rows] = {}  # by name in lower case
        self._refused: list[tuple[str, Rows]] = []  # with the source, the step or the end that refuses them
        self._counts: list[Count] = []
        self._must_hold: list[str] = []
        self._groups = Rows({})
        self._stored: dict[str, Rows] = {}  # what ends write that cannot store all rows, by end

    def add_groups(self, rows: Rows) -> None:
        """Keeps the columns of groups, before any of these is removed."""
        wanted = group_columns(self._plan.path(self._flow.root))
        self._groups = Rows({name: path for name, path in rows.fields.items() if name.lower() in wanted})

    def add_records(self, source: Source) -> None:
        """The rows of a topic, whose records may be refused."""
        rows, refused = record_rows(self._frame, source)
        if source.name in self._flow.owned:
            self._counts.append(Count(Kind.REFUSED, source.name, f"count(if({rows.condition}, null, 1))"))
            self._refused += [(source.name, each) for each in refused]
        self.add_rows(self._plan.table(source.name), rows)

    def add_rows(self, table: Table, rows: Rows, refused: Rows | None = None) -> None:
        """Adds the rows of a table behind its checks, and those that could not be computed."""
        owner, is_owned = table.owner.name, table.name in self._flow.owned
        checks = [each for each in table.checks if each.name != CANNOT_COMPUTE]
        found = judged(self._frame, table.name, checks, rows, owner, is_owned=is_owned, types=table.columns)
        self._rows[table.name.lower()] = found.kept
        self._must_hold += found.must_hold
        self._counts += found.counts
        if not is_owned:
            return
        if refused is not None:
            self._refuse(table.name, owner, refused)
        if found.refused is not None:
            self._refused.append((owner, found.refused))

    def _refuse(self, name: str, place: str, refused: Rows, *, is_of_end: bool = False) -> None:
        self._counts.append(refused_count(name, refused, is_of_end=is_of_end))
        self._refused.append((place, refused))

    def finished(self, *, is_of_topic: bool) -> RowProgram:
        for table in map(self._plan.table, self._flow.after):
            if not isinstance(table.made_by, RowSql):
                raise NotCompilable(f"{table.described} is no SELECT of one table")
            types = self._plan.table(*table.inputs).columns
            selected = select_rows(self._frame, table.name, table.made_by.query.part, self._rows, types)
            self.add_rows(table, selected.rows, selected.refused)
        frame = self._frame
        records = {
            producer: frame.add(f"__written_{number}", together(*written))
            for number, (producer, written) in enumerate(self._records().items())
        }
        read = {
            each.input: self._rows[each.input.lower()]
            for each in self._flow.ends
            if not isinstance(each.target, TopicTarget)
            and (each.name not in self._stored or is_of_current_groups(self._plan, each))
        }
        read |= {rows_of_end(each): self._stored[each.name] for each in self._flow.ends if each.name in self._stored}
        tables = {name: frame.add_table(f"__table_{name}", rows) for name, rows in read.items()}
        if self._flow.mode is OutputMode.UPDATE:
            tables[GROUPS] = frame.add_table(GROUPS, self._groups)
        made = frame.frame
        if is_of_topic and self._plan.pipeline.delivery is Delivery.EXACTLY_ONCE:
            made = made.withColumn(SPLIT, origin_split())
        before = map(self._plan.table, self._plan.upstream(self._flow.root)[:-1])
        is_checked = any(each.otherwise is Otherwise.FAIL for table in before for each in table.checks)
        must_hold = tuple(self._must_hold)
        return RowProgram(made, records, tables, tuple(self._counts), must_hold, is_of_topic, is_checked)

    def _records(self) -> dict[Producer, tuple[list[str], list[str]]]:
        """The records by producer, of rows of which a record makes one at most, and of others."""
        pipeline = self._plan.pipeline
        written: dict[Producer, tuple[list[str], list[str]]] = {}

        def add(producer: Producer, encoded: Encoded) -> None:
            written.setdefault(producer, ([], []))[encoded.rows.is_many].append(encoded.records)

        for end in self._flow.ends:
            rows = self._rows[end.input.lower()]
            if isinstance(end.target, TopicTarget):
                encoded = topic_record(
                    self._frame, pipeline, end.name, end.target, rows, self._plan.table(end.input).columns
                )
                add(producer_of(pipeline, end.target), encoded)
                rows = encoded.rows
                if encoded.refused is not None:
                    self._refuse(end.name, end.name, encoded.refused, is_of_end=True)
            else:
                rows = self._storable(end, rows)
            if not isinstance(end.target, TableTarget):
                self._counts.append(Count(Kind.WRITTEN, end.name, rows.count()))
        if pipeline.dead_letters is not None:
            for place, refused in self._refused_once():
                add(producer_of(pipeline), dead_letter(self._frame, pipeline, place, refused))
        return written

    def _storable(self, end: End, rows: Rows) -> Rows:
        """The rows that the target of an end can store."""
        schema = self._frame.schema_of(rows)
        check = check_of_end(self._plan.pipeline, end, schema, shows_records=rows.shows_records)
        if check is None:
            return rows
        found = judged(self._frame, end.name, [check], rows)
        self._counts += of_end(found.counts)
        self._refused += [] if found.refused is None else [(end.name, found.refused)]
        self._stored[end.name] = found.kept
        return found.kept

    def _refused_once(self) -> list[tuple[str, Rows]]:
        """The refused rows by place. A record has one letter at most of a place whose rows are single: all of them are
        one expression, because each letter is a tenth of the generated code."""
        if not self._frame.has_origin:
            return self._refused
        found = [(place, rows) for place, rows in self._refused if rows.is_many]
        for place in dict.fromkeys(place for place, rows in self._refused if not rows.is_many):
            rows = [each for name, each in self._refused if name == place and not each.is_many]
            reasons = [each.mapped(text_of(each.path(REJECTED))) for each in rows]
            column = self._frame.add(f"__reason_{place}", f"coalesce({', '.join(reasons)})")
            found.append((place, Rows({REJECTED: (column,)}, f"{quoted(column)} is not null")))
        return found


def group_columns(path: Path) -> frozenset[str]:
    """The columns by which rows are grouped, in lower case."""
    return frozenset(name.lower() for names in path.groups or () for name in names)


def record_rows(frame: Frame, source: Source) -> tuple[Rows, list[Rows]]:
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
    return rows, refused
