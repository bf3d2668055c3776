"""Writes one batch to its sinks and views; tables and views are written in one transaction per database."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.errors import PySparkException

from odradek.pipelines.definition.model import (
    Changes,
    ConsoleTarget,
    FilesTarget,
    LatestRows,
    PythonTarget,
    SparkTarget,
    TableTarget,
    TopicTarget,
)
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.spark.change_data import changes_in
from odradek.pipelines.spark.hidden_columns import has_origin, quoted, visible_columns, without_hidden
from odradek.pipelines.spark.sessions.failures import PipelineError, message_with_location
from odradek.pipelines.spark.sessions.user_code import load_reference
from odradek.pipelines.spark.sinks.stored_columns import as_stored
from odradek.pipelines.spark.sinks.topics import records_of
from odradek.pipelines.spark.views import (
    is_one_group,
    latest_rows,
    order_value,
    running_aggregate,
    view_key,
    view_order,
)
from odradek.pipelines.spark.writing.change_data import ChangeData
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.kafka_records import Producer, producer_of
from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, warehouse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline, RunningAggregate, Sink, View

MOST_COLLECTED_ROWS = 10_000


class RowsByName(Protocol):
    """The rows of sources and steps by name."""

    def rows(self, name: str) -> DataFrame: ...


def topic_frames(sinks: Sequence[Sink], tables: RowsByName, pipeline: Pipeline) -> list[tuple[Producer, DataFrame]]:
    return [
        (producer_of(pipeline, sink.target), records_of(tables.rows(sink.input), sink, sink.target, pipeline))
        for sink in sinks
        if isinstance(sink.target, TopicTarget)
    ]


def write_other_sink(sink: Sink, tables: RowsByName, pipeline: Pipeline, batch_number: int) -> None:
    """Writes to a sink that is neither a topic nor a table."""
    target = sink.target
    frame = tables.rows(sink.input)
    if isinstance(target, SparkTarget):
        shown(frame).write.format(target.format).options(**target.options).mode("append").save()
    elif isinstance(target, FilesTarget):
        write_files(frame, target, pipeline)
    elif isinstance(target, ConsoleTarget):
        print(f"-- {sink.name}, batch {batch_number}")
        print_rows(shown(frame))
    elif isinstance(target, PythonTarget):
        call_sink(sink, target, frame, pipeline, batch_number)


def print_rows(frame: DataFrame) -> None:
    """Prints the first rows. All are computed, because Spark fails a stateful batch that is not read to its end."""
    frame.persist()
    try:
        frame.count()
        frame.show(truncate=False)
    finally:
        frame.unpersist()


def call_sink(sink: Sink, target: PythonTarget, frame: DataFrame, pipeline: Pipeline, batch_number: int) -> None:
    function = load_reference(target.function, pipeline.directory)
    try:
        function(without_hidden(frame), batch_number)
    except PySparkException:
        raise
    except Exception as error:
        raise PipelineError(f"{sink.place}: sink '{sink.name}': {message_with_location(error)}") from error


def write_files(frame: DataFrame, target: FilesTarget, pipeline: Pipeline) -> None:
    rows = shown(frame, target.partition_by)
    writer = rows.write.format(str(target.format)).options(**target.options).mode("append")
    writer.partitionBy(*target.partition_by).save(pipeline.below(target.path))


def shown(frame: DataFrame, named: Iterable[str] = ()) -> DataFrame:
    """The columns that a sink writes; `named` are those that its definition names."""
    return frame.select(*(quoted(name) for name in visible_columns(frame, named)))


def write_tables(
    sinks: Sequence[Sink],
    views: Sequence[View],
    tables: RowsByName,
    pipeline: Pipeline,
    batch: BatchNumber | None,
    written: Counter[str],
    *,
    is_aggregated: bool,
) -> None:
    """Writes tables and views in one transaction per database; `is_aggregated` if the rows are a view's groups.

    Adds the number of rows to `written`, by sink and view, if the batch was not written before."""
    changes: dict[str, list[TableChange | ChangeData]] = {}
    rows: dict[str, Counter[str]] = {}  # by database

    def add(url: str | None, name: str, change: TableChange | ChangeData) -> None:
        chosen = database_url(pipeline, url)
        counts = rows.setdefault(chosen, Counter())
        changes.setdefault(chosen, []).append(replace(change, rows=counted(change.rows, name, counts)))

    for sink in sinks:
        target = sink.target
        if isinstance(target, TableTarget):
            add(target.url, sink.name, sink_change(tables.rows(sink.input), sink, target))
    for view in views:
        add(view.url, view.name, view_change(tables.rows(view.input), view, is_aggregated))
    for url, found in changes.items():
        if warehouse(url).write(batch, found):
            written.update(rows[url])


def counted(rows: Iterable[Any], name: str, counts: Counter[str]) -> Iterator[Any]:
    for row in rows:
        counts[name] += 1
        yield row


def sink_change(frame: DataFrame, sink: Sink, target: TableTarget) -> TableChange | ChangeData:
    if target.changes is not None:
        return change_data_of(frame, target.table, target.changes)
    if sink.mode is not SinkMode.UPSERT:
        return change_of(shown(frame), target.table, ())
    return change_of(table_rows(frame, target), target.table, target.key, target.order_column)


def view_change(frame: DataFrame, view: View, is_aggregated: bool) -> TableChange | ChangeData:
    content = view.content
    if isinstance(content, Changes):
        return change_data_of(frame, view.name, content)
    rows = view_rows(frame, content, is_aggregated)
    change = change_of(rows, view.name, view_key(content), view_order(content))
    return replace(change, is_whole=is_one_group(content))


def table_rows(frame: DataFrame, target: TableTarget) -> DataFrame:
    """The rows of a table with a key: the latest of each key.

    Without `order_by` and without origin records, the order of the frame is that of the rows' arrival, and the last row
    of a key replaces the others when it is written."""
    if target.order_column is None and not has_origin(frame):
        return shown(frame, target.key)
    return latest_rows(frame, LatestRows(target.key, target.order_by))


def view_rows(frame: DataFrame, content: LatestRows | RunningAggregate, is_aggregated: bool) -> DataFrame:
    if isinstance(content, LatestRows):
        return latest_rows(frame, content).coalesce(1)  # one row per key is small enough for one job
    return shown(frame if is_aggregated else running_aggregate(frame, content))


def change_of(frame: DataFrame, table: str, key: tuple[str, ...], order_by: str | None = None) -> TableChange:
    flat = as_stored(frame, table, order_by)
    spelled = {name.lower(): name for name in flat.columns}
    order = None if order_by is None else spelled[order_by.lower()]
    if order is not None:
        flat = flat.withColumn(order, order_value(flat, order))
    keys = tuple(spelled[name.lower()] for name in key)
    return TableChange(table, flat.schema, rows_of(flat), keys, () if order is None else (order,))


def change_data_of(frame: DataFrame, table: str, changes: Changes) -> ChangeData:
    flat = as_stored(changes_in(frame, changes), table, changes.sequence)
    spelled = {name.lower(): name for name in flat.columns}
    key = tuple(spelled[name.lower()] for name in changes.key)
    remember = None if changes.remember is None else timedelta(milliseconds=changes.remember.milliseconds)
    sequence = spelled[changes.sequence.lower()]
    return ChangeData(table, flat.schema, rows_of(flat), key, sequence, changes.keeps_history, remember)


def rows_of(frame: DataFrame) -> Iterable[Any]:
    """The rows for the driver: few rows are collected before the transaction starts, many one partition at a time."""
    rows = frame.toLocalIterator(prefetchPartitions=True)
    return chain(list(islice(rows, MOST_COLLECTED_ROWS)), rows)
