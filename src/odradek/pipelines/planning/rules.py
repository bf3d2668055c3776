"""The rules of streams: small functions that read the plan, and say what is refused and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Array, Map, Primitive, Struct
from odradek.pipelines.definition.model import LakehouseTarget, Step, TableTarget
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import Otherwise, StateOrder, StreamJoinKind
from odradek.pipelines.planning.constructs import needs_of, of_end, of_table
from odradek.pipelines.planning.determinism import determinism, uncaught
from odradek.pipelines.planning.paths import RECORD_COLUMN_NAMES
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
    place_of,
)
from odradek.pipelines.planning.splitting import with_flows
from odradek.pipelines.planning.tables import make_plan
from odradek.pipelines.planning.targets import realtime, targets
from odradek.pipelines.planning.verdicts import SPREADING, Code, Refusal
from odradek.pipelines.planning.written import check_names
from odradek.pipelines.sql.query import Join as JoinWord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.planning.plan import End, Path

TIMESTAMP = Primitive("TIMESTAMP")
INEXACT = frozenset((Primitive("FLOAT"), Primitive("DOUBLE")))
THROUGH_A_TOPIC = "write the groups to a topic (mode: update), and read that in another pipeline"


def checked_plan(pipeline: Pipeline, problems: Problems) -> Plan:
    """The plan of a pipeline, with its flows if nothing is refused."""
    plan = make_plan(pipeline, problems)
    check_names(plan, problems)
    apply_rules(plan, problems)
    return plan if problems.errors else with_flows(plan)


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
            place = table.place_in_sql(made.why.span[0])
            message = f"{table.described} has {made.why.clause.rstrip(',')}, which a stream does not have row by row"
            example = f"write {made.why.advice.removeprefix('write ')}"
            yield Refusal(Code.NOT_ROW_BY_ROW, table, place, message, example)
        elif isinstance(made, Join) and plan.is_stream(made.table):
            message = f"{table.described} joins the table '{made.table}', which is a stream"
            example = f"write join: {{stream: {made.table}, on: [{', '.join(made.on)}], within: 1 hour}}"
            yield Refusal(Code.NOT_ROW_BY_ROW, table, table.place("join", "table"), message, example)
        elif isinstance(made, StreamJoin):
            for side, keys in ((made.input, ("from",)), (made.stream, ("join", "stream"))):
                if not plan.is_stream(side):
                    message = f"{table.described} joins streams, and '{side}' is not a stream"
                    example = f"write join: {{table: {side}, on: [{', '.join(made.on)}]}}"
                    yield Refusal(Code.NOT_ROW_BY_ROW, table, table.place(*keys), message, example)


def static_sides(plan: Plan) -> Iterator[Refusal]:
    """A static table is read in each batch: none of its rows may be a result on its own."""
    for table in plan.tables.values():
        made = table.made_by
        kept = made.shape.kept_tables[:1] if isinstance(made, RowSql) else ()
        if isinstance(made, Join) and plan.is_stream(made.table) and not plan.is_stream(made.input):
            kept = (made.input,)
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


def joins(plan: Plan) -> Iterator[Refusal]:
    """Joins of streams have equal keys, two watermarks, and event times that are bounded by each other."""
    for table in plan.tables.values():
        made = table.made_by
        if isinstance(made, StreamJoin):
            yield from _declared_join(plan, table, made)
        elif isinstance(made, PairSql):
            yield from _join_in_sql(plan, table, made)


def _declared_join(plan: Plan, table: Table, made: StreamJoin) -> Iterator[Refusal]:
    if made.within is None:
        if made.how is not StreamJoinKind.INNER:
            message = f"the {made.how} join of {table.described} keeps rows without a match, and waits for one forever"
            yield Refusal(
                Code.JOIN_WITHOUT_BOUND, table, table.place("join", "within"), message, "write within: 1 hour"
            )
        return
    sides = {made.input: table.place("from"), made.stream: table.place("join", "stream")}
    yield from _watermarks(plan, table, sides)
    times = [(plan.path(name).event_time or "").lower() for name in (made.input, made.stream)]
    yield from _half_times(table, [(key, key) for key in made.on], times, table.place("join", "on"))


def _join_in_sql(plan: Plan, table: Table, made: PairSql) -> Iterator[Refusal]:
    shape = made.shape
    left, right = shape.left, shape.right
    place = table.place_in_sql(right.span[0])
    names = f"the join of '{left.alias}' and '{right.alias}'"
    if shape.how in {JoinWord.SEMI, JoinWord.ANTI}:
        message = f"{table.described} has a LEFT {shape.how.upper()} JOIN of two streams"
        example = "write a LEFT JOIN, and behind it a filter: where other.id is null"
        if shape.how is JoinWord.SEMI:
            example = "write an inner join, and `deduplicate` behind it"
        yield Refusal(Code.NOT_ROW_BY_ROW, table, place, message, example)
        return
    if not shape.keys:
        message = f"{names} has no equality of their columns"
        example = f"add one, such as {left.alias}.id = {right.alias}.id"
        yield Refusal(Code.JOIN_WITHOUT_KEY, table, place, message, example)
    sides = {each.table: table.place_in_sql(each.span[0]) for each in (left, right)}
    missing = list(_watermarks(plan, table, sides))
    yield from missing
    if missing:
        return
    times = [plan.path(each.table).event_time or "" for each in (left, right)]
    written = [f"{side.alias}.{time}" for side, time in zip((left, right), times, strict=True)]
    if shape.low is None or shape.high is None:
        message = f"{names} does not bound the event times '{written[0]}' and '{written[1]}' by each other"
        example = f"add {written[1]} between {written[0]} - interval 1 hour and {written[0]} + interval 1 hour"
        yield Refusal(Code.JOIN_WITHOUT_BOUND, table, place, message, example)
    if shape.how is not JoinWord.INNER and shape.residual:
        text = " and ".join(made.query.text(each) for each in shape.residual)
        message = (
            f"the {shape.how.upper()} join of streams has a further condition, {text}: only inner joins filter pairs"
        )
        example = "write the condition into a step before the join, or behind it"
        yield Refusal(Code.OUTER_JOIN_WITH_CONDITION, table, place, message, example)
    yield from _half_times(table, shape.keys, [each.lower() for each in times], place)


def _watermarks(plan: Plan, table: Table, sides: dict[str, Place]) -> Iterator[Refusal]:
    for name, place in sides.items():
        path = plan.path(name)
        if not path.is_stream or path.event_time is not None:
            continue
        if path.lost_by is not None:
            message = f"{table.described} joins by event time, and '{_shown(plan, name)}' has none: {_lost(plan, path)}"
            yield Refusal(Code.NO_EVENT_TIME, table, place, message, _kept_by(plan, path))
        else:
            needed = f"the join of {table.described} needs a watermark on '{_shown(plan, name)}'"
            message = f"{needed}, whose rows would be kept for ever"
            example = _watermark_example(plan, name, _time_column(plan, name))
            yield Refusal(Code.JOIN_WITHOUT_WATERMARK, table, place, message, example)


def _half_times(table: Table, keys: Iterable[tuple[str, str]], times: list[str], place: Place) -> Iterator[Refusal]:
    """A key that is the event time of one side alone would remove rows of both."""
    for left, right in keys:
        if (left.lower() == times[0]) != (right.lower() == times[1]):
            reason = "which is event time of one side only: the watermark would remove rows of the other"
            message = f"{table.described} joins by '{left}', {reason}"
            example = f"join by a copy that is no event time: select {left} + interval 0 seconds as {left}_value"
            yield Refusal(Code.JOIN_WITHOUT_BOUND, table, place, message, example)


def event_times(plan: Plan) -> Iterator[Refusal]:
    """What works by event time is behind one watermark, whose column it reads."""
    for table in plan.tables.values():
        paths = [plan.path(each) for each in table.inputs]
        streams = [each for each in paths if each.is_stream]
        if not streams:
            continue
        step, path = table.owner, streams[0]
        if isinstance(step, Step) and step.watermark is not None and not table.is_hidden and path.watermark is not None:
            first = plan.table(path.watermark).owner.name
            message = f"{table.described} has a second watermark; its rows have that of '{first}'"
            hint = "remove one of them: a path has one event time"
            yield Refusal(Code.SECOND_WATERMARK, table, table.place("watermark"), message, hint)
        if not any(needs_of(each).event_time for each in of_table(plan, table)):
            continue
        column, place = _window_column(table)
        if path.event_time is None:
            because = _lost(plan, path) if path.lost_by is not None else "no source before it has a watermark"
            example = (
                _kept_by(plan, path)
                if path.lost_by is not None
                else _watermark_example(plan, table.name, column or _time_column(plan, table.inputs[0]))
            )
            message = f"{table.described} needs event time, and {because}"
            yield Refusal(Code.NO_EVENT_TIME, table, place, message, example)
        elif column is not None and column.lower() != path.event_time.lower():
            message = f"the window of {table.described} is over '{column}', and the event time is '{path.event_time}'"
            example = f"use {path.event_time}, or name {column} in the watermark"
            yield Refusal(Code.NO_EVENT_TIME, table, place, message, example)


def _window_column(table: Table) -> tuple[str | None, Place]:
    """The column of a window, and where it is written; of other operations their own place."""
    made = table.made_by
    if isinstance(made, Aggregation) and made.window is not None:
        return made.window.column, table.place("window", "column")
    if isinstance(made, GroupSql) and made.shape.window is not None:
        window = made.shape.window
        return window.time or "an expression", table.place_in_sql(window.span[0])
    return None, table.place("deduplicate" if isinstance(made, Deduplication) else "state")


def _lost(plan: Plan, path: Path) -> str:
    """Why there is no event time: what lost it."""
    table = plan.table(path.lost_by or "")
    name, made = table.owner.name, table.made_by
    match made:
        case KeyedState():
            return f"the rows of keyed state '{name}' have none"
        case StreamJoin() if made.within is None:
            return f"the pairs of '{name}' match at any time"
        case StreamJoin() | PairSql():
            return f"the pairs of the join '{name}' have none"
        case PythonFunction():
            return f"step '{name}' does not declare it"
        case GroupSql() if made.shape.window is not None:
            return f"step '{name}' does not select the end of its window"
        case Aggregation() | GroupSql():
            return f"the groups of '{name}' have none"
        case UnionSql():
            return f"the sides of '{name}' do not have it in one column"
        case _:
            return f"step '{name}' does not select it as it is"


def _kept_by(plan: Plan, path: Path) -> str:
    """What to write so that the event time is not lost."""
    made = plan.table(path.lost_by or "").made_by
    match made:
        case GroupSql() if made.shape.window is not None:
            return "select window.end, the event time of a window"
        case Aggregation() | GroupSql():
            return "group by a window of the event time"
        case PythonFunction():
            return "add its column to the schema of the step"
        case UnionSql():
            return "select the event times of all sides at one position"
        case RowSql():
            return "select its column, renamed or not"
        case _:
            return "write the rows to a topic, and read that in another pipeline"


def _watermark_example(plan: Plan, name: str, column: str) -> str:
    sources = [each.name for each in plan.streams if each.name in plan.upstream(name)]
    return f"add watermark: {{column: {column}, delay: 10 minutes}} to source '{sources[0]}'"


def _time_column(plan: Plan, name: str, *key: str) -> str:
    """A column of a table that may be its event time; behind a key, one that may be the order of its rows."""
    path, columns = plan.path(name), plan.table(name).columns
    types = {} if columns is None else columns.without((*RECORD_COLUMN_NAMES, *key)).types
    times = [each for each, kind in types.items() if kind == TIMESTAMP]
    return path.event_time or next(iter(times or (types if key else ())), "at")


def groups(plan: Plan) -> Iterator[Refusal]:
    """Groups are read while they change only where they are the only state before a keyed end or `mode: update`."""
    for table in plan.tables.values():
        needs_final = any(needs_of(each).rows_or_final for each in of_table(plan, table))
        open_groups = [path.never_final for path in map(plan.path, table.inputs) if path.never_final]
        if needs_final and open_groups:
            name = _shown(plan, open_groups[0])
            message = f"{table.described} keeps state over the groups of '{name}', which never become final"
            example = f"group '{name}' by a window of its event time, or {THROUGH_A_TOPIC}"
            yield Refusal(Code.STATE_OVER_OPEN_GROUPS, table, table.place(), message, example)
        made = table.made_by
        is_alone = isinstance(made, Aggregation) and made.window is not None and made.window.gap and not made.by
        is_alone = is_alone or (
            isinstance(made, GroupSql) and table.path.sessions == table.name and len(made.shape.keys) == 1
        )
        if is_alone:
            message = f"the sessions of {table.described} need columns beside the session"
            yield Refusal(Code.FINAL_ONLY, table, table.place(), message, "add by: [user], whose sessions they are")
    for end in plan.ends:
        path = plan.path(end.input)
        if path.is_stream and end.mode is EndMode.UPDATE and path.grouped_by is not None and not path.can_change:
            yield _final_only(plan, end, path)
        elif path.never_final and any(needs_of(each).rows_or_final for each in of_end(plan, end)):
            yield _never_final(plan, end, path)


def _final_only(plan: Plan, end: End, path: Path) -> Refusal:
    what = "sessions" if path.sessions else "groups"
    name = _shown(plan, path.sessions or path.grouped_by or "")
    because = "" if path.sessions else ", because they are not the only state"
    message = f"{end.described} has mode: update, and the {what} of '{name}' are final when they are written{because}"
    return Refusal(Code.FINAL_ONLY, end, place_of(end, "mode"), message, "remove mode: update")


def _never_final(plan: Plan, end: End, path: Path) -> Refusal:
    grouping = plan.table(path.never_final or "")
    time = _time_column(plan, grouping.inputs[0])
    is_sql = isinstance(grouping.made_by, GroupSql)
    example = f"group by window({time}, '1 hour')" if is_sql else f"add window: {{column: {time}, size: 1 hour}}"
    writes = "writes final rows"
    if end.mode is EndMode.KEYED and path.groups is None:
        writes = "takes final rows behind UNION ALL and Python"
        example += f", or {THROUGH_A_TOPIC}"
    elif end.mode is EndMode.KEYED:
        writes = "takes final rows behind other state"
        example += f", or write '{_shown(plan, grouping.inputs[0])}' to a topic, and group that in another pipeline"
    elif end.mode is EndMode.CHANGES:
        example += ", or use key: in place of changes:"
    elif path.can_change:
        example += ", or add key:, the columns of the groups" if _is_table(end) else ", or use mode: update"
    message = f"the groups of '{grouping.owner.name}' never become final for {end.described}, which {writes}"
    return Refusal(Code.NEVER_FINAL, end, place_of(end, "mode"), message, example)


def _is_table(end: End) -> bool:
    return isinstance(end.target, TableTarget | LakehouseTarget)


def keys(plan: Plan) -> Iterator[Refusal]:
    """The key of groups is their columns as they are; the columns of a key are exact."""
    for end in plan.ends:
        needs = [needs_of(each) for each in of_end(plan, end)]
        if any(each.group_key for each in needs):
            yield from _group_key(plan, end)
        columns = plan.table(end.input).columns
        for name in end.key if any(each.exact_key for each in needs) else ():
            kind = None if columns is None else columns.type_of(name)
            if kind is not None and not _is_exact(kind):
                message = f"the key column '{name}' of {end.described} is {kind.ddl}, which is not exact"
                example = f"cast it in a step before: cast({name} as decimal(18, 6)), or use another key"
                yield Refusal(Code.INEXACT_KEY, end, place_of(end, "key", name), message, example)


def _group_key(plan: Plan, end: End) -> Iterator[Refusal]:
    path = plan.path(end.input)
    groups, key = path.groups or (), {each.lower() for each in end.key}
    known = {name.lower() for columns in groups for name in columns}
    is_whole = all(any(name.lower() in key for name in columns) for columns in groups)
    if is_whole and key <= known:
        return
    name = _shown(plan, path.grouped_by or "")
    place = place_of(end, "key")
    if not groups:
        message = f"{end.described} has a key, and '{name}' has one group of all rows"
        yield Refusal(Code.KEY_IS_NOT_THE_GROUP, end, place, message, "add by:, the columns of the key")
    elif all(groups):
        wanted = ", ".join(columns[0] for columns in groups)
        message = f"the key of {end.described} must be the columns by which '{name}' groups"
        yield Refusal(Code.KEY_IS_NOT_THE_GROUP, end, place, message, f"write key: [{wanted}]")
    else:
        made = plan.table(path.grouped_by or "").made_by
        by = made.by if isinstance(made, Aggregation) else ()
        texts = [each.text for each in made.shape.keys] if isinstance(made, GroupSql) else list(by)
        missing = texts[len(texts) - len(groups) :][groups.index(())]
        groups_by = f"the columns by which '{name}' groups, and '{missing}' is not selected as it is"
        message = f"the key of {end.described} must be {groups_by}"
        yield Refusal(Code.KEY_IS_NOT_THE_GROUP, end, place, message, f"select {missing}, and add it to the key")


def _is_exact(kind: ColumnType) -> bool:
    if isinstance(kind, Struct):
        return all(_is_exact(each.type) for each in kind.fields)
    return not isinstance(kind, Array | Map) and kind not in INEXACT


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
            names = None if columns is None else {each.lower() for each in columns.names}
            if names is not None and names <= {each.lower() for each in made.key}:
                continue
            message = f"{table.described} keeps the first row of a key, and {_no_order(plan, made.input)}"
            listed = f"[{', '.join(columns.names)}]" if columns is not None else "all columns"
            example = f"write key: {listed}, or use a table or view with key and order_by"
            yield Refusal(Code.NO_ORDER, table, table.place("deduplicate", "key"), message, example)
        elif made.order is not StateOrder.ANY:
            takes = f"the processor of {table.described} takes rows as they arrive"
            message = f"{takes}, and {_no_order(plan, made.input)}"
            example = "write order: any, if its result does not depend on the order"
            yield Refusal(Code.NO_ORDER, table, table.place("state"), message, example)
    for end in plan.ends:
        path = plan.path(end.input)
        if path.is_ordered or end.order_by or not any(needs_of(each).order for each in of_end(plan, end)):
            continue
        keeps = f"{end.described} keeps the row of each {', '.join(end.key)} that arrived last"
        message = f"{keeps}, and {_no_order(plan, end.input)}"
        column = _time_column(plan, end.input, *end.key)
        example = f"add order_by: [{column}], columns that say which row is newer"
        yield Refusal(Code.NO_ORDER, end, place_of(end, "key"), message, example)


def _no_order(plan: Plan, name: str) -> str:
    """Which table lost the order of arrival."""
    upstream = [plan.table(each) for each in plan.upstream(name)]
    lost = next((each for each in upstream if each.path.is_stream and not each.path.is_ordered), None)
    if lost is None:
        return f"the groups of '{_shown(plan, name)}' have none"
    return f"the rows of {lost.described} have no order of arrival"


def _shown(plan: Plan, name: str) -> str:
    """The name of the declaration that a table is part of."""
    return plan.table(name).owner.name


RULES = (shapes, static_sides, joins, event_times, groups, keys, orders, determinism, uncaught, realtime, targets)
