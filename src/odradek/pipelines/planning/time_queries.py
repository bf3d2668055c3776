"""Which columns of a SQL query over streams are event time, and which of them may be older than the watermark.

A join of streams writes a row when both of its records have arrived. Without a bound of a side's event time, a row may
be as old as the oldest record of that side: a step behind the join that works by event time would drop it as late,
although neither record was.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.sql_written import excepted_columns, is_star
from odradek.pipelines.planning.group_columns import group_expressions
from odradek.pipelines.planning.join_bounds import bounds_of
from odradek.pipelines.planning.join_reads import columns_read
from odradek.pipelines.planning.queries import has_aggregates, is_window_time, join_type, window_calls
from odradek.pipelines.planning.query_facts import JoinFound
from odradek.pipelines.planning.query_walk import Reading, Walk
from odradek.pipelines.planning.time_columns import Rows, Scope, Sides, Time

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.table_columns import Columns
    from odradek.pipelines.planning.streams import Streams

NONE_LOOSE: Mapping[str, Collection[str]] = MappingProxyType({})


class TimeQueries(Reading[Rows, Scope]):
    """Which columns of rows are event time. `sides` has the tables on both sides of each JOIN, by the identity of its
    node, and `loose` the loose event times by which a query groups or joins. `known` are loose columns of steps."""

    def __init__(self, streams: Streams, known: Mapping[str, Collection[str]] = NONE_LOOSE) -> None:
        self.sides: dict[int, Sides] = {}
        self.loose: list[str] = []
        self._streams = streams
        self._known = known

    def of_query(self, query: exp.Expr) -> Rows:
        return Walk(self).rows(query)

    def table(self, name: str) -> Rows:
        columns = lookup(self._streams.columns, name)
        found = next((each for each in self._streams.columns if each.lower() == name), name)
        known = self._streams.times_of(found)
        marks, loose = known.all, self._known.get(found, ())
        names = sorted(marks) if columns is None else [each.lower() for each in columns.names]
        times = dict.fromkeys(names, Time.PLAIN)
        times |= {each: Time.UNKNOWN for each in names if columns is not None and is_window(columns, each)}
        times |= {each: Time.MARKED for each in names if each in marks}
        times |= {each: Time.LOOSE for each in loose if each in times}
        return Rows(times, is_open=columns is None, is_stream=found in self._streams.names)

    def generated(self, _node: exp.Expr) -> Rows:
        return Rows(is_open=True)

    def pivoted(self, rows: Rows) -> Rows:
        return Rows(is_open=True, is_stream=rows.is_stream)

    def renamed(self, _node: exp.Expr, rows: Rows, names: list[str]) -> Rows:
        if rows.is_open:
            return Rows(is_open=True, is_stream=rows.is_stream)
        return replace(rows, columns=dict(zip(names, rows.columns.values(), strict=False)))

    def no_tables(self) -> Scope:
        return {}

    def one_table(self, node: exp.Expr, rows: Rows) -> Scope:
        return {str(node.alias_or_name).lower() or f"#{id(node)}": rows}

    def joined(self, join: exp.Expr, left: Scope, right: Scope) -> Scope:
        sides = self.sides[id(join)] = Sides(left, right)
        if not sides.are_streams:
            return {**left, **right}
        for is_left, scope in ((True, left), (False, right)):
            read = columns_read(join, sides, is_left=is_left)
            self.loose += [
                each for name, rows in scope.items() for each in sorted(rows.loose) if f"{name}.{each}" in read
            ]
        ends = bounds_of(JoinFound(join, join_type(join), is_left_stream=True, is_right_stream=True), sides).ends
        return {
            name: rows if is_left in ends else rows.loosened()
            for is_left, scope in ((True, left), (False, right))
            for name, rows in scope.items()
        }

    def exploded(self, lateral: exp.Expr, tables: Scope) -> Scope:
        return {**tables, str(lateral.alias).lower() or f"#{id(lateral)}": Rows(is_open=True)}

    def whole(self, tables: Scope) -> Rows:
        columns = {name: time for rows in tables.values() for name, time in rows.columns.items()}
        every = tables.values()
        return Rows(columns, any(rows.is_open for rows in every), any(rows.is_stream for rows in every))

    def united(self, union: exp.Expr, left: Rows, right: Rows) -> Rows:
        pairs = zip(left.columns.items(), right.columns.values(), strict=False)
        columns = {
            name: time if time is other else Time.LOOSE if Time.LOOSE in {time, other} else Time.UNKNOWN
            for (name, time), other in pairs
        }
        rows = Rows(columns, left.is_open or right.is_open, left.is_stream or right.is_stream)
        self.loose += sorted(rows.loose if union.args.get("distinct") else ())
        return rows

    def selected(self, select: exp.Select, tables: Scope, _read: Callable[[exp.Expr], Rows]) -> Rows:
        columns: dict[str, Time] = {}
        is_open = False
        for each in select.expressions:
            if is_star(each):
                found = self._starred(each, tables)
                left_out = {name.name.lower() for name in excepted_columns(each)}
                columns |= {name: time for name, time in found.columns.items() if name not in left_out}
                is_open |= found.is_open
            else:
                columns[str(each.alias_or_name).lower()] = self._selected_time(each.unalias(), tables)
        if any(rows.is_stream for rows in tables.values()) and groups_rows(select):
            is_distinct = bool(select.args.get("distinct"))
            items = [each for each in select.expressions if is_distinct and not is_star(each)]
            grouped = named_columns(*group_expressions(select), *items)
            self.loose += sorted(self.whole(tables).loose & grouped)
            self.loose += sorted(Rows(columns).loose if is_distinct else ())
        return Rows(columns, is_open, any(rows.is_stream for rows in tables.values()))

    def _starred(self, star: exp.Expr, tables: Scope) -> Rows:
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        if not isinstance(star, exp.Column):
            return self.whole(tables)
        return tables.get(star.parts[0].name.lower(), Rows(is_open=True))

    def _selected_time(self, item: exp.Expr, tables: Scope) -> Time:
        """Event time stays that under another name; a sum is another time. Of other expressions nothing is said, but
        windows of loose times are loose."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if isinstance(item, exp.Column):
            found = Sides(tables, {}).find(item)
            return Time.UNKNOWN if found is None else found[1]
        if is_window_time(item) or any(each is item for each in window_calls(item)):
            of_column = self._selected_time(item.expressions[0], tables) if item.expressions else Time.UNKNOWN
            return Time.LOOSE if of_column is Time.LOOSE else Time.UNKNOWN
        return Time.PLAIN if isinstance(item, exp.Add | exp.Sub | exp.Literal) else Time.UNKNOWN


def is_window(columns: Columns, name: str) -> bool:
    """Whether a column may be a window, which Spark marks as a whole."""
    fields = columns.fields_of(name)
    return fields is not None and "start" in fields and "end" in fields


def groups_rows(select: exp.Select) -> bool:
    return bool(select.args.get("group") or select.args.get("distinct") or has_aggregates(select))


def named_columns(*nodes: exp.Expr) -> set[str]:
    """The names of all columns in these parts of a query, in lower case."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return {column.name.lower() for node in nodes for column in node.find_all(exp.Column)}
