"""Checks that no sink or view writes two columns of one name, which a SELECT may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import RECORD_COLUMN_NAMES, lookup
from odradek.pipelines.definition.model import PythonTarget, RunningAggregate, Sink, TopicTarget
from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.sql_columns import projected, scope_of, with_ctes
from odradek.pipelines.definition.sql_text import SqlError, parse_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.model import Pipeline, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.sql_scope import Tables
    from odradek.pipelines.definition.table_columns import Columns


def check_repeated(pipeline: Pipeline, known: Mapping[str, Columns | None], problems: Problems) -> None:
    steps = {each.name.lower(): each for each in pipeline.steps}
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        step = steps.get(end.input.lower())
        if step is None or not isinstance(step.operation, Sql) or not writes_all_columns(end):
            continue
        found = repeated_columns(step.operation.text, lambda name: lookup(known, name))
        if found:
            problems.error(
                step.operation.place,
                f"step '{step.name}' has two columns '{found[0]}', and {'sink' if isinstance(end, Sink) else 'view'} "
                f"'{end.name}' writes both",
                f"name the columns instead of *, and one of them with AS: {found[0]} AS other_{found[0]}",
            )


def writes_all_columns(end: Sink | View) -> bool:
    if not isinstance(end, Sink):
        return not isinstance(end.content, RunningAggregate)
    return not isinstance(end.target, PythonTarget) and not (isinstance(end.target, TopicTarget) and end.target.value)


def repeated_columns(text: str, tables: Tables) -> list[str]:
    """The names, in lower case, that several columns of a query have; none if its columns are not known."""
    try:
        names = column_names(parse_query(text), tables)
    except SqlError:
        return []
    found = [name for at, name in enumerate(names) if name in names[:at]]
    is_whole = RECORD_COLUMN_NAMES.issubset(names)  # sinks then leave out the columns of records
    return [name for name in found if not (is_whole and name in RECORD_COLUMN_NAMES)]


def column_names(query: exp.Expr, tables: Tables) -> list[str]:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    inner = with_ctes(query, tables)
    if isinstance(query, exp.SetOperation | exp.Subquery):
        return column_names(query.this, inner)
    if not isinstance(query, exp.Select):
        return []
    scope = scope_of(query, inner)
    joins = query.args.get("joins") or ()
    names: list[str] = []
    for each in query.expressions:
        if isinstance(each, exp.Star) and (len(scope.tables) > 1 or each.args):
            is_plain = scope.is_known and not scope.extra and not any(each.args.values())
            if not is_plain or any(join.args.get("using") or join.args.get("method") or join.kind for join in joins):
                return []
            names += [name.lower() for columns in scope.tables.values() for name in (columns.names if columns else ())]
            continue
        found = projected(each, scope, None)
        if found is None:
            return []
        names += map(str.lower, found)
    return names
