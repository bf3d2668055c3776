"""Filters of sessions inside a query that groups by them, and groups of the sessions of a step before.

Spark's optimizer moves a condition on a column that is grouped by below the aggregation, and merges aggregations of
groups. A session is not grouped by as it is: its start and end are those of its rows until they are merged. So a
condition on the end of sessions would remove rows of them. The steps behind a step with sessions see merged ones only,
which they cannot group by as they are: Spark would take them for sessions to be merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.planning.queries import WINDOWS, has_aggregates, has_sessions, query_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Step
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams

CLAUSES = ("where", "having", "group", "distinct", "joins", "qualify")


def check_session_filters(step: Step, problems: Problems) -> None:
    """Checks that a query does nothing with its sessions but select them, in every engine."""
    if filters_sessions(step):
        problems.error(
            step.place,
            f"step '{step.name}' filters, joins or groups sessions in the query that makes them, and Spark would "
            "do so with their rows, before they are merged",
            "select the sessions in this step, and filter, join or group them in a step behind it",
        )


def filters_sessions(step: Step) -> bool:
    """Whether a query filters, joins or groups the sessions that it makes."""
    query = query_of(step)
    if query is None or not has_sessions(query):
        return False
    for select in sessions_in(query):
        having = select.args.get("having")
        is_filtered = having is not None and names_session(having, select)
        if is_filtered or any(each.args.get(key) for each in readers_of(select, query) for key in CLAUSES):
            return True
    return False


def check_grouped_sessions(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks that a step over a stream does not group by the sessions of another."""
    found = grouped_sessions(step, graph, streams)
    if found:
        problems.error(
            step.place,
            f"step '{step.name}' groups by '{found[0]}', the sessions of a step before it, which Spark would merge",
            f"group by window({found[0]}, '1 hour'), or select {found[0]}.end in a step between, and group by that",
        )


def grouped_sessions(step: Step, graph: Graph, streams: Streams) -> list[str]:
    """The columns that a step groups by and that are sessions of a step before it."""
    if isinstance(step.operation, Aggregation):
        sessions = streams.sessions_of_inputs(step, graph)
        return [each for each in step.operation.by if each.lower() in sessions]
    reading = streams.reading_of(step, graph)
    return [] if reading is None else reading.grouped_sessions


def sessions_in(query: exp.Expr) -> list[exp.Select]:
    """The SELECTs that group by sessions."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    grouping = [each for each in query.find_all(exp.Select) if each.args.get("group") or has_aggregates(each)]
    found = [each for each in grouping if has_sessions(each)]
    return [each for each in found if not any(other is not each and is_inside(other, each) for other in found)]


def names_session(condition: exp.Expr, select: exp.Select) -> bool:
    """Whether a condition names the sessions of a SELECT, or what it computes from them."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    def is_named(node: exp.Expr) -> bool:
        columns = [part.name.lower() for each in node.find_all(exp.Column) for part in each.parts]
        return has_sessions(node) or bool(WINDOWS.intersection(columns))

    computed = {each.alias.lower() for each in select.expressions if isinstance(each, exp.Alias) and is_named(each)}
    names = {part.name.lower() for each in condition.find_all(exp.Column) for part in each.parts}
    return is_named(condition) or bool(names & computed)


def readers_of(select: exp.Expr, query: exp.Expr) -> Iterator[exp.Expr]:
    """The SELECTs that read the rows of another one, directly, through others or by a name of WITH."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    above = select.parent
    while above is not None:
        if isinstance(above, exp.Select):
            yield above
        if isinstance(above, exp.CTE):
            name = above.alias.lower()
            named = [each for each in query.find_all(exp.Table) if each.name.lower() == name]
            reading = [each.parent_select for each in named if not is_inside(each, above)]
            for each in filter(None, reading):
                yield each
                yield from readers_of(each, query)
            return
        above = above.parent


def is_inside(node: exp.Expr | None, other: exp.Expr) -> bool:
    while node is not None and node is not other:
        node = node.parent
    return node is other
