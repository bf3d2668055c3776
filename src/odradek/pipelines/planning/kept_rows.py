"""Refuses what would leave outdated groups in a table or view that keeps the last row of each key.

The rows of groups change. A group that passes a filter and later does not would stay in the table, while a batch would
never write it; filters of columns that identify a group are accepted: a group passes them always or never. The key must
tell groups apart, or one group would replace another; and an `order_by` that falls would keep an outdated row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.model import LakehouseTarget, LatestRows, Sink, TableTarget, place_of
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.sql_text import SqlError, parse_expression
from odradek.pipelines.definition.sql_types import DATE
from odradek.pipelines.definition.vocabulary import JoinKind, Otherwise, SinkMode
from odradek.pipelines.planning.group_columns import (
    RECORDS,
    STATIC,
    UNKNOWN,
    Column,
    Kind,
    column_of,
    grouped,
    joined,
    settled,
)
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.query_rows import TOTALS, QueryRows, changing_paths
from odradek.pipelines.planning.window_parts import SIDES, STEP, WINDOW, WINDOW_PART, window_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.model import Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.group_columns import Rows
    from odradek.pipelines.planning.streams import Streams

UNSEEN = "a row that its function removes"


def is_keyed(end: Sink | View) -> bool:
    """Whether the end keeps a row for each key, which only another row replaces."""
    return end.mode is SinkMode.UPSERT if isinstance(end, Sink) else isinstance(end.content, LatestRows)


def key_of(end: Sink | View) -> tuple[tuple[str, ...], str | None]:
    """The key of a table or view that keeps a row for each key, and its `order_by`."""
    kept = end.target if isinstance(end, Sink) else end.content
    if isinstance(kept, LakehouseTarget):
        return kept.key, None
    return (kept.key, kept.order_column) if isinstance(kept, TableTarget | LatestRows) else ((), None)


def check_kept_rows(
    end: Sink | View, path: list[Step], streams: Streams, problems: Problems, *, is_final: bool = False
) -> None:
    """Checks the steps before a table or view, and its key; rows that are final do not change any more."""
    steps = {each.name for each in path}
    tables = {name.lower(): RECORDS for name in streams.names if name not in steps}
    for step in path:
        rows, removals = rows_of(step, tables, streams)
        tables[step.name.lower()] = settled(rows) if is_final else rows
        if removals and not is_final:
            problems.error(
                step.place,
                f"step '{step.name}' filters groups by {shown(removals[0])}, which changes, and '{end.name}' keeps the "
                "last row of a group that passed, even if the group no longer does",
                f"filter when you query '{end.name}', or write final groups with mode: append instead of a key",
            )
            return
    check_key(end, tables[end.input.lower()], streams.zone, problems, is_final=is_final)


def check_key(end: Sink | View, rows: Rows, zone: str | None, problems: Problems, *, is_final: bool) -> None:
    """Checks that each key has one group, whose row replaces that of the group before."""
    if not rows.is_known:
        return
    key, order_by = key_of(end)
    changing = next((name for name in key if rows.column(name).kind), None)
    if changing is not None and not is_final:
        problems.error(
            place_of(end, "key"),
            f"the key of '{end.name}' has '{changing}', which changes: a changed group would be another row, and the "
            "row before the change would stay",
            "use the columns that identify a group as the key",
        )
        return
    if order_by is not None and rows.column(order_by).kind is Kind.CHANGING and not is_final:
        problems.error(
            place_of(end, "order_by"),
            f"'{end.name}' is ordered by '{order_by}', which may fall, and then keeps the row before the change",
            "order when you query, by a column that identifies a group, or by max(…) or count(…)",
        )
        return
    held = frozenset().union(*(rows.column(name).parts for name in (*key, *((order_by,) if order_by else ()))))
    if not rows.parts - held:
        return
    if order_by is not None and (is_final or rows.is_fixed):
        warn_of_ties(end, problems)
        return
    hint = "add the columns that identify a group to the key, or order_by: one of them that tells the groups apart"
    if zone is not None and any(map(WINDOW_PART.fullmatch, rows.parts - held)):
        hint += f"; where clocks are set back ({zone}), a text of the time does not tell windows apart"
    if any(TOTALS in each for each in rows.parts - held):
        hint = "add grouping_id() to the SELECT and to the key, or leave out rows with null: WHERE … IS NOT NULL"
    problems.error(
        place_of(end, "key"),
        f"'{end.name}' keeps one row of each {', '.join(key)}, and several groups may have the same: nothing in "
        f"its key tells {shown_parts(rows.parts - held)} apart",
        hint,
    )


def warn_of_ties(end: Sink | View, problems: Problems) -> None:
    """Of rows that are in no order, `order_by` does not choose between those with equal values."""
    key, order_by = key_of(end)
    problems.warning(
        place_of(end, "order_by"),
        f"'{end.name}' keeps the row of each {', '.join(key)} with the greatest '{order_by}': if several have it, the "
        "one that stays depends on the batches, because these rows have no order of arrival",
        "order by a column that differs between the rows of a key, or add one that does to the key",
    )


def shown(removal: str) -> str:
    return removal if " " in removal else f"'{removal}'"


def shown_parts(parts: frozenset[str]) -> str:
    """The parts of an identity as a user knows them, in lower case; unions and joins number those of their sides."""
    plain = {WINDOW if WINDOW_PART.fullmatch(each) else STEP.sub("", each).lower() for each in parts}
    names = {SIDES.sub("", each) for each in plain}
    return ", ".join(sorted({"the queries of the UNION" if each == "side" else each for each in names}))


def rows_of(step: Step, tables: Mapping[str, Rows], streams: Streams) -> tuple[Rows, list[str]]:
    """The rows of a step, and the changing columns by which it removes some."""
    rows, removals = operation_rows(step, tables, streams)
    for each in step.expectations:
        if each.otherwise in {Otherwise.DROP, Otherwise.QUARANTINE}:
            removals += changing_names(each.check, rows)
    return rows, removals


def operation_rows(step: Step, tables: Mapping[str, Rows], streams: Streams) -> tuple[Rows, list[str]]:
    operation = step.operation
    if isinstance(operation, Aggregation):
        kinds = {each.name: kind_of(each.expression) for each in operation.aggregates}
        window = operation.window
        part = None if window is None else window_part(window.slide or window.size or window.gap)
        rows, columns = tables.get(operation.input.lower(), RECORDS), lookup(streams.columns, operation.input)
        dates = {name for name in operation.by if columns is not None and columns.type_of(name) == DATE}
        steps = {name: "day" if name in dates else rows.column(name).step for name in operation.by}
        return grouped(steps, kinds, part), []
    if isinstance(operation, Join):
        return join_rows(operation, tables.get(operation.input.lower(), RECORDS))
    if isinstance(operation, Deduplication):
        return tables.get(operation.input.lower(), RECORDS), []
    if isinstance(operation, StreamJoin | KeyedState):
        return RECORDS, []
    if isinstance(operation, PythonFunction):
        are_groups = any(not tables.get(name.lower(), STATIC).is_fixed for name in operation.inputs)
        is_plain = operation.keeps_state is False and not are_groups
        is_filter = operation.removes_groups or (are_groups and operation.removes_rows)
        return RECORDS if is_plain else UNKNOWN, [UNSEEN] if is_filter else []
    query = query_of(step)
    if query is None:
        return UNKNOWN, []
    reader = QueryRows(tables, lambda name: lookup(streams.columns, name), repeats_hours=streams.zone is not None)
    return reader.of_query(query), reader.removals


def join_rows(operation: Join, left: Rows) -> tuple[Rows, list[str]]:
    """The rows of a join with a static table."""
    changing = [name for name in operation.on if left.column(name).kind]
    removals = [] if operation.how is JoinKind.LEFT else changing
    if operation.how in {JoinKind.SEMI, JoinKind.ANTI}:
        return replace(left, is_ordered=False), removals  # the columns of `on` come first
    return joined(left, STATIC, changes=bool(changing)), removals


def kind_of(expression: str) -> Kind:
    """How an aggregate changes."""
    try:
        tree = parse_expression(expression)
    except SqlError:
        return Kind.CHANGING
    return column_of(tree, as_input).kind


def as_input(node: exp.Expr) -> Column | None:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    return Column() if isinstance(node, exp.Column) else None


def changing_names(text: str, rows: Rows) -> list[str]:
    """The columns of a condition that change."""
    try:
        return changing_paths(parse_expression(text), rows, lambda name: name not in rows.columns)
    except SqlError:
        return []
