"""The rows of a table with a key: one of each key of a batch, and the order in which it may replace what is stored.

All rows are compared as they are stored, so that any cut into batches gives the same table: first the columns of
`order_by`, then the others, null being the least.

Of current groups, a batch has all that changed. The steps behind the table of groups may remove rows, such as those
that do not meet HAVING: the rows of such groups are deleted. They carry the group columns unchanged to the key of the
end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.paths import path_of
from odradek.pipelines.planning.plan import RowSql
from odradek.pipelines.spark.frames import INTERNAL, ORIGIN, column, has_origin, quoted
from odradek.pipelines.spark.writing.stored_values import unstorable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.planning.plan import End, Flow, Plan, Table
    from odradek.pipelines.spark.frames import RowsByName

POSITION, LATEST = "__position", "__latest"
REFUSING = frozenset({Otherwise.DROP, Otherwise.QUARANTINE})


def whole_order(names: Sequence[str], key: Sequence[str], order_by: Sequence[str]) -> tuple[str, ...]:
    """The columns by which rows of one key are compared: `order_by`, and those that decide a tie."""
    first = [name for name in order_by if name not in key]
    return (*first, *(name for name in names if name not in {*key, *first}))


def latest(frame: DataFrame, key: Sequence[str], order_by: Sequence[str]) -> DataFrame:
    """The greatest row of each key of a batch. Without `order_by` that of the last record, of the rows of one record
    the last; rows without a record are groups, of which each key has one."""
    names = [name for name in frame.columns if name not in INTERNAL]
    keys = [column(name) for name in key]
    if order_by:
        order = whole_order(names, key, order_by)
        if not order:
            return frame.select(*keys).distinct()
        greatest = F.max(F.struct(*map(column, order)))
        rows = frame.groupBy(*keys).agg(greatest.alias(LATEST)).select(*keys, f"{LATEST}.*")
        return rows.select(*map(column, names)).coalesce(1)  # one row of each key is small enough for one job
    if not has_origin(frame):
        return frame
    placed = frame.withColumn(POSITION, F.monotonically_increasing_id())
    arrival = F.struct(F.col(f"{ORIGIN}.offset"), F.col(f"{ORIGIN}.partition"), F.col(POSITION))
    last = F.max_by(F.struct(*map(column, names)), arrival)
    return placed.groupBy(*keys).agg(last.alias(LATEST)).select(f"{LATEST}.*").coalesce(1)


def table_of_groups(plan: Plan, end: End) -> str:
    name = plan.path(end.input).grouped_by
    assert name is not None
    return name


def may_lose_rows(plan: Plan, end: End) -> bool:
    """Whether a group of a batch may have no row at the end, by what is between them."""
    groups = plan.table(table_of_groups(plan, end))
    return _removes(groups) or any(not _is_select_of_all(each) or _removes(each) for each in _between(plan, end))


def lost_groups(
    plan: Plan, flow: Flow, end: End, tables: RowsByName, rows: DataFrame, database: str
) -> DataFrame | None:
    """The keys of groups of a batch that are not among the rows of an end; of one group of all rows the key without
    columns. None if there can be none. A key with a null is in no table."""
    if not may_lose_rows(plan, end):
        given = tables.rows(end.input)
        check = unstorable(replace(end, key=()), given.schema, database)
        refused = None if check is None else given.where(f"not ({check.condition})")
        return None if refused is None else refused.select(*map(column, end.key)).dropna("any")
    groups = tables.groups(flow)
    if groups is None:
        return None
    columns = _key_columns(plan, end)
    keys = groups.select(*(_read(groups, columns[name.lower()]).alias(name) for name in end.key))
    if not end.key:
        return keys.limit(1)
    return keys.dropna("any").distinct().join(rows.select(*map(column, end.key)), list(end.key), "left_anti")


def _between(plan: Plan, end: End) -> list[Table]:
    """The tables between that of the groups and the end, which all read its rows."""
    before = set(plan.upstream(table_of_groups(plan, end)))
    return [plan.table(name) for name in plan.upstream(end.input) if name not in before and plan.is_stream(name)]


def _removes(table: Table) -> bool:
    return any(each.otherwise in REFUSING for each in table.checks)


def _is_select_of_all(table: Table) -> bool:
    made = table.made_by
    return isinstance(made, RowSql) and made.query.where is None and not made.makes_several and not made.shape.tables


def _key_columns(plan: Plan, end: End) -> dict[str, str]:
    """The column of the table of groups, or the field of a window, that each key column is."""
    groups = plan.table(table_of_groups(plan, end))
    columns = [name for names in groups.path.groups or () for name in names]
    apart = replace(groups, path=replace(groups.path, groups=tuple((name,) for name in columns)))
    known = {apart.name: apart}
    for table in _between(plan, end):
        inputs = [known.get(name) or plan.table(name) for name in table.inputs]
        known[table.name] = replace(table, path=path_of(table, inputs))
    outputs = known[plan.table(end.input).name].path.groups or ()
    return {name.lower(): found for found, names in zip(columns, outputs, strict=True) for name in names}


def _read(groups: DataFrame, name: str) -> Column:
    if name.lower() in {each.lower() for each in groups.columns}:
        return column(name)
    struct, field = name.rsplit(".", 1)
    return F.col(f"{quoted(struct)}.{quoted(field)}")
