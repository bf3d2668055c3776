"""Checks of SQL over streams: clauses that need all rows at once, and joins that Spark cannot run on streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_text import place_in
from odradek.pipelines.planning.null_guards import OUTER, can_be_guarded, computed_keys
from odradek.pipelines.planning.queries import JoinType, own_nodes, query_of
from odradek.pipelines.planning.query_facts import query_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Step
    from odradek.pipelines.definition.operations import Sql
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.planning.query_facts import JoinFound
    from odradek.pipelines.planning.streams import Streams

WATERMARK_HINT = "add watermark: {column: …, delay: …} to its source"
LATER_HINT = "do this when you query a view or a table, or use engine: batch"
# Joins that keep rows of a static table by their match in a stream: with the stream on the left, and on the right.
STATIC_KEPT = {
    True: {JoinType.RIGHT, JoinType.FULL},
    False: {JoinType.LEFT, JoinType.FULL, JoinType.SEMI, JoinType.ANTI},
}


def time_hint(lost: str | None) -> str:
    """The way to event time for a step whose input has none; `lost` is the column of a watermark before the input."""
    if lost is None:
        return WATERMARK_HINT
    return f"select '{lost}' as it is in the steps between, or set the watermark on the step that computes its time"


def check_stream_query(step: Step, operation: Sql, graph: Graph, streams: Streams, problems: Problems) -> None:
    query = query_of(step)
    if query is None:
        return
    check_clauses(step, operation, query, problems)
    facts = query_facts(query, streams.names)
    for scalar in facts.scalars:
        problems.error(
            place_below(operation, scalar),
            f"step '{step.name}' uses one value of a subquery over a stream, which changes with every record",
            "aggregate the stream in a step, and join with it",
        )
    for each in facts.aggregations:
        check_distinct(f"step '{step.name}'", aggregated(each), operation.place, problems)
    marks = streams.of_inputs(step, graph)
    read = [each for each in graph.inputs.get(step.name, ()) if each in streams.names]
    bare = [each for each in read if not streams.watermarks.get(each)]
    for join in facts.joins:
        if join.is_of_streams:
            check_stream_join(step, operation, join, frozenset() if bare else marks, problems)
        else:
            check_static_join(step, operation, join, problems)
    if facts.joins_streams and bare:
        problems.warning(
            operation.place,
            f"step '{step.name}' joins streams, and '{bare[0]}' has no watermark: all its rows stay in state",
            WATERMARK_HINT,
        )


def check_distinct(what: str, expressions: Iterable[exp.Expr], place: Place, problems: Problems) -> None:
    """Checks that no aggregate of a stream is DISTINCT; those of a subquery in an expression are of a static table."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    calls = [call for each in expressions for call in (each, *own_nodes(each)) if isinstance(call, exp.Distinct)]
    if calls:
        problems.error(
            place,
            f"{what} aggregates distinct values of a stream, which Spark does not support",
            "write size(collect_set(x)), or approx_count_distinct(x)",
        )


def aggregated(query: exp.Expr) -> list[exp.Expr]:
    """The expressions of a SELECT that may have aggregates."""
    having = query.args.get("having")
    return [*query.expressions, *([having] if having is not None else [])]


def check_clauses(step: Step, operation: Sql, query: exp.Expr, problems: Problems) -> None:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    what = f"step '{step.name}'"
    refused = (
        (exp.Order, "sorts"),
        (exp.Cluster, "sorts"),
        (exp.Limit, "limits"),
        (exp.Offset, "skips rows of"),
        (exp.Window, "uses OVER on"),
        (exp.TableSample, "samples"),
        (exp.Pivot, "pivots"),
    )
    for kind, verb in refused:
        found = next((each for each in query.find_all(kind) if in_stream(each)), None)
        if found is not None:
            problems.error(
                place_below(operation, found), f"{what} {verb} a stream, which is unbounded and unordered", LATER_HINT
            )
    if query.find(exp.Intersect, exp.Except) is not None:
        problems.error(
            operation.place, f"{what} uses INTERSECT or EXCEPT, which streams do not support", "write it as a join"
        )


def check_stream_join(step: Step, operation: Sql, join: JoinFound, marks: frozenset[str], problems: Problems) -> None:
    """Checks a join of two streams, of two steps of one stream, or of a stream with itself."""
    what = f"step '{step.name}'"
    place = place_below(operation, join.node)
    if join.type is JoinType.ANTI:
        problems.error(
            place,
            f"{what} keeps the rows of a stream without a match in a stream, and a match may arrive at any time",
            "use LEFT JOIN with a bound on the time between the rows, and keep rows without a match in a next step",
        )
        return
    if join.is_subquery:
        problems.error(
            place,
            f"{what} uses IN or EXISTS of a subquery over a stream, which Spark does not support",
            "write LEFT SEMI JOIN, with a bound of event time in its condition",
        )
        return
    if not has_equality(join):
        problems.error(
            place,
            f"{what} joins streams without an equality of their columns, which Spark does not support",
            "add a condition such as a.id = b.id",
        )
    if join.type is not JoinType.INNER and not has_time_bound(join, marks):
        problems.error(
            place,
            f"{what} writes rows of a {join.type} join of streams that have no match, and no bound of event time says "
            "when a match can no longer arrive",
            "give both streams a watermark, and bound the time in the condition: b.at BETWEEN a.at AND "
            "a.at + INTERVAL 10 MINUTES",
        )
    check_nulls(step, operation, join, problems)


def check_nulls(step: Step, operation: Sql, join: JoinFound, problems: Problems) -> None:
    """Checks that the condition of an outer join can say that what it compares is not null (see `null_guards`)."""
    if join.type not in OUTER:
        return
    what, place = f"step '{step.name}'", place_below(operation, join.node)
    condition = join.node.args.get("on")
    computed = [] if condition is None else computed_keys(condition)
    if join.node.args.get("using") or join.node.args.get("method"):
        problems.error(
            place,
            f"{what} has a {join.type} join of streams with USING or NATURAL, by which Spark would never write rows "
            "whose event time is null",
            "write the condition with ON: a.id = b.id AND a.at = b.at",
        )
    elif condition is not None and not can_be_guarded(operation.text):
        problems.error(
            place,
            f"{what} has a {join.type} join of streams beside a hint, a nested comment or an unknown character, with "
            "which rows whose event time is null would never be written",
            "remove it, or use join: {stream: …}",
        )
    elif join.type is JoinType.FULL and computed:
        problems.error(
            place,
            f"{what} has a full join of streams that compares {computed[0]}, and Spark takes two nulls of it for equal",
            "compute it in a step before, and compare the column",
        )


def check_static_join(step: Step, operation: Sql, join: JoinFound, problems: Problems) -> None:
    """Checks that no row of a static table is written for want of a match in a stream."""
    if join.type in STATIC_KEPT[join.is_left_stream]:
        problems.error(
            place_below(operation, join.node),
            f"step '{step.name}' keeps rows of a static table by their match in a stream, which is never complete "
            f"({join.type} join)",
            "put the stream on the side whose rows are kept, or use an inner join",
        )


def conditions(join: JoinFound) -> list[exp.Expr]:
    """The conditions of a join: ON, and WHERE for a comma join and for a subquery."""
    from sqlglot import exp  # noqa: PLC0415

    if not isinstance(join.node, exp.Join):
        return [each for select in join.node.find_all(exp.Select) for each in (select.args.get("where"),) if each]
    above = join.node.find_ancestor(exp.Select)
    found = [join.node.args.get("on"), None if above is None else above.args.get("where")]
    return [each for each in found if each is not None]


def has_equality(join: JoinFound) -> bool:
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(join.node, exp.In) or join.node.args.get("using") or join.node.args.get("method"):
        return True
    equalities = [each for condition in conditions(join) for each in condition.find_all(exp.EQ, exp.NullSafeEQ)]
    return any(each.this.find(exp.Column) and each.expression.find(exp.Column) for each in equalities)


def has_time_bound(join: JoinFound, marks: frozenset[str]) -> bool:
    """Whether a condition compares two columns of event time."""
    from sqlglot import exp  # noqa: PLC0415

    named = marks | {
        each.alias.lower()
        for each in join.node.root().find_all(exp.Alias)
        if isinstance(each.this, exp.Column) and each.this.name.lower() in marks
    }
    if {each.name.lower() for each in join.node.args.get("using") or ()} & named:
        return True
    compared = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.EQ)
    return any(
        sum(column.name.lower() in named for column in each.find_all(exp.Column)) > 1
        for condition in conditions(join)
        for each in condition.find_all(*compared)
    )


def in_stream(found: exp.Expr) -> bool:
    """Whether the clause applies to the stream; ORDER BY inside an aggregate or OVER sorts a group only."""
    from sqlglot import exp  # noqa: PLC0415

    return not isinstance(found, exp.Order) or isinstance(found.parent, exp.Query)


def place_below(operation: Sql, found: exp.Expr) -> Place:
    """The place of the first identifier in a part of a query; sqlglot records positions of identifiers only."""
    from sqlglot import exp  # noqa: PLC0415

    name = next((each for each in found.find_all(exp.Identifier) if "line" in each.meta), None)
    return operation.place if name is None else operation.place.inside(*place_in(name))
