"""Checks that the realtime engine can run each step: it handles every record by itself, and runs no Python."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks_engines import STANDARD_HINT, add_realtime_error
from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.operations import Join, PythonFunction, Sql
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.query_checks import place_below
from odradek.pipelines.planning.realtime_joins import RealtimeJoins
from odradek.pipelines.planning.state import State, state_of

if TYPE_CHECKING:
    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams


def check_realtime_steps(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    steps = [each for each in pipeline.steps if each.name in streams.names]
    for step in steps:
        check_realtime_step(step, graph, streams, problems)
    dividing = next(filter(None, (dividing_part(pipeline), *map(dividing_operation, steps))), None)
    for step in steps if dividing is not None else ():
        for each in step.expectations:
            if each.otherwise is Otherwise.FAIL:
                problems.error(
                    place_of(step, "expect", each.name, "otherwise"),
                    f"the realtime engine cannot stop at rows of step '{step.name}' that do not meet '{each.name}': "
                    f"{dividing}, so that the outputs of the pipeline are branches, and the others would go on",
                    STANDARD_HINT,
                )


def dividing_part(pipeline: Pipeline) -> str | None:
    """What keeps a pipeline from one pass over its source, in words."""
    streams = [each.name for each in pipeline.sources if each.is_stream]
    return f"it reads the streams {' and '.join(streams)}" if len(streams) > 1 else None


def dividing_operation(step: Step) -> str | None:
    """What keeps a pipeline with this step from one pass over its source, in words; some of it is found at the start.

    One pass computes SELECTs of one table without a generator among its columns."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(step.operation, Join):
        return f"step '{step.name}' has a join"
    query = query_of(step)
    if query is None:
        return None
    if not isinstance(query, exp.Select) or len(list(query.find_all(exp.Select, exp.Table))) != 2:
        return f"step '{step.name}' has a join, a union or a subquery"
    is_generator = any(each.find(exp.UDTF, exp.Explode) is not None for each in query.expressions)
    return f"step '{step.name}' has explode() among its columns" if is_generator else None


def check_realtime_step(step: Step, graph: Graph, streams: Streams, problems: Problems) -> None:
    if isinstance(step.operation, PythonFunction):
        problems.warning(
            step.place,
            f"step '{step.name}' must not use Python UDFs: real-time mode does not run Python",
            "use Spark's built-in functions, or SQL",
        )
    state = state_of(step, streams.names)
    if State.KEYED in state:
        add_realtime_error(problems, step, "step", "keeps state in Python, which real-time mode does not run")
    if State.DEDUPLICATION in state:
        add_realtime_error(
            problems, step, "step", "deduplicates records, and this engine handles each record by itself"
        )
    if State.AGGREGATION in state:
        add_realtime_error(problems, step, "step", "aggregates records, and this engine handles each record by itself")
    if State.STREAM_JOIN in state:
        read = dict.fromkeys(each for each in graph.inputs.get(step.name, ()) if each in streams.names)
        named = f"streams {' and '.join(read)}" if len(read) > 1 else f"stream {next(iter(read))} with itself"
        add_realtime_error(problems, step, "step", f"joins the {named}, which real-time mode does not support")
    elif (again := source_read_twice(step, graph, streams)) is not None:
        add_realtime_error(
            problems,
            step,
            "step",
            f"reads the stream '{again}' twice, and real-time mode unites different streams only",
        )
    else:
        check_joins(step, streams, problems)


def check_joins(step: Step, streams: Streams, problems: Problems) -> None:
    """Checks that the joins of a query with static tables have an equality of columns."""
    query, operation = query_of(step), step.operation
    if query is None or not isinstance(operation, Sql):
        return
    reading = RealtimeJoins(streams)
    reading.of_query(query)
    what = f"the realtime engine cannot run step '{step.name}': it"
    for join in reading.joins:
        problems.error(
            place_below(operation, join),
            f"{what} joins without an equality of columns, and real-time mode joins by equal columns only",
            f"add a condition such as a.id = b.id, or {STANDARD_HINT}",
        )
    for subquery in reading.subqueries:
        problems.error(
            place_below(operation, subquery),
            f"{what} has a subquery that Spark does not join by equal columns, and real-time mode runs no other joins",
            f"write [NOT] EXISTS (SELECT 1 FROM b WHERE b.id = a.id) or a join by equal columns, or {STANDARD_HINT}",
        )


def source_read_twice(step: Step, graph: Graph, streams: Streams) -> str | None:
    """The first stream of a source that a query reads several times, directly or through steps: in a UNION ALL."""
    query = query_of(step)
    if query is None:
        return None
    tables = {name.lower(): name for name in streams.names}
    reads: Counter[str] = Counter()
    for name, count in reads_of(query).items():
        before = graph.upstream(tables[name]) if name in tables else ()
        sources = [each for each in before if each in streams.names and not graph.inputs.get(each)]
        reads.update(dict.fromkeys(sources, count))
    return next((name for name, count in reads.items() if count > 1), None)


def reads_of(query: exp.Expr) -> Counter[str]:
    """How often a query reads each table, by its name in lower case; those of a WITH as often as it is named."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    tables = list(query.find_all(exp.Table))
    named = Counter(each.name.lower() for each in tables)
    reads: Counter[str] = Counter()
    for each in tables:
        around = each.find_ancestor(exp.CTE)
        reads[each.name.lower()] += 1 if around is None else named[around.alias.lower()]
    return reads
