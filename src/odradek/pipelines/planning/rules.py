"""The rules of streams: small functions that read the plan, and say what is refused and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks import Facts, check_definition
from odradek.pipelines.definition.model import LakehouseTarget, place_of
from odradek.pipelines.definition.operations import Aggregation, Deduplication, KeyedState, StreamJoin
from odradek.pipelines.definition.places import ProblemList, Problems
from odradek.pipelines.definition.vocabulary import Otherwise, StateOrder
from odradek.pipelines.planning.determinism import determinism, uncaught
from odradek.pipelines.planning.paths import time_column
from odradek.pipelines.planning.plan import (
    EndMode,
    GroupSql,
    PairSql,
    Plan,
    RowSql,
    StaticSql,
    Table,
    UnionSql,
    Unplanned,
)
from odradek.pipelines.planning.splitting import with_flows
from odradek.pipelines.planning.tables import make_plan
from odradek.pipelines.planning.targets import realtime, targets
from odradek.pipelines.planning.time_rules import event_times, joins
from odradek.pipelines.planning.verdicts import SPREADING, Code, Refusal
from odradek.pipelines.planning.written import check_names, written_in
from odradek.pipelines.sql.functions import Kind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import Parsed, Pipeline
    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import End, Path

STATEFUL = (Aggregation, Deduplication, KeyedState, StreamJoin, GroupSql, PairSql)
THROUGH_A_TOPIC = "write the groups to a topic (mode: update), and read that in another pipeline"


def checked_plan(pipeline: Pipeline, problems: Problems, broken: frozenset[str] = frozenset()) -> Plan:
    """The plan of a pipeline, with its flows if nothing is refused. `broken` are declarations that were not parsed."""
    plan = make_plan(pipeline, problems, broken)
    check_names(plan, problems)
    apply_rules(plan, problems)
    return plan if problems.errors else with_flows(plan)


def checked_definition(parsed: Parsed, problems: Problems) -> Plan:
    """The plan of a definition, with its flows if nothing is wrong. Reports every problem."""
    plan = checked_plan(parsed.pipeline, problems, parsed.broken)
    check_definition(parsed.pipeline, facts_of(plan), problems, parsed.broken)
    return plan


def facts_of(plan: Plan) -> Facts:
    upstream = {name for end in plan.ends for name in plan.upstream(end.input)}
    declared = [each for each in plan.tables.values() if not each.is_hidden]
    return Facts(
        used=frozenset(plan.table(name).owner.name.lower() for name in upstream),
        streams=frozenset(each.name.lower() for each in declared if each.path.is_stream),
        columns={each.name.lower(): each.columns.types for each in declared if each.columns is not None},
    )


def plan_again(pipeline: Pipeline) -> Plan:
    """The plan of a pipeline that was changed after its checks; raises `ProblemList` if the rules refuse it."""
    problems = Problems()
    plan = checked_plan(pipeline, problems)
    if problems.errors:
        raise ProblemList(problems.errors)
    return plan


def apply_rules(plan: Plan, problems: Problems) -> None:
    """Reports what the rules refuse. What only follows from a table that is refused is not reported."""
    found = [refusal for rule in RULES for refusal in rule(plan)]
    refused = {each.subject.name for each in found if each.code in SPREADING and isinstance(each.subject, Table)}
    for each in found:
        subject = each.subject
        before = plan.upstream(subject.name)[:-1] if isinstance(subject, Table) else plan.upstream(subject.input)
        if refused.intersection(before):
            continue
        if each.code is None:
            problems.warning(each.place, each.message, each.example)
        else:
            problems.error(each.place, each.message, each.example, each.code)


def shapes(plan: Plan) -> Iterator[Refusal]:
    """SQL over streams works row by row, or is one of two shapes with state."""
    for table in plan.tables.values():
        made = table.made_by
        if isinstance(made, Unplanned):
            advice = f"write {made.why.advice.removeprefix('write ')}"
            yield _not_row_by_row(table, made.why.clause.rstrip(","), table.place_in_sql(made.why.span[0]), advice)
        elif isinstance(made, StreamJoin):
            for side, keys in ((made.input, ("from",)), (made.stream, ("join", "stream"))):
                if not plan.is_stream(side):
                    message = f"{table.described} joins streams, and '{side}' is not a stream"
                    example = f"write sql: select * from {made.input} join {made.stream} using ({', '.join(made.on)})"
                    yield Refusal(Code.NOT_ROW_BY_ROW, table, table.place(*keys), message, example)


def expressions(plan: Plan) -> Iterator[Refusal]:
    """Expressions of declarations are computed row by row, or are aggregates: they are no queries."""
    for written in written_in(plan):
        query, subject = written.query, written.subject
        if not written.is_expression:
            continue
        if query.clauses or query.subqueries:
            clause = next(iter(sorted(query.clauses)), "(SELECT …)")
            advice = f"write it without {clause}" if query.clauses else "join the table in a step before"
            yield _not_row_by_row(subject, clause, written.place(0), advice)
        made = subject.made_by if isinstance(subject, Table) else None
        aggregates = {each.expression for each in made.aggregates} if isinstance(made, Aggregation) else set()
        for call in query.calls:
            if kind_of(call.name) is Kind.AGGREGATE and written.text not in aggregates:
                text = query.text(call.span)
                advice = f"compute it in a step before: aggregate: {{value: {text}}}"
                yield _not_row_by_row(subject, text, written.place(call.span[0]), advice)


def _not_row_by_row(subject: Table | End, clause: str, place: Place, advice: str) -> Refusal:
    message = f"{subject.described} has {clause}, which a stream does not have row by row"
    return Refusal(Code.NOT_ROW_BY_ROW, subject, place, message, advice)


def static_sides(plan: Plan) -> Iterator[Refusal]:
    """A static table is read in each batch: none of its rows may be a result on its own."""
    for table in plan.tables.values():
        made = table.made_by
        kept = made.shape.kept_tables[:1] if isinstance(made, RowSql) else ()
        for name in kept:
            message = f"{table.described} keeps the rows of the table '{name}' by their match in a stream"
            example = "keep the stream's side: FROM stream LEFT JOIN table ON …"
            yield Refusal(Code.STATIC_SIDE_KEPT, table, table.place_in_sql(0), message, example)
        if isinstance(made, UnionSql) and table.path.is_stream:
            for name in made.parts:
                if not plan.is_stream(name):
                    message = f"{table.described} unites a stream with static rows, which each batch would have again"
                    example = "write these rows to a topic once, or join them"
                    part = plan.table(name).made_by
                    place = table.place_in_sql(part.part.start if isinstance(part, StaticSql) else 0)
                    yield Refusal(Code.STATIC_ROWS_AGAIN, table, place, message, example)
        for each in table.checks if plan.streams and not table.path.is_stream else ():
            if each.otherwise is Otherwise.QUARANTINE:
                what = f"expectation '{each.name}' of {table.described}"
                message = f"{what} quarantines rows of a static table, which each batch would write again"
                place = table.place("expect", each.name, "otherwise")
                yield Refusal(Code.STATIC_ROWS_AGAIN, table, place, message, "use otherwise: drop or warn")
    for end in plan.ends if plan.streams else ():
        if not plan.is_stream(end.input):
            message = f"{end.described} writes '{end.input}', whose rows are static: each batch would write them again"
            example = "write them by a pipeline of their own, with engine: batch"
            yield Refusal(Code.STATIC_ROWS_AGAIN, end, place_of(end, "from"), message, example)


def groups(plan: Plan) -> Iterator[Refusal]:
    """Groups are read while they change only where they are the only state before a keyed end or `mode: update`."""
    for table in plan.tables.values():
        open_groups = [path.never_final for path in map(plan.path, table.inputs) if path.never_final]
        if isinstance(table.made_by, STATEFUL) and open_groups:
            name = plan.shown(open_groups[0])
            message = f"{table.described} keeps state over the groups of '{name}', which never become final"
            example = f"group '{name}' by a window of its event time, or {THROUGH_A_TOPIC}"
            yield Refusal(Code.STATE_OVER_OPEN_GROUPS, table, table.place(), message, example)
        if table.path.sessions == table.name and len(table.path.groups or ()) == 1:
            message = f"the sessions of {table.described} need columns beside the session"
            yield Refusal(Code.FINAL_ONLY, table, table.place(), message, "add by: [user], whose sessions they are")
    for end in plan.ends:
        path = plan.path(end.input)
        is_update_of_final = end.mode is EndMode.UPDATE and path.grouped_by is not None and not path.can_change
        takes_current = end.mode is EndMode.UPDATE or (end.mode is EndMode.KEYED and path.can_change)
        if path.never_final and (is_update_of_final or not takes_current):
            yield _never_final(plan, end, path)
        elif is_update_of_final:
            yield _final_only(plan, end, path)


def _final_only(plan: Plan, end: End, path: Path) -> Refusal:
    what, name = "sessions" if path.sessions else "groups", plan.shown(path.sessions or path.grouped_by or "")
    message = f"{end.described} has mode: update, and takes the {what} of '{name}' when they are final"
    return Refusal(Code.FINAL_ONLY, end, place_of(end, "mode"), message, "remove mode: update")


def _never_final(plan: Plan, end: End, path: Path) -> Refusal:
    grouping = plan.table(path.never_final or "")
    name, before = plan.shown(grouping.name), grouping.inputs[0]
    time, is_sql = time_column(plan, before), isinstance(grouping.made_by, GroupSql)
    example = f"group by window({time}, '1 hour')" if is_sql else f"add window: {{column: {time}, size: 1 hour}}"
    if path.can_change:
        writes = "writes final rows"
        other = "use a topic with mode: update, or a table with key:, the columns of the groups"
    else:
        writes = "takes final rows behind other state, UNION ALL or Python"
        through = f"write '{plan.shown(before)}' to a topic, and group that in another pipeline"
        other = THROUGH_A_TOPIC if path.groups is None else through
    message = f"the groups of '{name}' never become final for {end.described}, which {writes}"
    return Refusal(Code.NEVER_FINAL, end, place_of(end, "mode"), message, f"{example}, or {other}")


def keys(plan: Plan) -> Iterator[Refusal]:
    """The key of groups is their columns as they are. Spark knows whether their types are exact."""
    for end in plan.ends:
        if end.mode is EndMode.KEYED and plan.path(end.input).groups is not None:
            yield from _group_key(plan, end)


def _group_key(plan: Plan, end: End) -> Iterator[Refusal]:
    path = plan.path(end.input)
    groups, key = path.groups or (), {each.lower() for each in end.key}
    known = {name.lower() for columns in groups for name in columns}
    is_whole = all(any(name.lower() in key for name in columns) for columns in groups)
    if is_whole and key <= known:
        return
    name, place = plan.shown(path.grouped_by or ""), place_of(end, "key")
    message = f"the key of {end.described} must be the columns by which '{name}' groups"
    if not groups:
        message = f"{end.described} has a key, and '{name}' has one group of all rows"
        example = "add by:, the columns of the key"
    elif all(groups):
        example = f"write key: [{', '.join(columns[0] for columns in groups)}]"
    else:
        made = plan.table(path.grouped_by or "").made_by
        by = made.by if isinstance(made, Aggregation) else ()
        keys = made.shape.keys if isinstance(made, GroupSql) else ()
        texts = [*by, *("window.start" if each.is_window else each.text for each in keys)]
        missing = texts[len(texts) - len(groups) :][groups.index(())]
        message += f", and '{missing}' is not selected as it is"
        example = f"select {missing}, and add it to the key"
    yield Refusal(Code.KEY_IS_NOT_THE_GROUP, end, place, message, example)


def orders(plan: Plan) -> Iterator[Refusal]:
    """What keeps one of several rows knows the order of their arrival, or does not depend on it."""
    for table in plan.tables.values():
        made = table.made_by
        if not isinstance(made, Deduplication | KeyedState) or not table.path.is_stream:
            continue
        path, columns = plan.path(made.input), plan.table(made.input).columns
        if path.is_ordered and path.groups is None:
            continue
        if isinstance(made, Deduplication):
            if columns is not None and not columns.without(made.key).names:
                continue
            message = f"{table.described} keeps the first row of a key, and {_no_order(plan, made.input)}"
            example = "name all its columns in the key, or use a table or view with key and order_by"
            yield Refusal(Code.NO_ORDER, table, table.place("deduplicate", "key"), message, example)
        elif made.order is not StateOrder.ANY:
            takes = f"the processor of {table.described} takes rows as they arrive"
            message = f"{takes}, and {_no_order(plan, made.input)}"
            example = "write order: any, if its result does not depend on the order"
            yield Refusal(Code.NO_ORDER, table, table.place("state"), message, example)
    for end in plan.ends:
        path = plan.path(end.input)
        if end.mode is not EndMode.KEYED or end.order_by or path.is_ordered or not path.is_stream:
            continue
        keeps = f"{end.described} keeps the row of each {', '.join(end.key)} that arrived last"
        message = f"{keeps}, and {_no_order(plan, end.input)}"
        column = time_column(plan, end.input, *end.key)
        example = f"add order_by: [{column}], columns that say which row is newer"
        if isinstance(end.target, LakehouseTarget):
            example = f"use changes: {{key: [{', '.join(end.key)}], sequence: {column}}}"
        yield Refusal(Code.NO_ORDER, end, place_of(end, "key"), message, example)


def _no_order(plan: Plan, name: str) -> str:
    """Which table lost the order of arrival."""
    upstream = [plan.table(each) for each in plan.upstream(name)]
    lost = next((each for each in upstream if each.path.is_stream and not each.path.is_ordered), None)
    if lost is None:
        return f"the groups of '{plan.shown(name)}' have none"
    return f"the rows of {lost.described} have no order of arrival"


RULES = (
    shapes,
    expressions,
    static_sides,
    joins,
    event_times,
    groups,
    keys,
    orders,
    determinism,
    uncaught,
    realtime,
    targets,
)
