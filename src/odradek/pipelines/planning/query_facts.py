"""What a SQL query does with streams: which SELECTs group a stream, and which joins have a stream on either side."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.planning.queries import JoinType, has_aggregates, is_negated, join_type, own_queries
from odradek.pipelines.planning.query_walk import Reading, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class JoinFound:
    """A join in a query; `node` is the JOIN, or the predicate (IN, EXISTS) that Spark runs as a join."""

    node: exp.Expr
    type: JoinType
    is_left_stream: bool
    is_right_stream: bool

    @property
    def is_of_streams(self) -> bool:
        return self.is_left_stream and self.is_right_stream

    @property
    def is_lateral(self) -> bool:
        return not self.is_subquery and type(self.node.this).__name__ == "Lateral"

    @property
    def is_subquery(self) -> bool:
        return type(self.node).__name__ != "Join"


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """What a query does with streams."""

    aggregations: tuple[exp.Expr, ...] = ()  # SELECT and UNION that group rows of a stream
    joins: tuple[JoinFound, ...] = ()  # with at least one stream
    scalars: tuple[exp.Expr, ...] = ()  # scalar subqueries over a stream
    unions: tuple[exp.Expr, ...] = ()  # of a stream with a static table
    nested: tuple[exp.Expr, ...] = ()  # SELECT and UNION that group the groups of another one
    static: tuple[exp.Expr, ...] = ()  # SELECT and UNION that read no stream

    @property
    def joins_streams(self) -> bool:
        return any(each.is_of_streams for each in self.joins)


def query_facts(query: exp.Expr, streaming: Collection[str]) -> QueryFacts:
    reading = _StreamReading({name.lower() for name in streaming})
    Walk(reading).rows(query)
    return QueryFacts(
        tuple(reading.aggregations),
        tuple(reading.joins),
        tuple(reading.scalars),
        tuple(reading.unions),
        tuple(reading.nested),
        tuple(reading.static),
    )


class _Stream(IntEnum):
    """What rows are; a join or a union has the greater of its sides."""

    STATIC = 0
    ROWS = 1  # of a stream
    GROUPS = 2  # of an aggregation of the query over a stream


class _StreamReading(Reading[_Stream, _Stream]):
    """Whether rows are a stream, and whether one of the tables of FROM is."""

    def __init__(self, streaming: set[str]) -> None:
        self.aggregations: list[exp.Expr] = []
        self.joins: list[JoinFound] = []
        self.scalars: list[exp.Expr] = []
        self.unions: list[exp.Expr] = []
        self.nested: list[exp.Expr] = []
        self.static: list[exp.Expr] = []
        self._streaming = streaming

    def table(self, name: str) -> _Stream:
        return _Stream.ROWS if name in self._streaming else _Stream.STATIC

    def generated(self, _node: exp.Expr) -> _Stream:
        return _Stream.STATIC

    def pivoted(self, rows: _Stream) -> _Stream:
        return rows

    def renamed(self, _node: exp.Expr, rows: _Stream, _names: list[str]) -> _Stream:
        return rows

    def no_tables(self) -> _Stream:
        return _Stream.STATIC

    def one_table(self, _node: exp.Expr, rows: _Stream) -> _Stream:
        return rows

    def joined(self, join: exp.Expr, left: _Stream, right: _Stream) -> _Stream:
        if left or right:
            self.joins.append(JoinFound(join, join_type(join), bool(left), bool(right)))
        return max(left, right)

    def exploded(self, _lateral: exp.Expr, tables: _Stream) -> _Stream:
        return tables

    def whole(self, tables: _Stream) -> _Stream:
        return tables

    def united(self, union: exp.Expr, left: _Stream, right: _Stream) -> _Stream:
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        if bool(left) is not bool(right):
            self.unions.append(union)
        rows = max(left, right)
        self.static += [] if rows else [union]
        is_distinct = union.args.get("distinct") or not isinstance(union, exp.Union)
        return self._grouped(union, rows) if rows and is_distinct else rows

    def selected(self, select: exp.Select, tables: _Stream, read: Callable[[exp.Expr], _Stream]) -> _Stream:
        for each in own_queries(select):
            self._subquery(each, is_stream=bool(tables), is_inner=bool(read(each)))
        rows = tables
        self.static += [] if tables else [select]
        if tables and (select.args.get("group") or has_aggregates(select)):
            rows = self._grouped(select, rows)
        return self._grouped(select, rows) if tables and select.args.get("distinct") else rows

    def _grouped(self, node: exp.Expr, rows: _Stream) -> _Stream:
        if rows is _Stream.GROUPS:
            self.nested.append(node)
        if not any(each is node for each in self.aggregations):
            self.aggregations.append(node)
        return _Stream.GROUPS

    def _subquery(self, node: exp.Expr, *, is_stream: bool, is_inner: bool) -> None:
        """A subquery in an expression: IN and EXISTS are joins, any other is a scalar subquery."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        owner = node.find_ancestor(exp.In, exp.Exists, exp.Select)
        if isinstance(owner, exp.In | exp.Exists):
            kind = JoinType.ANTI if is_negated(owner) else JoinType.SEMI
            if is_inner or is_stream:
                self.joins.append(JoinFound(owner, kind, is_stream, is_inner))
        elif is_inner:
            self.scalars.append(node)
