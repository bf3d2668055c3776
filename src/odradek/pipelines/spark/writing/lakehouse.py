"""Writes a batch to a Delta or Iceberg table, once.

The commit of a batch contains its number. Delta compares it itself (`txnAppId` and `txnVersion`), Iceberg has it as a
property of the snapshot, which is read before the write.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import LakehouseFormat
from odradek.pipelines.planning.plan import EndMode
from odradek.pipelines.planning.splitting import is_of_current_groups
from odradek.pipelines.spark.frames import column, quoted
from odradek.pipelines.spark.writing.latest_rows import latest, lost_groups
from odradek.pipelines.spark.writing.stored_values import shown_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import LakehouseTarget, Pipeline
    from odradek.pipelines.planning.plan import End, Flow, Plan
    from odradek.pipelines.spark.frames import RowsByName
    from odradek.pipelines.spark.writing.warehouse import BatchNumber

RECENT_COMMITS = 20
DELTA_APP, DELTA_VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
DELTA_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
ICEBERG_PROPERTY = "spark.sql.iceberg.snapshot-property"
IS_LOST = "__is_lost"  # marks the key of a group whose row is not written any more
WRITER, BATCH = "odradek-writer", "odradek-batch"


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta or Iceberg table: its format, and its name in SQL."""

    session: SparkSession
    format: LakehouseFormat
    sql_name: str

    def create(self, schema: T.StructType, partition_by: Sequence[str]) -> None:
        """Creates the table if it does not exist."""
        by = f" PARTITIONED BY ({', '.join(map(quoted, partition_by))})" if partition_by else ""
        if self.format is LakehouseFormat.ICEBERG:
            namespace = self.sql_name.rpartition(".")[0]
            if "." in namespace:
                self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        columns = ", ".join(f"{quoted(each.name)} {type_ddl(each.dataType)}" for each in schema.fields)
        self.session.sql(f"CREATE TABLE IF NOT EXISTS {self.sql_name} ({columns}) USING {self.format}{by}")

    def is_written(self, writer: str, batch: BatchNumber) -> bool:
        """Whether the table has this batch. For Delta, among the recent commits: others are recognized by the write."""
        if self.format is LakehouseFormat.ICEBERG:
            found = self.session.sql(
                f"SELECT max(CAST(summary['{BATCH}'] AS BIGINT)) FROM {self.sql_name}.snapshots "
                f"WHERE summary['{WRITER}'] = '{writer}'"
            ).first()
            return found is not None and found[0] is not None and found[0] >= batch.number
        recent = self.session.sql(f"DESCRIBE HISTORY {self.sql_name} LIMIT {RECENT_COMMITS}")
        return not recent.where(recent["userMetadata"] == note_of(writer, batch)).isEmpty()

    def commit_settings(self, writer: str, batch: BatchNumber) -> Mapping[str, str]:
        """The settings by which the next commit contains the batch."""
        if self.format is LakehouseFormat.ICEBERG:
            return {f"{ICEBERG_PROPERTY}.{WRITER}": writer, f"{ICEBERG_PROPERTY}.{BATCH}": str(batch.number)}
        return {DELTA_APP: writer, DELTA_VERSION: str(batch.number), DELTA_NOTE: note_of(writer, batch)}


def type_ddl(kind: T.DataType) -> str:
    """A type in DDL, with the names of fields in quotes, which `simpleString` does not add."""
    if isinstance(kind, T.StructType):
        return f"struct<{', '.join(f'{quoted(each.name)}: {type_ddl(each.dataType)}' for each in kind.fields)}>"
    if isinstance(kind, T.ArrayType):
        return f"array<{type_ddl(kind.elementType)}>"
    if isinstance(kind, T.MapType):
        return f"map<{type_ddl(kind.keyType)}, {type_ddl(kind.valueType)}>"
    return kind.simpleString()


def note_of(writer: str, batch: BatchNumber) -> str:
    return f"{writer} {batch.number}"


def write_lakehouse(
    plan: Plan, flow: Flow, end: End, target: LakehouseTarget, tables: RowsByName, stamp: BatchNumber
) -> None:
    frame = tables.of_end(end)
    table = table_of(frame.sparkSession, target, plan.pipeline)
    writing = Writing(table, f"{stamp.query}/{end.name}", stamp, quoted(f"odradek_arriving_{end.name}"))
    names = shown_names(frame, end)
    if end.mode is not EndMode.KEYED:
        rows = frame.select(*map(column, names))
        table.create(rows.schema, target.partition_by)
        listed = ", ".join(map(quoted, names))
        writing.run(rows, f"INSERT INTO {table.sql_name} ({listed}) SELECT {listed} FROM {writing.view}")
        return
    rows = latest(frame, end.key, ()).select(*map(column, names))
    table.create(rows.schema, target.partition_by)
    lost = lost_groups(plan, flow, end, tables, frame, "") if is_of_current_groups(plan, end) else None
    if lost is not None:
        lost = lost.withColumn(IS_LOST, F.lit(True))
        rows = rows.withColumn(IS_LOST, F.lit(False)).unionByName(lost, allowMissingColumns=True)
    merge = upsert_merge(table.sql_name, writing.view, end.key, names, has_lost=lost is not None)
    writing.run(computed(rows), merge)


def upsert_merge(table: str, view: str, key: Sequence[str], names: Sequence[str], *, has_lost: bool = False) -> str:
    """The statement that merges rows. Keys are compared with `<=>`: null is a key like any other, as in a group. With
    `has_lost`, rows may be keys to delete."""
    same = " AND ".join(f"kept.{quoted(name)} <=> arriving.{quoted(name)}" for name in key)
    assigned = ", ".join(f"kept.{quoted(name)} = arriving.{quoted(name)}" for name in names)
    values = ", ".join(f"arriving.{quoted(name)}" for name in names)
    deleting = f"WHEN MATCHED AND arriving.{IS_LOST} THEN DELETE " if has_lost else ""
    is_row = f" AND NOT arriving.{IS_LOST}" if has_lost else ""
    return (
        f"MERGE INTO {table} AS kept USING {view} AS arriving ON {same} {deleting}WHEN MATCHED THEN UPDATE SET "
        f"{assigned} WHEN NOT MATCHED{is_row} THEN INSERT ({', '.join(map(quoted, names))}) VALUES ({values})"
    )


def computed(rows: DataFrame) -> DataFrame:
    """The rows, computed once. A merge into an Iceberg table reads its rows twice, and Spark refuses those with a
    position in the batch, which another computation could change."""
    return rows.localCheckpoint()


@dataclass(frozen=True, slots=True)
class Writing:
    """One write of a batch to a table; `view` is the name that its SQL has for the rows."""

    table: Table
    writer: str
    batch: BatchNumber
    view: str

    def run(self, rows: DataFrame, statement: str) -> None:
        """Runs a statement over the rows, unless the table has the batch."""
        session = self.table.session
        if self.table.is_written(self.writer, self.batch):
            rows.write.format("noop").mode("overwrite").save()  # Spark fails a stateful batch that is not read
            return
        rows.createOrReplaceTempView(self.view)
        with applied(session, self.table.commit_settings(self.writer, self.batch)):
            session.sql(statement)


@contextmanager
def applied(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings for a statement; the session belongs to one query, and a query runs one batch at a time."""
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            session.conf.unset(key)


def table_of(session: SparkSession, target: LakehouseTarget, pipeline: Pipeline) -> Table:
    if target.table is not None:
        return Table(session, target.format, ".".join(map(quoted, target.table.split("."))))
    return Table(session, target.format, f"{target.format}.{quoted(pipeline.below(target.path or ''))}")
