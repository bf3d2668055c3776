"""Inner joins of streams in Python steps by which Spark would remove rows too early, read from the analysed plan.

The condition is judged as that of SQL (`join_bounds`), with those of filters above it that Spark makes a part of it: a
column is written as its id, by which both sides know it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.sql_text import SqlError, parse_query
from odradek.pipelines.planning.join_bounds import bounds_of
from odradek.pipelines.planning.queries import JoinType
from odradek.pipelines.planning.query_facts import JoinFound
from odradek.pipelines.planning.time_columns import Rows, Sides, Time
from odradek.pipelines.spark.event_time import WATERMARK_DELAY
from odradek.pipelines.spark.sessions.private_names import JOINS, analysed_plan, or_plainly, private
from odradek.pipelines.spark.stateful_plans import is_streaming, items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

COLUMN = re.compile(r"(?:`[^`]*`|[\w.]+)#(\d+)L?(?:-T\d+ms)?")  # as Spark writes a column in a plan
WRITTEN = re.compile(r"\bc\d+\b")  # as `written` names it
BETWEEN = "between("  # as Spark writes BETWEEN, with the three values


def early_removal(frame: DataFrame) -> tuple[str, str] | None:
    """A column of event time and another by which a join of the plan compares it, so that Spark would remove rows that
    may match; None if there is none, or if the plan cannot be read."""
    return or_plainly(JOINS, lambda: removal_in(analysed_plan(frame)), None)


def removal_in(node: Any, above: tuple[str, ...] = ()) -> tuple[str, str] | None:
    """What a join of this plan compares; `above` are the conditions that Spark moves down to its rows."""
    if not is_streaming(node):
        return None
    is_join = private(node, "node")() == "Join" and is_streaming(node.left()) and is_streaming(node.right())
    found = removal_of(node, above) if is_join else None
    moved = moved_below(node, above)
    below = (removal_in(each, moved) for each in items(private(node, "children")()))
    return found or next(filter(None, below), None)


def moved_below(node: Any, above: tuple[str, ...]) -> tuple[str, ...]:
    """The conditions above a node that Spark moves below it, with its own, in terms of the rows below."""
    name = private(node, "node")()
    if name == "SubqueryAlias":
        return above
    if name == "Filter" and is_deterministic(node.condition()):
        return (*above, condition_text(node.condition()))
    if name == "Join" and is_inner(node):
        own = node.condition()
        return above if own.isEmpty() else (*above, condition_text(own.get()))
    if name == "Project" and above and all(map(is_deterministic, items(node.projectList()))):
        aliases = [each for each in items(node.projectList()) if private(each, "function")() == "alias"]
        values = {written(each): f"({condition_text(each.child())})" for each in aliases}
        return tuple(WRITTEN.sub(lambda match: values.get(match[0], match[0]), each) for each in above)
    return ()


def removal_of(join: Any, above: tuple[str, ...]) -> tuple[str, str] | None:
    """What a join compares with event time, and is none. Conditions above an inner join become a part of its own."""
    columns = [items(private(side, "output")()) for side in (join.left(), join.right())]
    names = {written(each): str(each.name()) for side in columns for each in side}
    left, right = (Rows({written(each): time_of(each) for each in side}, is_stream=True) for side in columns)
    own = "true" if join.condition().isEmpty() else condition_text(join.condition().get())
    filters = above if is_inner(join) else ()
    readable = [each for each in filters if is_readable(each)]
    where = " and ".join(f"({each})" for each in ("true", *readable))
    try:
        query = parse_query(f"select 1 from l join r on {own} where {where}")
    except SqlError:
        return None
    node = query.transform(with_between).args["joins"][0]
    found = JoinFound(node, JoinType.INNER, is_left_stream=True, is_right_stream=True)
    bounds = bounds_of(found, Sides({"l": left}, {"r": right}))
    unknown = [set(WRITTEN.findall(each)) for each in filters if each not in readable]
    may_be_bound = any(not (each.isdisjoint(left.columns) or each.isdisjoint(right.columns)) for each in unknown)
    early = [] if may_be_bound else bounds.early
    compared = [*bounds.keys, *((time, column) for _, column, time in early)]
    return next(((names[time], names[column]) for time, column in compared), None)


def is_inner(join: Any) -> bool:
    return str(join.joinType()) in {"Inner", "Cross"}


def is_deterministic(expression: Any) -> bool:
    return bool(private(expression, "deterministic")())


def condition_text(expression: Any) -> str:
    return COLUMN.sub(r"c\1", str(expression.toString())).replace(BETWEEN, f"is_{BETWEEN}")


def is_readable(condition: str) -> bool:
    try:
        parse_query(f"select 1 from l where {condition}")
    except SqlError:
        return False
    return True


def with_between(node: exp.Expr) -> exp.Expr:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if not isinstance(node, exp.Anonymous) or node.name != f"is_{BETWEEN}".removesuffix("("):
        return node
    value, low, high = node.expressions
    return exp.Between(this=value, low=low, high=high)


def written(column: Any) -> str:
    return f"c{column.exprId().id()}"


def time_of(column: Any) -> Time:
    return Time.MARKED if column.metadata().contains(WATERMARK_DELAY) else Time.PLAIN
