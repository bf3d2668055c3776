"""Writes the rows of a sink to a Delta or Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import LakehouseTarget, LatestRows
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.spark.hidden_columns import quoted, visible_columns
from odradek.pipelines.spark.views import latest_rows
from odradek.pipelines.spark.writing.lakehouse import Writing, computed, table_of, upsert_merge, view_name

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, Sink
    from odradek.pipelines.spark.sinks.batches import RowsByName
    from odradek.pipelines.spark.writing.warehouse import BatchNumber


def write_lakehouse(
    sink: Sink, target: LakehouseTarget, tables: RowsByName, pipeline: Pipeline, batch: BatchNumber | None
) -> None:
    frame = tables.rows(sink.input)
    table = table_of(frame.sparkSession, target, pipeline)
    writing = Writing(table, f"{'' if batch is None else batch.query}/{sink.name}", batch, view_name(sink.name))
    names = visible_columns(frame, target.partition_by)
    rows = frame.select(*map(quoted, names))
    if sink.mode is not SinkMode.UPSERT:
        table.create(rows.schema, target.partition_by)
        listed = ", ".join(map(quoted, names))
        writing.run(rows, f"INSERT INTO {table.sql_name} ({listed}) SELECT {listed} FROM {writing.view}")
        return
    latest = computed(latest_rows(frame, LatestRows(target.key)))
    table.create(latest.schema, target.partition_by)
    writing.run(latest, upsert_merge(table.sql_name, writing.view, target.key, latest.columns))
