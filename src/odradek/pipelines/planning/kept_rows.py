"""Refuses filters of changing groups before a table or view that keeps the last row of each key.

A group that passes the filter and later does not would stay in the table, while a batch would never write it. Filters
of the columns that identify a group are accepted: a group passes them always or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import LatestRows, Sink
from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.definition.sql_text import SqlError, parse_expression
from odradek.pipelines.definition.vocabulary import Otherwise, SinkMode
from odradek.pipelines.planning.queries import is_aggregate, query_facts, query_of

if TYPE_CHECKING:
    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams

WINDOW_EDGES = frozenset(("window_start", "window_end"))


def is_keyed(end: Sink | View) -> bool:
    """Whether the end keeps a row for each key, which only another row replaces."""
    return end.mode is SinkMode.UPSERT if isinstance(end, Sink) else isinstance(end.content, LatestRows)


def check_kept_rows(
    end: Sink | View, path: list[Step], grouping: Step, graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Checks the filters of the steps between an aggregation and a table or view."""
    identity = group_columns(grouping, streams)
    for step in path:
        if grouping.name not in graph.upstream(step.name):
            continue
        filters = filters_of(step, step is grouping, streams)
        changing = {name for each in filters for name in column_names(each)} - identity
        if changing or any(map(is_aggregate, [node for each in filters for node in each.walk()])):
            what = f"'{min(changing)}'" if changing else "an aggregate"
            problems.error(
                step.place,
                f"step '{step.name}' filters groups by {what}, which changes, and '{end.name}' keeps the last row of a "
                "group that passed, even if the group no longer does",
                f"filter when you query '{end.name}', or write final groups with mode: append",
            )
            return


def group_columns(step: Step, streams: Streams) -> set[str]:
    """The columns of an aggregation that identify a group."""
    if isinstance(step.operation, Aggregation):
        return {each.lower() for each in step.operation.by} | WINDOW_EDGES
    query = query_of(step)
    found: set[str] = set()
    for select in () if query is None else query_facts(query, streams.names).aggregations:
        for each in select.expressions:
            if not any(map(is_aggregate, each.walk())):
                found |= {each.alias_or_name.lower(), *column_names(each)}
        group = select.args.get("group")
        found |= set() if group is None else column_names(group)
    return found


def filters_of(step: Step, is_grouping: bool, streams: Streams) -> list[exp.Expr]:
    """The conditions that remove rows of a step; of an aggregation those that apply to its groups."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    checks = [each.check for each in step.expectations if each.otherwise in {Otherwise.DROP, Otherwise.QUARANTINE}]
    found = [each for each in map(condition_of, checks) if each is not None]
    query = query_of(step)
    if query is None:
        return found
    if not is_grouping:
        return [*found, *query.find_all(exp.Where, exp.Having)]
    for grouped in query_facts(query, streams.names).aggregations:
        above = grouped.find_ancestor(exp.Select)
        clauses = (grouped.args.get("having"), None if above is None else above.args.get("where"))
        found += [each for each in clauses if each is not None]
    return found


def condition_of(text: str) -> exp.Expr | None:
    try:
        return parse_expression(text)
    except SqlError:
        return None


def column_names(node: exp.Expr) -> set[str]:
    from sqlglot import exp  # noqa: PLC0415

    return {each.name.lower() for each in node.find_all(exp.Column)}
