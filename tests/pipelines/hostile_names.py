"""Names and values that would end a name or a text in SQL, and what a database must have after they were written."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.querying import answer_by_database
from odradek.pipelines.spark.rebuilding import drop_table, swap_tables
from odradek.pipelines.spark.writing.databases import reading
from odradek.pipelines.spark.writing.table_changes import IS_DELETED, ChangeData, TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, Warehouse

NAMES = (
    "a'; drop table canary; --", 'a"; drop table canary; --', "a`b */ a /*", "%s %(x)s 100%", ":x a :b $1 ? {0}",
    "a\\", "a.b [x] (x)\n", "\u02bc\u201c\u201d", "select",
)  # fmt: skip
VALUES = (*NAMES, "", "\0", "a\0b", "'); drop table canary; --", "null", "\x1b[2J")
CANARY = TableChange("canary", T.StructType().add("id", T.LongType()), [(1,)], ("id",))


def check_names(url: str, warehouse: Warehouse) -> None:
    """Tables and columns of each name, and rows with hostile values, in each way to write them."""
    warehouse.write(None, [CANARY])
    for name in NAMES:
        check_name(url, warehouse, name)
    assert rows_of(url, "canary") == [(1,)]


def check_name(url: str, warehouse: Warehouse, name: str) -> None:
    value = f"{name} 2"
    schema = T.StructType().add(name, T.StringType()).add(value, T.LongType())
    marked = T.StructType([*schema.fields]).add(IS_DELETED, T.BooleanType())
    for number in (1, 2):
        rows = [(each, number) for each in VALUES]
        batch = BatchNumber(name, number)
        assert warehouse.write(batch, [TableChange(name, schema, rows, (name,), (value,), [("gone",)])])
    stored = [each.replace("\0", "\ufffd") if url.startswith("postgresql") else each for each in VALUES]
    assert rows_of(url, name) == sorted((each, 2) for each in stored)
    for keeps_history in (False, True):
        table = f"{name} of {keeps_history}"
        for number, is_deleted in enumerate((False, True)):
            changes = [(each, number, is_deleted) for each in VALUES]
            change = ChangeData(table, marked, changes, (name,), value, keeps_history)
            warehouse.write(BatchNumber(table, number), [change])
        assert len(rows_of(url, table)) == (len(VALUES) if keeps_history else 0)
    warehouse.write(None, [TableChange(f"{name} new", schema, [("a", 1)], (name,))])
    assert swap_tables(url, name, f"{name} new") == 1
    written, other = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in (name, value))
    (row,) = answer_by_database(f"select {written}, {other} from {written}", url).rows
    assert list(row.values()) == ["a", 1]
    drop_table(url, name)


def rows_of(url: str, table: str) -> list[tuple[Any, ...]]:
    with reading(url) as connection:
        found = sa.Table(table, sa.MetaData(), autoload_with=connection)
        return sorted(tuple(row) for row in connection.execute(sa.select(found)))
