"""The joins of a stream with static tables that Spark does not run by equal columns; its real-time mode runs no others.

Spark makes one set of the conditions of WHERE and of the inner joins of a FROM. The tables are joined in the order in
which they are written, because they are broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.planning.join_conditions import UNKNOWN, conditions_in, equality, implied, table_of
from odradek.pipelines.planning.queries import JoinType, join_type, own_joins, own_queries
from odradek.pipelines.planning.realtime_subqueries import Subquery
from odradek.pipelines.planning.time_queries import TimeQueries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sqlglot import exp

    from odradek.pipelines.planning.join_conditions import Condition
    from odradek.pipelines.planning.streams import Streams
    from odradek.pipelines.planning.time_columns import Rows, Scope, Sides


class RealtimeJoins(TimeQueries):
    """Finds the joins, and the subqueries in expressions, that real-time mode does not run. Joins of static tables with
    each other are not among them."""

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams)
        self.joins: list[exp.Expr] = []
        self.subqueries: list[exp.Expr] = []
        self._scopes: dict[int, Scope] = {}  # the tables of each SELECT, by the identity of its node

    def selected(self, select: exp.Select, tables: Scope, read: Callable[[exp.Expr], Rows]) -> Rows:
        self._scopes[id(select)] = tables
        queries = own_queries(select)
        for each in queries:
            read(each)
        if any(rows.is_stream for rows in tables.values()):
            self.joins += refused_joins(select, tables, self.sides)
            self.subqueries += [each for each in queries if not Subquery(each, self._scopes).is_run_by_equality()]
        return super().selected(select, tables, read)


def refused_joins(select: exp.Select, tables: Scope, sides: Mapping[int, Sides]) -> list[exp.Expr]:
    """The joins of a SELECT that have a stream on one side, and no equality of a column of each side."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    joins = [each for each in own_joins(select) if not isinstance(each.this, exp.Lateral)]
    exploded = {str(each.alias).lower() for each in select.args.get("laterals") or ()}  # behind all joins
    scope = {name: rows for name, rows in tables.items() if name not in exploded}
    own = {id(each): conditions_of(each, sides[id(each)]) for each in joins}
    shared = conditions_in(select.args.get("where"), scope)
    inner = [id(each) for each in joins if join_type(each) is JoinType.INNER]
    shared += [term for each in inner for term in own[each]]
    for join in joins:
        if drops_unmatched(join, sides[id(join)], shared):
            inner.append(id(join))
            shared += own[id(join)]
    shared += implied(shared)
    return [each for each in joins if not has_equality(sides[id(each)], shared if id(each) in inner else own[id(each)])]


def has_equality(sides: Sides, conditions: Iterable[Condition]) -> bool:
    """Whether a join has an equality of a column of each side; one of static tables needs none."""
    is_static = not any(rows.is_stream for rows in (*sides.left.values(), *sides.right.values()))
    return is_static or any(term.equates(frozenset(sides.left), frozenset(sides.right)) for term in conditions)


def drops_unmatched(join: exp.Expr, sides: Sides, conditions: Iterable[Condition]) -> bool:
    """Whether a condition drops the rows of an outer join without a match, so that Spark makes an inner join of it."""
    filled = {JoinType.LEFT: sides.right, JoinType.RIGHT: sides.left}.get(join_type(join), {})
    return any(term.compared.intersection(filled) for term in conditions)


def conditions_of(join: exp.Expr, sides: Sides) -> list[Condition]:
    """The conditions of ON, USING or NATURAL."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    both = {**sides.left, **sides.right}
    names = [each.name.lower() for each in join.args.get("using") or ()]
    if join.args.get("method"):  # NATURAL
        left, right = ({name for rows in side.values() for name in rows.columns} for side in (sides.left, sides.right))
        names = sorted(left & right) or [UNKNOWN for rows in both.values() if rows.is_open]
    columns = [exp.column(name) for name in names]
    equal = [
        equality((table_of(each, sides.left), each.name), (table_of(each, sides.right), each.name)) for each in columns
    ]
    return [*conditions_in(join.args.get("on"), both), *equal]
