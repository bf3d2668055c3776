"""Whether a Python step filters, joins or groups the sessions that it makes, read from its analysed plan.

Spark would do so with the rows of the sessions, before they are merged; in SQL, `validate` refuses it. Behind a filter
barrier, which every step with sessions has above it, sessions are merged ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.spark.sessions.private_names import SESSIONS, analysed_plan, or_plainly, private
from odradek.pipelines.spark.stateful_plans import items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SESSION = "spark.sessionWindow"  # metadata of a column of sessions
COMBINING = frozenset(("Aggregate", "Deduplicate", "Distinct", "Join", "Window"))  # rows, by any of their columns


def uses_sessions(frame: DataFrame) -> bool:
    """Whether the plan does more with its sessions than to select them; False if it cannot be read."""
    return or_plainly(SESSIONS, lambda: read_plan(analysed_plan(frame))[1], False)


def selects_sessions(frame: DataFrame) -> bool:
    """Whether columns of the frame are computed from sessions of its plan; False if it cannot be read."""
    return or_plainly(SESSIONS, lambda: bool(read_plan(analysed_plan(frame))[0]), False)


def read_plan(node: Any) -> tuple[set[int], bool]:
    """The ids of the columns that are computed from sessions, and whether the plan uses one of them."""
    below = [read_plan(each) for each in items(private(node, "children")())]
    sessions = set[int]().union(*(ids for ids, _ in below))
    is_used = any(used for _, used in below)
    name = private(node, "node")()
    if name == "Filter":
        if not private(node.condition(), "deterministic")():
            return set(), is_used
        is_used |= not sessions.isdisjoint(ids_in(node.condition()))
    is_used |= name in COMBINING and bool(sessions)
    if name == "Aggregate":
        grouped = [column for each in items(node.groupingExpressions()) for column in columns_in(each)]
        sessions = {id_of(each) for each in grouped if each.metadata().contains(SESSION)}
    selected = {"Aggregate": "aggregateExpressions", "Project": "projectList"}.get(name)
    if sessions and selected is not None:
        computed = items(getattr(node, selected)())
        sessions |= {id_of(each) for each in computed if not sessions.isdisjoint(ids_in(each))}
    return sessions, is_used


def columns_in(expression: Any) -> list[Any]:
    return items(private(expression, "references")().toSeq())


def ids_in(expression: Any) -> list[int]:
    return list(map(id_of, columns_in(expression)))


def id_of(column: Any) -> int:
    return int(column.exprId().id())
