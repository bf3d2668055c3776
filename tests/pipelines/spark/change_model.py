"""A model of change data: what a table has after changes in the order of their arrival, and generated changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.writing.table_changes import IS_DELETED, ChangeData
from odradek.pipelines.spark.writing.warehouse import BatchNumber, Warehouse

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = (
    T.StructType()
    .add("id", T.LongType())
    .add("region", T.StringType())
    .add("lsn", T.LongType())
    .add("value", T.LongType())
    .add(IS_DELETED, T.BooleanType())
)
NUMBERS = st.integers(0, 8)
TEXT_SCHEMA = T.StructType([T.StructField("lsn", T.StringType()) if each.name == "lsn" else each for each in SCHEMA])


@dataclass(frozen=True)
class Change:
    id: int
    region: str
    lsn: Any
    value: int
    is_deleted: bool

    @property
    def row(self) -> tuple[Any, ...]:
        return (self.id, self.region, self.lsn, self.value, self.is_deleted)


def current_rows(changes: Sequence[Change]) -> set[tuple[Any, ...]]:
    last: dict[tuple[Any, ...], Change] = {}
    for each in changes:
        known = last.get((each.id, each.region))
        if known is None or each.lsn >= known.lsn:
            last[(each.id, each.region)] = each
    return {each.row[:-1] for each in last.values() if not each.is_deleted}


def history_rows(changes: Sequence[Change]) -> set[tuple[Any, ...]]:
    by_key: dict[tuple[Any, ...], dict[Any, Change]] = {}
    for each in changes:
        by_key.setdefault((each.id, each.region), {})[each.lsn] = each
    found = set()
    for points in by_key.values():
        ordered = sorted(points)
        for point, after in zip(ordered, [*ordered[1:], None], strict=True):
            if not points[point].is_deleted:
                found.add((*points[point].row[:-1], point, after, after is None))
    return found


def change_lists(sequences: Any = NUMBERS) -> Any:
    change = st.builds(
        Change, st.integers(1, 2), st.sampled_from(["north", "South"]), sequences, st.integers(0, 99), st.booleans()
    )
    return st.lists(change, max_size=16)


def batches_of(changes: Sequence[Change], cuts: Sequence[int]) -> list[list[Change]]:
    edges = sorted({0, len(changes), *(cut % (len(changes) + 1) for cut in cuts)})
    return [list(changes[start:end]) for start, end in pairwise(edges)]


def decided(changes: Sequence[Change]) -> list[Change]:
    """One change of each sequence: a deletion, or the one with the greatest value."""
    found: dict[tuple[Any, ...], Change] = {}
    for each in sorted(changes, key=lambda change: (change.is_deleted, change.value)):
        found[(each.id, each.region, each.lsn)] = each
    return list(found.values())


def write(
    warehouse: Warehouse, table: str, batches: Sequence[Sequence[Change]], *, history: bool, has_ties: bool = False
) -> None:
    is_text = any(isinstance(each.lsn, str) for batch in batches for each in batch)
    schema = TEXT_SCHEMA if is_text else SCHEMA
    for number, batch in enumerate(batches):
        rows, ties = [each.row for each in batch], ("value",) if has_ties else None
        data = ChangeData(table, schema, rows, ("id", "region"), "lsn", history, ties=ties)
        assert warehouse.write(BatchNumber(table, number), [data])
        assert not warehouse.write(BatchNumber(table, number), [data])


def stored(warehouse: Warehouse, table: str) -> set[tuple[Any, ...]]:
    with warehouse.engine.begin() as connection:
        if not sa.inspect(connection).has_table(table):
            return set()
        found = sa.Table(table, sa.MetaData(), autoload_with=connection)
        return {tuple(row) for row in connection.execute(sa.select(found))}
