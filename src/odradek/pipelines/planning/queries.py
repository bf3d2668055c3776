"""The parts of a parsed SQL query: its joins, the terms of its conditions, its aggregates, its windows."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.spark_functions import aggregate_names
from odradek.pipelines.definition.sql_text import WINDOW_STAND_IN, SqlError, is_any, parse_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.definition.model import Step

WINDOWS = frozenset(("window", "session_window"))  # the columns of a SELECT that groups by windows


class JoinType(StrEnum):
    """The types of a join, as Spark sees them."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


def query_of(step: Step) -> exp.Expr | None:
    """The parsed query of a SQL step; None for other steps and for SQL that cannot be parsed."""
    if not isinstance(step.operation, Sql):
        return None
    try:
        return parse_query(step.operation.text)
    except SqlError:
        return None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the expression is a call of an aggregate function."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(node, exp.Anonymous):  # sqlglot does not know the function
        return node.name.lower() in aggregate_names()
    return isinstance(node, exp.AggFunc) or is_any(node)


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
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(node, exp.Subquery) and (
        isinstance(node.this, exp.Subquery) or not isinstance(node.this, exp.Query)
    )


def terms_of(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that all hold wherever this one does: the terms of AND, also of those in parentheses."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(condition, exp.Paren | exp.Where | exp.Having):
        yield from terms_of(condition.this)
    elif isinstance(condition, exp.And):
        yield from terms_of(condition.this)
        yield from terms_of(condition.expression)
    else:
        yield condition


def is_negated(node: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Not)


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of a SELECT that are not its tables, and not inside a subquery."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

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
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expr)]


def own_queries(node: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return [each for each in own_nodes(node) if isinstance(each, exp.Query)]


def own_joins(select: exp.Expr) -> list[exp.Expr]:
    """The joins of the FROM of a SELECT, without those of its subqueries."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return [each for each in select.find_all(exp.Join) if each.find_ancestor(exp.Select) is select]


def has_sessions(query: exp.Expr) -> bool:
    """Whether a query calls `session_window`. GROUP BY may mean it by an ordinal, an alias, ALL or a subquery."""
    return any(call.name.lower() == "session_window" for call in window_calls(query))


def window_calls(node: exp.Expr) -> list[exp.Expr]:
    """The calls of `window` and `session_window`."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return [each for each in node.find_all(exp.Anonymous) if each.name.lower() in {WINDOW_STAND_IN, "session_window"}]


def is_window_time(node: exp.Expr) -> bool:
    """Whether this is a call of `window_time`, the event time of a window."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(node, exp.Anonymous) and node.name.lower() == "window_time"


def has_aggregates(node: exp.Expr) -> bool:
    """Whether a SELECT has an aggregate function without OVER."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return any(is_aggregate(each) and each.find_ancestor(exp.Window, exp.Select) is node for each in own_nodes(node))
