"""The frames of each end of a batch: all tables of a database in one transaction, files, Spark's sinks, functions."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import PySparkException

from odradek.pipelines.definition.model import (
    ConsoleTarget,
    FilesTarget,
    LakehouseTarget,
    PythonTarget,
    SparkTarget,
    TableTarget,
    TopicTarget,
)
from odradek.pipelines.planning.plan import EndMode
from odradek.pipelines.planning.splitting import is_of_current_groups
from odradek.pipelines.spark.frames import column, without_internal
from odradek.pipelines.spark.sessions.failures import PipelineError, message_with_location
from odradek.pipelines.spark.sessions.user_code import load_reference
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.kafka_records import by_producer, write_to_cluster
from odradek.pipelines.spark.writing.lakehouse import write_lakehouse
from odradek.pipelines.spark.writing.latest_rows import latest, lost_groups, whole_order
from odradek.pipelines.spark.writing.stored_values import as_stored, dialect_of, shown_names
from odradek.pipelines.spark.writing.table_changes import IS_DELETED, ChangeData, TableChange, with_deletions
from odradek.pipelines.spark.writing.warehouse import warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Changes, Pipeline
    from odradek.pipelines.planning.plan import End, Flow, Plan
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.writing.kafka_records import Producer
    from odradek.pipelines.spark.writing.warehouse import BatchNumber

MOST_COLLECTED_ROWS = 10_000


class BatchId(int):
    """The number of a batch for functions of the user. Numbers start over with a new checkpoint, after a reset and in
    each run over all records.

    `checkpoint` is different then: a batch is the same only if both are equal."""

    checkpoint: str

    def __new__(cls, number: int, checkpoint: str) -> Self:
        made = super().__new__(cls, number)
        made.checkpoint = checkpoint
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[int, str]]:
        return type(self), (int(self), self.checkpoint)


def shown(frame: DataFrame, end: End) -> DataFrame:
    return frame.select(*map(column, shown_names(frame, end)))


def write_rows(pipeline: Pipeline, end: End, tables: RowsByName, number: int) -> None:
    """Writes to an end that is neither a topic nor a table."""
    target, frame = end.target, tables.of_end(end)
    if isinstance(target, SparkTarget):
        shown(frame, end).write.format(target.format).options(**target.options).mode("append").save()
    elif isinstance(target, FilesTarget):
        writer = shown(frame, end).write.format(str(target.format)).options(**target.options).mode("append")
        writer.partitionBy(*target.partition_by).save(pipeline.below(target.path))
    elif isinstance(target, ConsoleTarget):
        print(f"-- {end.name}, batch {number}")
        print_rows(shown(frame, end))
    elif isinstance(target, PythonTarget):
        call_function(end, target, frame, pipeline, number)


def print_rows(frame: DataFrame) -> None:
    """Prints the first rows. All are computed, because Spark fails a stateful batch that is not read to its end."""
    frame.persist()
    try:
        frame.count()
        frame.show(truncate=False)
    finally:
        frame.unpersist()


def call_function(end: End, target: PythonTarget, frame: DataFrame, pipeline: Pipeline, number: int) -> None:
    function = load_reference(target.function, pipeline.directory)
    try:
        function(without_internal(frame), number)
    except PySparkException:
        raise
    except Exception as error:
        raise PipelineError(f"{end.place}: sink '{end.name}': {message_with_location(error)}") from error


def write_tables(plan: Plan, flow: Flow, tables: RowsByName, stamp: BatchNumber, written: Counter[str]) -> None:
    """Writes the tables of each database in one transaction. Adds the number of their rows to `written`, by end, if the
    batch was not written before."""
    changes: dict[str, list[TableChange | ChangeData]] = {}
    rows: dict[str, Counter[str]] = {}  # by database
    for end in flow.ends:
        if isinstance(end.target, TableTarget):
            url = database_url(plan.pipeline, end.target.url)
            change = change_of(plan, flow, end, end.target, tables)
            counts = rows.setdefault(url, Counter())
            changes.setdefault(url, []).append(replace(change, rows=counted(change.rows, end.name, counts)))
    for url, found in changes.items():
        if warehouse(url).write(stamp, found):
            written.update(rows[url])


def counted(rows: Iterable[Any], name: str, counts: Counter[str]) -> Iterator[Any]:
    for row in rows:
        counts[name] += 1
        yield row


def change_of(plan: Plan, flow: Flow, end: End, target: TableTarget, tables: RowsByName) -> TableChange | ChangeData:
    """What a batch changes in a table."""
    dialect = dialect_of(plan.pipeline, target)
    frame = tables.of_end(end)
    if end.mode is EndMode.CHANGES and target.changes is not None:
        return change_data_of(frame, end, target.table, target.changes, dialect)
    stored, schema = as_stored(frame, shown_names(frame, end), dialect)
    if end.mode is not EndMode.KEYED:
        return TableChange(target.table, schema, rows_of(without_internal(stored)))
    key, order_by = _spelled(frame, end.key), _spelled(frame, end.order_by)
    rows = rows_of(without_internal(latest(stored, key, order_by)))
    if is_of_current_groups(plan, end):
        lost = lost_groups(plan, flow, end, tables, frame, dialect)
        replaced = () if lost is None else rows_of(as_stored(lost, lost.columns, dialect)[0])
        return TableChange(target.table, schema, rows, key, (), replaced, is_whole=not key)
    order = whole_order(schema.names, key, order_by) if order_by else ()
    return TableChange(target.table, schema, rows, key, order)


def change_data_of(frame: DataFrame, end: End, table: str, changes: Changes, dialect: str) -> ChangeData:
    key, (sequence,) = _spelled(frame, changes.key), _spelled(frame, (changes.sequence,))
    names = shown_names(frame, end)
    stored, schema = as_stored(with_deletions(frame, changes.deletes), [*names, IS_DELETED], dialect)
    remember = None if changes.remember is None else timedelta(milliseconds=changes.remember.milliseconds)
    ties = whole_order(schema.names[:-1], (*key, sequence), ())
    made = ChangeData(table, schema, (), key, sequence, changes.keeps_history, remember, ties)
    return replace(made, rows=rows_of(latest(stored, made.identity, made.order_by)))


def rows_of(frame: DataFrame) -> Iterable[Any]:
    """The rows for the driver: few rows are collected before the transaction starts, many one partition at a time."""
    rows = frame.toLocalIterator(prefetchPartitions=True)
    return chain(list(islice(rows, MOST_COLLECTED_ROWS)), rows)


def _spelled(frame: DataFrame, names: Iterable[str]) -> tuple[str, ...]:
    """The names as the frame spells them."""
    spelled = {each.lower(): each for each in frame.columns}
    return tuple(spelled[each.lower()] for each in names)


def outputs_of(
    plan: Plan,
    flow: Flow,
    tables: RowsByName,
    records: Iterable[tuple[Producer, DataFrame]],
    stamp: BatchNumber,
    in_transactions: Callable[[Producer, Sequence[DataFrame]], None] | None,
    written: Counter[str],
) -> list[functools.partial[None]]:
    """The outputs in the order in which they are written: those that recognize a replayed batch first, then those that
    would repeat it. User code, which is the likeliest to fail, is before topics that would repeat their records. The
    rows of tables are added to `written`, by end, when they are written."""
    once: list[functools.partial[None]] = []
    repeated: list[functools.partial[None]] = []
    if any(isinstance(each.target, TableTarget) for each in flow.ends):
        once.append(functools.partial(write_tables, plan, flow, tables, stamp, written))
    for end in flow.ends:
        if isinstance(end.target, LakehouseTarget):
            once.append(functools.partial(write_lakehouse, plan, flow, end, end.target, tables, stamp))
        elif not isinstance(end.target, TopicTarget | TableTarget):
            number = BatchId(stamp.number, stamp.query)
            repeated.append(functools.partial(write_rows, plan.pipeline, end, tables, number))
    write_records = in_transactions or write_to_cluster
    topics = [functools.partial(write_records, *each) for each in by_producer(records).items()]
    return [*once, *repeated, *topics] if in_transactions is None else [*once, *topics, *repeated]
