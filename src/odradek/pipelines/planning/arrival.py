"""Whether rows keep the order in which they arrived, by which a table or view without `order_by` chooses.

Rows that derive from one record keep its offset. Other rows keep their order as long as each step handles them one by
one: a join, a union or a deduplication may put the rows of a batch in any order.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import LakehouseTarget, Sink, TopicOrigin
from odradek.pipelines.definition.operations import Deduplication, Join, PythonFunction, Sql, StreamJoin
from odradek.pipelines.planning.kept_rows import key_of
from odradek.pipelines.planning.origins import kept_origins
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.query_rows import has_own_literals

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step, View
    from odradek.pipelines.definition.places import Problems


class Arrival(Enum):
    """What is known of the order of rows."""

    RECORD = auto()  # each row has the offset of its record
    ORDERED = auto()  # rows are in the order of their arrival
    LOST = auto()


def check_arrival(
    pipeline: Pipeline, end: Sink | View, graph: Graph, streaming: Collection[str], problems: Problems
) -> None:
    """Checks that a table or view without `order_by` reads rows whose order of arrival is known."""
    key, order_by = key_of(end)
    if order_by is not None:
        return
    found: dict[str, Arrival] = {}  # by lower-case name
    sources = {each.name: each for each in pipeline.sources}
    steps = {each.name: each for each in pipeline.steps}
    for name in graph.upstream(end.input):
        if name not in streaming:
            arrival = Arrival.ORDERED  # of a table, whose rows a join adds
        elif name in sources:
            is_topic = isinstance(sources[name].origin, TopicOrigin)
            arrival = Arrival.RECORD if is_topic else Arrival.ORDERED
        else:
            arrival = arrival_of(steps[name], found, key)
        found[name.lower()] = arrival
        if arrival is Arrival.LOST:
            is_table = isinstance(end, Sink) and isinstance(end.target, LakehouseTarget)
            problems.error(
                place_of(end, "key"),
                f"'{end.name}' keeps the row of each {', '.join(key)} that arrived last, and the rows of step '{name}' "
                "are not in the order of their arrival",
                "use changes: {key, sequence}" if is_table else "add order_by: a column that says which row is newer",
            )
            return


def arrival_of(step: Step, found: Mapping[str, Arrival], key: Collection[str]) -> Arrival:
    """The order of a step's rows; none of its inputs has lost it."""
    operation = step.operation
    if isinstance(operation, Sql):
        return query_arrival(step, operation, found, key)
    if isinstance(operation, Join):
        has_record = found[operation.input.lower()] is Arrival.RECORD
        return Arrival.RECORD if has_record else Arrival.LOST
    if isinstance(operation, Deduplication):
        before = found[operation.input.lower()]
        is_unique = operation.within is None and set(operation.key).issubset(key)
        return before if before is Arrival.RECORD or is_unique else Arrival.LOST
    if isinstance(operation, StreamJoin) or (isinstance(operation, PythonFunction) and len(operation.inputs) > 1):
        return Arrival.LOST
    return Arrival.ORDERED


def query_arrival(step: Step, operation: Sql, found: Mapping[str, Arrival], key: Collection[str]) -> Arrival:
    query = query_of(step)
    if query is None:
        return Arrival.ORDERED
    with_records = [name for name, each in found.items() if each is Arrival.RECORD]
    if kept_origins(operation.text, with_records) is not None:
        return Arrival.RECORD
    return Arrival.LOST if mixes_rows(query, key) else Arrival.ORDERED


def mixes_rows(query: exp.Expr, key: Collection[str]) -> bool:
    """Whether a query has a join, or a UNION whose queries may have rows of the same key."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    subqueries = [each for each in query.find_all(exp.In, exp.Exists) if each.find(exp.Select) is not None]
    if subqueries or query.find(exp.Join) is not None:
        return True
    return any(not tells_queries_apart(each, key) for each in query.find_all(exp.Union))


def tells_queries_apart(union: exp.Union, key: Collection[str]) -> bool:
    named = {name.lower() for name in key}
    columns = [each.alias_or_name.lower() for each in union.selects]
    return any(name in named and has_own_literals(union, at) for at, name in enumerate(columns))
