"""The statements that merge rows and change data into Delta and Iceberg tables.

Keys are compared with `<=>`, so that null is a key like any other, as it is for Spark's groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.change_data import HISTORY_COLUMNS, IS_DELETED
from odradek.pipelines.spark.hidden_columns import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import Changes

VALID_FROM, VALID_TO, IS_CURRENT = HISTORY_COLUMNS
IS_NEW = "odradek_is_new"


def same(names: Iterable[str]) -> str:
    return " AND ".join(f"kept.{quoted(name)} <=> arriving.{quoted(name)}" for name in names)


def assignments(names: Iterable[str]) -> str:
    return ", ".join(f"kept.{quoted(name)} = arriving.{quoted(name)}" for name in names)


def insertion(names: Sequence[str]) -> str:
    values = ", ".join(f"arriving.{quoted(name)}" for name in names)
    return f"INSERT ({', '.join(map(quoted, names))}) VALUES ({values})"


def merge_head(table: str, view: str, names: Iterable[str]) -> str:
    return f"MERGE INTO {table} AS kept USING {view} AS arriving ON {same(names)}"


def upsert_merge(table: str, view: str, key: Sequence[str], names: Sequence[str]) -> str:
    return (
        f"{merge_head(table, view, key)} WHEN MATCHED THEN UPDATE SET {assignments(names)} "
        f"WHEN NOT MATCHED THEN {insertion(names)}"
    )


def rows_schema(arriving: DataFrame) -> T.StructType:
    return T.StructType([each for each in arriving.schema.fields if each.name != IS_DELETED])


def history_schema(arriving: DataFrame, changes: Changes) -> T.StructType:
    rows = rows_schema(arriving)
    kind = next(each.dataType for each in rows.fields if each.name.lower() == changes.sequence.lower())
    return rows.add(VALID_FROM, kind).add(VALID_TO, kind).add(IS_CURRENT, T.BooleanType())


def deletions_of(arriving: DataFrame, changes: Changes) -> DataFrame:
    """The key and the sequence of the changes that delete."""
    return arriving.where(F.col(IS_DELETED)).select(*map(quoted, (*changes.key, changes.sequence)))


def deletions_merge(table: str, view: str, changes: Changes, sequence: str) -> str:
    """Keeps the last deletion of each key; with a history all of them, except those that a row has replaced."""
    names = [*changes.key, sequence]
    if changes.keeps_history:
        return (
            f"{merge_head(table, view, names)} WHEN MATCHED AND NOT arriving.{IS_DELETED} THEN DELETE "
            f"WHEN NOT MATCHED AND arriving.{IS_DELETED} THEN {insertion(names)}"
        )
    newer = f"arriving.{IS_DELETED} AND arriving.{quoted(sequence)} >= kept.{quoted(sequence)}"
    return (
        f"{merge_head(table, view, changes.key)} WHEN MATCHED AND {newer} THEN UPDATE SET {assignments([sequence])} "
        f"WHEN NOT MATCHED AND arriving.{IS_DELETED} THEN {insertion(names)}"
    )


def row_changes(arriving: DataFrame, deletions: DataFrame, changes: Changes) -> DataFrame:
    """The changes that are not older than a deletion of their key."""
    new, old = arriving.alias("new"), deletions.alias("old")
    matches = [new_column(name).eqNullSafe(old_column(name)) for name in changes.key]
    return new.join(old, [*matches, old_column(changes.sequence) > new_column(changes.sequence)], "left_anti")


def new_column(name: str) -> Column:
    return F.col(f"new.{quoted(name)}")


def old_column(name: str) -> Column:
    return F.col(f"old.{quoted(name)}")


def rows_merge(table: str, view: str, changes: Changes, names: Sequence[str]) -> str:
    sequence = quoted(changes.sequence)
    counts = f"arriving.{sequence} >= kept.{sequence}"
    return (
        f"{merge_head(table, view, changes.key)} "
        f"WHEN MATCHED AND {counts} AND arriving.{IS_DELETED} THEN DELETE "
        f"WHEN MATCHED AND {counts} THEN UPDATE SET {assignments(names)} "
        f"WHEN NOT MATCHED AND NOT arriving.{IS_DELETED} THEN {insertion(names)}"
    )


def changed_history(arriving: DataFrame, rows: DataFrame, deletions: DataFrame, changes: Changes) -> DataFrame:
    """The history of the keys in a batch: what is kept, and what arrives in its place; deletions are marked."""
    names = rows_schema(arriving).names
    keys = arriving.select(*map(quoted, changes.key)).distinct().alias("new")
    touched = [old_column(name).eqNullSafe(new_column(name)) for name in changes.key]
    kept = rows.alias("old").join(keys, touched, "left_semi").select(*map(quoted, names))
    gone = deletions.alias("old").join(keys, touched, "left_semi")
    every = (
        kept.withColumn(IS_DELETED, F.lit(False))
        .unionByName(gone.withColumn(IS_DELETED, F.lit(True)), allowMissingColumns=True)
        .withColumn(IS_NEW, F.lit(False))
        .unionByName(arriving.withColumn(IS_NEW, F.lit(True)))
    )
    identity = list(map(quoted, (*changes.key, changes.sequence)))
    whole = F.struct(*map(quoted, every.columns))
    points = every.groupBy(*identity).agg(F.max_by(whole, F.col(IS_NEW)).alias("point")).select("point.*")
    by_key = Window.partitionBy(*map(quoted, changes.key)).orderBy(quoted(changes.sequence))
    return (
        points.withColumn(VALID_FROM, F.col(quoted(changes.sequence)))
        .withColumn(VALID_TO, F.lead(VALID_FROM).over(by_key))
        .withColumn(IS_CURRENT, F.col(VALID_TO).isNull())
    )


def history_merge(table: str, view: str, changes: Changes, names: Sequence[str]) -> str:
    differs = f"arriving.{IS_NEW} OR NOT (kept.{VALID_TO} <=> arriving.{VALID_TO})"
    return (
        f"{merge_head(table, view, (*changes.key, VALID_FROM))} WHEN MATCHED AND arriving.{IS_DELETED} THEN DELETE "
        f"WHEN MATCHED AND ({differs}) THEN UPDATE SET {assignments(names)} "
        f"WHEN NOT MATCHED AND NOT arriving.{IS_DELETED} THEN {insertion(names)}"
    )
