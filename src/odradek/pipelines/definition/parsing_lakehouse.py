"""`lakehouse:` of a sink: Delta and Iceberg tables."""

from __future__ import annotations

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.model import LakehouseTarget
from odradek.pipelines.definition.vocabulary import LakehouseFormat, LakehouseMode

LAKEHOUSE_KEYS = ("format", "table", "path", "key", "mode", "partition_by")


def lakehouse_target(fields: Fields) -> LakehouseTarget | None:
    node = fields.node("lakehouse")
    assert node is not None
    inner = Fields(node, LAKEHOUSE_KEYS, f"lakehouse of {fields.what}", fields.problems)
    name = inner.choice("format", LakehouseFormat, LakehouseFormat.DELTA)
    if "format" not in inner:
        inner.missing("format", "add format: delta or format: iceberg")
    where = inner.chosen(("table", "path"), hint="name it: table: sales.orders, or path: lake/orders")
    table, path = inner.text("table"), inner.text("path")
    key, partition_by = inner.words("key"), inner.words("partition_by")
    mode = inner.choice("mode", LakehouseMode, LakehouseMode.MERGE if key else LakehouseMode.APPEND)
    if mode is LakehouseMode.MERGE and not key:
        inner.problems.error(inner.place, f"{inner.what} has mode: merge but no key", "name the key columns: key: [id]")
    elif mode is LakehouseMode.APPEND and key:
        inner.problems.error(
            inner.key_place("key"), f"{inner.what} has a key, and its rows are appended", "remove key, or mode: append"
        )
    if name is LakehouseFormat.ICEBERG and path is not None:
        inner.problems.error(
            inner.key_place("path"),
            f"{inner.what} has a path, and Iceberg tables are found by their name in a catalog",
            "write table: catalog.schema.name, and set the catalog under spark: of the pipeline",
        )
    return None if where is None else LakehouseTarget(name, table, path, key, partition_by)
