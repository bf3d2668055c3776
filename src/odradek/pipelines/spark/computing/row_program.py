"""A row program: the steps, checks and outputs of a flow as columns of one frame over the rows of its root.

The frame is analysed once, when the query starts, and not for each batch. Counts are taken with `observe`.

Spark optimizes the plan of a stream for each batch, which takes as long as a small batch itself. The plan of a row
program is the same for every batch: the optimized plan is put into the frame once, and the query excludes the rules of
the optimizer that have been applied. A private name that has changed costs time and no results: Spark then optimizes
the plan of every batch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame

from odradek.pipelines.definition.model import Source, TableTarget, TopicOrigin, TopicTarget
from odradek.pipelines.definition.vocabulary import Delivery, Otherwise
from odradek.pipelines.planning.plan import OutputMode, RowSql
from odradek.pipelines.planning.splitting import is_of_current_groups
from odradek.pipelines.spark.computing.counts import OBSERVED, Count, Kind, observing
from odradek.pipelines.spark.computing.encoding import dead_letters, records_of_column, together
from odradek.pipelines.spark.computing.rows import NotCompilable, Rows, all_of
from odradek.pipelines.spark.computing.tables import Tables, group_columns
from odradek.pipelines.spark.frames import ORIGIN, quoted
from odradek.pipelines.spark.reading.records import decoded
from odradek.pipelines.spark.sessions.private_names import PLANNING, analysed_plan, items, or_plainly, private
from odradek.pipelines.spark.writing.delivery import origin_split
from odradek.pipelines.spark.writing.kafka_records import producer_of
from odradek.pipelines.spark.writing.transactional_writer import SPLIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.planning.plan import End, Flow, Plan
    from odradek.pipelines.spark.computing.encoding import Encoded
    from odradek.pipelines.spark.computing.rows import TableColumn
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.writing.kafka_records import Producer

    Records = list[tuple[Producer, DataFrame]]
    from pyspark.sql import SparkSession

GROUPS = "__groups"  # the table of the groups of a batch
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


class Write(Protocol):
    """Writes the rows of tables and the records of a batch; adds the rows of tables to `rows`, by end."""

    def __call__(self, tables: RowsByName, records: Records, rows: Counter[str]) -> None: ...


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

    def records_in(self, batch: DataFrame) -> Records:
        return [(producer, records_of_column(batch, column)) for producer, column in self.records.items()]

    def rows(self, batch: DataFrame, name: str) -> DataFrame:
        return self.tables[name].read(batch)


def row_program(plan: Plan, flow: Flow, root: DataFrame) -> RowProgram:
    """Compiles a flow over its root: the records of a topic as Spark reads them, or rows before their checks.

    Raises `NotCompilable` for what would be another table than in Spark."""
    for table in map(plan.table, flow.after):
        if not isinstance(table.made_by, RowSql) or not table.made_by.shape.is_plain:
            raise NotCompilable(f"{table.described} is no plain SELECT of one table")
    tables = Tables(root.sparkSession, plan, _unread, flow.mode, flow.owned, program=flow)
    source = plan.table(flow.root).made_by
    is_of_topic = isinstance(source, Source) and isinstance(source.origin, TopicOrigin)
    if isinstance(source, Source) and is_of_topic:
        tables.give_decoded(flow.root, decoded(root, source))
    else:
        tables.give_before_checks(flow.root, root)
    made = {name: tables.checked(name) for name in (flow.root, *flow.after)}
    counts = [count for name in made for count in tables.observed(name)]
    refused = [(plan.table(name).owner.name, rows) for name, each in made.items() for rows in each.refused]
    encoded: dict[Producer, list[Encoded]] = {}
    columns: dict[str, Rows] = {}  # of what is read as tables
    for end in flow.ends:
        each = tables.end(end)
        counts += each.counts
        refused += [(end.name, rows) for rows in each.refused]
        if not isinstance(end.target, TableTarget):
            counts.append(Count(Kind.WRITTEN, end.name, each.rows.count()))
        if isinstance(end.target, TopicTarget) and each.encoded is not None:
            encoded.setdefault(producer_of(plan.pipeline, end.target), []).append(each.encoded)
            continue
        if each.counts:
            columns[rows_of_end(end)] = each.rows
        if not each.counts or is_of_current_groups(plan, end):
            columns[end.input] = made[plan.table(end.input).name].rows
    frame = made[flow.root].frame
    if plan.pipeline.dead_letters is not None and refused:
        letters = dead_letters(frame, plan.pipeline, refused)
        encoded.setdefault(producer_of(plan.pipeline), []).extend(letters)
    if flow.mode is OutputMode.UPDATE:
        wanted = group_columns(plan.path(flow.root))
        columns[GROUPS] = Rows({name: (name,) for name in root.columns if name.lower() in wanted})
    records = {
        producer: frame.add(f"__written_{number}", together(every))
        for number, (producer, every) in enumerate(encoded.items())
    }
    read = {name: frame.add_table(f"__table_{name}", rows) for name, rows in columns.items()}
    whole = frame.frame
    if is_of_topic and plan.pipeline.delivery is Delivery.EXACTLY_ONCE:
        whole = whole.withColumn(SPLIT, origin_split())
    before = map(plan.table, plan.upstream(flow.root)[:-1])
    is_checked = any(each.otherwise is Otherwise.FAIL for table in before for each in table.checks)
    must_hold = tuple(condition for each in made.values() for condition in each.must_hold)
    return RowProgram(whole, records, read, tuple(counts), must_hold, is_of_topic, is_checked)


def _unread(source: Source) -> DataFrame:
    raise AssertionError(f"a row program reads its root alone, not {source.name}")


def rows_of_end(end: End) -> str:
    """The table with the rows of an end that cannot store all of its input."""
    return f"__{end.described}"


@dataclass(frozen=True, slots=True)
class ProgramRows:
    """The rows of a batch of a program, by table."""

    program: RowProgram
    batch: DataFrame

    def rows(self, name: str) -> DataFrame:
        return self.program.rows(self.batch, name)

    def of_end(self, end: End) -> DataFrame:
        own = rows_of_end(end)
        return self.rows(own if own in self.program.tables else end.input)

    def groups(self, _flow: Flow) -> DataFrame | None:
        return self.rows(GROUPS).drop(ORIGIN).distinct() if GROUPS in self.program.tables else None


def write_program(program: RowProgram, flow: Flow, batch: DataFrame, write: Write) -> Counter[str]:
    """Computes a batch of a program once, and writes it; returns the rows of tables, by end."""
    others = [each for each in flow.ends if not isinstance(each.target, TopicTarget)]
    is_kept = program.can_fail or len(program.records) + len(others) > 1
    frame, rows = batch.persist() if is_kept else batch, Counter[str]()
    try:
        if program.can_fail or not (program.records or others):
            frame.count()  # a check with otherwise: fail raises here, before anything is written
        write(ProgramRows(program, frame), program.records_in(frame), rows)
    finally:
        if is_kept:
            frame.unpersist()
    return rows


def optimized(frame: DataFrame) -> DataFrame:
    """The frame with its optimized plan; unchanged if the plan reads the clock, which would become a constant."""
    return or_plainly(PLANNING, lambda: _with_optimized_plan(frame), frame)


def _with_optimized_plan(frame: DataFrame) -> DataFrame:
    session, plan = frame.sparkSession, analysed_plan(frame)
    jvm = private(session, "jvm")
    has_clock_words = not private(jvm, "clock words").apply(plan).fastEquals(plan)  # cast('today' as date)
    if has_clock_words or private(plan, "contains")(private(jvm, "clock pattern")()):
        return frame
    better = private(_optimizer_of(session), "execute")(plan)
    return DataFrame(private(jvm, "dataset")(private(session, "session"), better), session)


def redundant_rules(session: SparkSession) -> str:
    """The rules to exclude for an optimized plan, as a Spark setting; includes the user's exclusions."""
    chosen = session.conf.get(EXCLUDED_RULES, "") or ""
    return or_plainly(PLANNING, lambda: _excludable_rules(session, chosen), chosen)


def _excludable_rules(session: SparkSession, chosen: str) -> str:
    optimizer = _optimizer_of(session)
    needed = set(items(private(optimizer, "needed rules")()))
    names = [rule.ruleName() for batch in items(private(optimizer, "batches")()) for rule in items(batch.rules())]
    needless = [name for name in names if name not in needed and name.startswith("org.apache.spark.sql.")]
    return ",".join(dict.fromkeys([*filter(None, chosen.split(",")), *needless]))


def _optimizer_of(session: SparkSession) -> Any:
    return private(private(private(session, "session"), "state")(), "optimizer")()
