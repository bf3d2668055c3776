"""Checks of SQL over streams: clauses that need all rows at once, and joins that Spark cannot run on streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_text import place_in
from odradek.pipelines.planning.join_bounds import bounds_of
from odradek.pipelines.planning.join_reads import columns_read
from odradek.pipelines.planning.null_guards import OUTER, can_be_guarded, computed_keys
from odradek.pipelines.planning.queries import JoinType, own_nodes, query_of
from odradek.pipelines.planning.query_facts import query_facts
from odradek.pipelines.planning.time_queries import TimeQueries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Step
    from odradek.pipelines.definition.operations import Sql
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.planning.join_bounds import Bounds
    from odradek.pipelines.planning.query_facts import JoinFound
    from odradek.pipelines.planning.streams import Streams
    from odradek.pipelines.planning.time_columns import Sides

WATERMARK_HINT = "add watermark: {column: …, delay: …} to its source"
LATER_HINT = "do this when you query a view or a table, or use engine: batch"
# The sides of a join of streams whose rows wait until no match can arrive; True is the left side.
KEPT_SIDES: Mapping[JoinType, frozenset[bool]] = {
    JoinType.INNER: frozenset(),
    JoinType.LEFT: frozenset((True,)),
    JoinType.SEMI: frozenset((True,)),
    JoinType.RIGHT: frozenset((False,)),
    JoinType.FULL: frozenset((True, False)),
}
# Joins that keep rows of a static table by their match in a stream: with the stream on the left, and on the right.
STATIC_KEPT = {
    True: {JoinType.RIGHT, JoinType.FULL},
    False: {JoinType.LEFT, JoinType.FULL, JoinType.SEMI, JoinType.ANTI},
}


def check_stream_query(step: Step, operation: Sql, graph: Graph, streams: Streams, problems: Problems) -> None:
    query = query_of(step)
    if query is None:
        return
    facts = query_facts(query, streams.names)
    check_clauses(step, operation, query, facts.static, problems)
    for scalar in facts.scalars:
        problems.error(
            place_below(operation, scalar),
            f"step '{step.name}' uses one value of a subquery over a stream, which changes with every record",
            "aggregate the stream in a step, and join with it",
        )
    for union in facts.unions:
        problems.error(
            place_below(operation, union),
            f"step '{step.name}' unites a stream with rows of a static table, which every batch would have again",
            "join with the table, write its rows once with a pipeline of engine: batch, or set stream: true on its "
            "source",
        )
    for each in facts.aggregations:
        check_distinct(f"step '{step.name}'", aggregated(each), operation.place, problems)
    read = [each for each in graph.inputs.get(step.name, ()) if each in streams.names]
    bare = [each for each in read if not streams.times_of(each).all]
    reading = TimeQueries(streams)
    reading.of_query(query)
    for join in facts.joins:
        if join.is_lateral:
            check_lateral_join(step, operation, join, problems)
        elif join.is_of_streams:
            check_stream_join(step, operation, join, reading.sides, problems)
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


def check_clauses(step: Step, operation: Sql, query: exp.Expr, static: Sequence[exp.Expr], problems: Problems) -> None:
    """Checks clauses that need all rows at once; `static` are the parts of the query that read no stream."""
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
        found = next((each for each in query.find_all(kind) if in_stream(each) and not runs_once(each, static)), None)
        if found is not None:
            problems.error(
                place_below(operation, found), f"{what} {verb} a stream, which is unbounded and unordered", LATER_HINT
            )
    for each in static:
        if each.args.get("offset") or (each.args.get("limit") and not each.args.get("order")):
            problems.error(
                place_below(operation, each),
                f"{what} takes some rows of a static table, in a query over a stream, by OFFSET, which Spark does not "
                "support there, or by LIMIT without an order: each batch may take others",
                "add ORDER BY, or number the rows by row_number() OVER (ORDER BY …) and filter by that",
            )
    if any(not is_one_of(each, static) for each in query.find_all(exp.Intersect, exp.Except)):
        problems.error(
            operation.place, f"{what} uses INTERSECT or EXCEPT, which streams do not support", "write it as a join"
        )


def runs_once(clause: exp.Expr, static: Sequence[exp.Expr]) -> bool:
    """Whether a clause is of a part of the query that reads no stream; samples of a table differ between batches."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    owner = clause.find_ancestor(exp.Select, exp.SetOperation)
    return not isinstance(clause, exp.TableSample | exp.Pivot) and is_one_of(owner, static)


def is_one_of(node: exp.Expr | None, nodes: Iterable[exp.Expr]) -> bool:
    return any(each is node for each in nodes)


def check_stream_join(
    step: Step, operation: Sql, join: JoinFound, sides_by_join: Mapping[int, Sides], problems: Problems
) -> None:
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
    sides = sides_by_join[id(join.node)]
    bounds = bounds_of(join, sides)
    if not bounds.has_equality:
        problems.error(
            place,
            f"{what} joins streams without an equality of their columns, which Spark does not support",
            "add a condition such as a.id = b.id",
        )
    if not KEPT_SIDES[join.type] <= bounds.ends:
        problems.error(
            place,
            f"{what} writes rows of a {join.type} join of streams that have no match, and no bound of event time says "
            "when a match can no longer arrive",
            "give both streams a watermark, and bound the time in the condition: b.at BETWEEN a.at AND "
            "a.at + INTERVAL 10 MINUTES",
        )
    check_one_time(step, operation, join, sides, problems)
    check_removals(step, operation, join, bounds, sides, problems)
    check_nulls(step, operation, join, problems)


def times_in_state(join: JoinFound, sides: Sides, *, is_left: bool) -> list[str]:
    """The columns of event time of a side that are in the state of the join."""
    read = columns_read(join.node, sides, is_left=is_left)
    return [each for each in sides.marked(is_left=is_left) if each in read]


def check_one_time(step: Step, operation: Sql, join: JoinFound, sides: Sides, problems: Problems) -> None:
    """Checks that the state of each side has one column of event time, by which Spark removes its rows."""
    for is_left in (True, False):
        times = times_in_state(join, sides, is_left=is_left)
        if len(times) > 1:
            problems.error(
                place_below(operation, join.node),
                f"step '{step.name}' joins streams, and the {'left' if is_left else 'right'} side has several columns "
                f"of event time, of which Spark accepts one: {' and '.join(each.rpartition('.')[2] for each in times)}",
                "select one of them in a step before it, and of the others a copy that is not event time: "
                "at + INTERVAL 0 SECONDS",
            )


def check_removals(
    step: Step, operation: Sql, join: JoinFound, bounds: Bounds, sides: Sides, problems: Problems
) -> None:
    """Checks that Spark removes rows from the state of the join when they can match no more, and not before."""
    what, place = f"step '{step.name}'", place_below(operation, join.node)
    for marked, plain in bounds.keys:
        problems.error(
            place,
            f"{what} joins streams by {marked} = {plain}, of which only {marked} is event time: Spark would remove "
            "rows once the watermark has passed it, and a row that matches may arrive later",
            f"write {marked} + INTERVAL 0 SECONDS = {plain}, and bound the event times of both streams: "
            "b.at BETWEEN a.at AND a.at + INTERVAL 10 MINUTES",
        )
    for is_left, column, time in bounds.early:
        own = next(iter(times_in_state(join, sides, is_left=is_left)), None)
        if own is None:
            continue  # Spark leaves the column out of the state, and removes nothing
        problems.error(
            place,
            f"{what} joins streams with the bound {time} for {column}, which is not event time: Spark would remove "
            f"rows by their event time {own}, before all that match have arrived",
            f"bound the event time, too: {time} <= {own} + INTERVAL 1 DAY",
        )
    for column in [text for is_left, text in bounds.numbers.items() if is_left in KEPT_SIDES[join.type]]:
        if join.type is not JoinType.SEMI:
            problems.error(
                place,
                f"{what} compares {column} with a number in the condition of a {join.type} join of streams: Spark "
                "takes the number for a time, and would never write rows without a match",
                f"compare it in a step before, as a column: select {column.rpartition('.')[2]} > 3 as is_large, …",
            )


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


def check_lateral_join(step: Step, operation: Sql, join: JoinFound, problems: Problems) -> None:
    """Refuses LATERAL after a comma or JOIN. Spark plans most forms as a join of the stream with itself, which it
    refuses at the start; for `LEFT JOIN LATERAL explode(…)` it drops the rows without elements."""
    problems.error(
        place_below(operation, join.node),
        f"step '{step.name}' joins the rows of a stream with LATERAL, which Spark may run as a join that streams do "
        "not support",
        "write LATERAL VIEW explode(items) t AS item (with OUTER it keeps rows without items), an expression, a "
        "join with the table, or engine: batch",
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


def in_stream(found: exp.Expr) -> bool:
    """Whether the clause applies to the stream; ORDER BY inside an aggregate or OVER sorts a group only."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return not isinstance(found, exp.Order) or isinstance(found.parent, exp.Query)


def place_below(operation: Sql, found: exp.Expr) -> Place:
    """The place of the first identifier in a part of a query; sqlglot records positions of identifiers only."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    name = next((each for each in found.find_all(exp.Identifier) if "line" in each.meta), None)
    return operation.place if name is None else operation.place.inside(*place_in(name))
