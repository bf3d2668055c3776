"""Which steps name the columns of Kafka records (`_key`, `_value` …) themselves.

Sinks leave out the columns of records if a row has all of them only because its source has them, or because of a `*`.
A step whose SQL names all of them wants them to be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import RECORD_COLUMN_NAMES
from odradek.pipelines.definition.model import (
    ConsoleTarget,
    PythonTarget,
    RunningAggregate,
    Sink,
    TopicTarget,
    place_of,
)
from odradek.pipelines.definition.operations import Deduplication, Join, Sql
from odradek.pipelines.definition.sql_text import SqlError, parse_query
from odradek.pipelines.definition.sql_written import is_star

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.table_columns import Columns


def names_records(query: exp.Expr, naming: Collection[str] = ()) -> bool:
    """Whether a query names all columns of records, or has them by a `*` from a table in `naming` (lower case)."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    known = set(naming)
    clause = query.args.get("with_") or query.args.get("with")
    for each in () if clause is None else clause.expressions:
        known = known | {each.alias.lower()} if names_records(each.this, known) else known - {each.alias.lower()}
    if isinstance(query, exp.SetOperation | exp.Subquery):
        return names_records(query.this, known)
    named = {each.alias_or_name.lower() for each in query.expressions if not is_star(each)}
    if RECORD_COLUMN_NAMES.issubset(named):
        return True
    origin = query.args.get("from_") or query.args.get("from")
    sources = [each.this for each in (origin, *(query.args.get("joins") or ())) if each is not None]
    return any(map(is_star, query.expressions)) and any(
        names_records(each, known) if isinstance(each, exp.Subquery) else each.name.lower() in known for each in sources
    )


def steps_that_name_records(pipeline: Pipeline, graph: Graph) -> set[str]:
    """The names of these steps, in lower case; a step that passes on all columns of such a step is one, too."""
    steps = {each.name: each for each in pipeline.steps}
    found: set[str] = set()
    for name in graph.order:
        if name in steps and step_names_records(steps[name], found):
            found.add(name.lower())
    return found


def step_names_records(step: Step, naming: Collection[str]) -> bool:
    operation = step.operation
    if isinstance(operation, Join | Deduplication):
        return operation.input.lower() in naming
    if not isinstance(operation, Sql):
        return False
    try:
        return names_records(parse_query(operation.text), naming)
    except SqlError:
        return False


def check_records(pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None], problems: Problems) -> None:
    """Checks that no sink or view is left without columns."""
    naming = steps_that_name_records(pipeline, graph)
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        columns = known.get(end.input)
        if columns is None or end.input.lower() in naming or chooses_columns(end):
            continue
        if {name.lower() for name in columns.types} == RECORD_COLUMN_NAMES:
            problems.error(
                place_of(end, "from"),
                f"'{end.name}' reads '{end.input}', which has the columns of its records only; they are written only "
                "if SQL names them",
                f"name them in a step: select cast(_key as string) as id, _value as content from {end.input}",
            )


def chooses_columns(end: Sink | View) -> bool:
    """Whether the end itself says what it writes; a console without columns is no failure."""
    if not isinstance(end, Sink):
        return isinstance(end.content, RunningAggregate)
    return isinstance(end.target, PythonTarget | ConsoleTarget) or (
        isinstance(end.target, TopicTarget) and bool(end.target.value)
    )
