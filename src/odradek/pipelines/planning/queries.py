"""What a SQL query does with streams: which SELECTs group a stream, and which joins have a stream on either side."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.sql_text import WINDOW_STAND_IN, SqlError, parse_query

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sqlglot import exp

    from odradek.pipelines.definition.model import Step

# Aggregate functions of Spark that sqlglot does not know as such.
AGGREGATES = frozenset(
    """
    any approx_count_distinct approx_percentile approx_top_k array_agg bit_and bit_or bit_xor bitmap_and_agg
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set count_if count_min_sketch every
    first_value histogram_numeric hll_sketch_agg hll_union_agg kurtosis last_value listagg max_by mean median min_by
    mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std string_agg try_avg try_sum
    """.split()  # noqa: SIM905 - a list would have a line for each name
)


class JoinType(StrEnum):
    """The types of a join, as Spark sees them."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


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
    def is_subquery(self) -> bool:
        return type(self.node).__name__ != "Join"


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """What a query does with streams."""

    aggregations: tuple[exp.Expr, ...] = ()  # SELECT and UNION that group rows of a stream
    joins: tuple[JoinFound, ...] = ()  # with at least one stream
    scalars: tuple[exp.Expr, ...] = ()  # scalar subqueries over a stream

    @property
    def joins_streams(self) -> bool:
        return any(each.is_of_streams for each in self.joins)


def query_of(step: Step) -> exp.Expr | None:
    """The parsed query of a SQL step; None for other steps and for SQL that cannot be parsed."""
    if not isinstance(step.operation, Sql):
        return None
    try:
        return parse_query(step.operation.text)
    except SqlError:
        return None


def query_facts(query: exp.Expr, streaming: Collection[str]) -> QueryFacts:
    reader = _Reader({name.lower() for name in streaming})
    reader.query(query, {})
    return QueryFacts(tuple(reader.aggregations), tuple(reader.joins), tuple(reader.scalars))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the expression is a call of an aggregate function."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)


class _Reader:
    """Reads a query from its tables upwards; each method returns whether its rows are a stream."""

    def __init__(self, streaming: set[str]) -> None:
        self.aggregations: list[exp.Expr] = []
        self.joins: list[JoinFound] = []
        self.scalars: list[exp.Expr] = []
        self._streaming = streaming

    def query(self, node: exp.Expr, outer: dict[str, bool]) -> bool:
        from sqlglot import exp  # noqa: PLC0415

        named = dict(outer)
        for each in getattr(argument(node, "with"), "expressions", ()):
            named[each.alias.lower()] = self.query(each.this, named)
        if isinstance(node, exp.Subquery):
            return self._relation(node, named)
        if isinstance(node, exp.SetOperation):
            sides = [self.query(node.this, named), self.query(node.expression, named)]
            if any(sides) and (node.args.get("distinct") or not isinstance(node, exp.Union)):
                self.aggregations.append(node)
            return any(sides)
        return self._select(node, named)

    def _select(self, node: exp.Expr, named: dict[str, bool]) -> bool:
        clause = argument(node, "from")
        is_stream = clause is not None and self._relation(clause.this, named)
        is_stream = self._joined(node, is_stream, named)
        for each in own_queries(node):
            self._predicate(each, is_stream, named)
        if is_stream and (node.args.get("group") or node.args.get("distinct") or has_aggregates(node)):
            self.aggregations.append(node)
        return is_stream

    def _relation(self, node: exp.Expr, named: dict[str, bool]) -> bool:
        from sqlglot import exp  # noqa: PLC0415

        if isinstance(node, exp.Table):
            name = node.name.lower()
            is_plain = isinstance(node.this, exp.Identifier)
            is_stream = is_plain and named.get(name, name in self._streaming)
        elif isinstance(node, exp.Subquery):
            inner = node.this
            is_stream = self.query(inner, named) if isinstance(inner, exp.Query) else self._relation(inner, named)
        elif isinstance(node, exp.Query):
            is_stream = self.query(node, named)
        else:
            is_stream = any(self.query(each, named) for each in own_queries(node))  # LATERAL (SELECT …)
        return self._joined(node, is_stream, named)

    def _joined(self, node: exp.Expr, is_stream: bool, named: dict[str, bool]) -> bool:
        for each in node.args.get("joins") or ():
            is_right = self._relation(each.this, named)
            if is_stream or is_right:
                self.joins.append(JoinFound(each, join_type(each), is_stream, is_right))
            is_stream = is_stream or is_right
        return is_stream

    def _predicate(self, node: exp.Expr, is_stream: bool, named: dict[str, bool]) -> None:
        """A subquery in an expression: IN and EXISTS are joins, any other is a scalar subquery."""
        from sqlglot import exp  # noqa: PLC0415

        is_inner = self.query(node, named)
        owner = node.find_ancestor(exp.In, exp.Exists, exp.Select)
        if isinstance(owner, exp.In | exp.Exists):
            kind = JoinType.ANTI if is_negated(owner) else JoinType.SEMI
            if is_inner or is_stream:
                self.joins.append(JoinFound(owner, kind, is_stream, is_inner))
        elif is_inner:
            self.scalars.append(node)


def argument(node: exp.Expr, name: str) -> exp.Expr | None:
    """An argument whose name some releases of sqlglot end with an underscore."""
    found: exp.Expr | None = node.args.get(f"{name}_") or node.args.get(name)
    return found


def join_type(node: exp.Expr) -> JoinType:
    side, kind = (str(node.args.get(key) or "").lower() for key in ("side", "kind"))
    if kind in {JoinType.SEMI, JoinType.ANTI}:
        return JoinType(kind)
    return JoinType(side) if side in {JoinType.LEFT, JoinType.RIGHT, JoinType.FULL} else JoinType.INNER


def has_parentheses(node: exp.Expr) -> bool:
    """Whether a part of FROM is in parentheses that are not those of a subquery."""
    from sqlglot import exp  # noqa: PLC0415

    return isinstance(node, exp.Subquery) and (
        isinstance(node.this, exp.Subquery) or not isinstance(node.this, exp.Query)
    )


def terms_of(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that all hold wherever this one does: the terms of AND, also of those in parentheses."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(condition, exp.Paren | exp.Where | exp.Having):
        yield from terms_of(condition.this)
    elif isinstance(condition, exp.And):
        yield from terms_of(condition.this)
        yield from terms_of(condition.expression)
    else:
        yield condition


def is_negated(node: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415

    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Not)


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of a SELECT that are not its tables, and not inside a subquery."""
    from sqlglot import exp  # noqa: PLC0415

    skipped = {"from", "from_", "joins", "with", "with_"}
    waiting = [child for key in node.args if key not in skipped for child in children(node.args[key])]
    for join in node.args.get("joins") or ():
        waiting += [child for key in ("on", "using") for child in children(join.args.get(key))]
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, exp.Query):
            waiting += [child for value in each.args.values() for child in children(value)]


def children(value: object) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415

    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expr)]


def own_queries(node: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415

    return [each for each in own_nodes(node) if isinstance(each, exp.Query)]


def groups_sessions(node: exp.Expr) -> bool:
    """Whether a SELECT groups by `session_window(…)`."""
    group = node.args.get("group")
    return group is not None and any(call.name.lower() == "session_window" for call in window_calls(group))


def window_calls(node: exp.Expr) -> list[exp.Expr]:
    """The calls of `window` and `session_window`."""
    from sqlglot import exp  # noqa: PLC0415

    return [each for each in node.find_all(exp.Anonymous) if each.name.lower() in {WINDOW_STAND_IN, "session_window"}]


def has_aggregates(node: exp.Expr) -> bool:
    """Whether a SELECT has an aggregate function without OVER."""
    from sqlglot import exp  # noqa: PLC0415

    return any(is_aggregate(each) and each.find_ancestor(exp.Window, exp.Select) is node for each in own_nodes(node))
