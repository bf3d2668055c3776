"""The rules of event time: joins of streams are bounded by it, and what works by it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import Step
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
    Window,
)
from odradek.pipelines.definition.vocabulary import StateClock, StreamJoinKind
from odradek.pipelines.planning.paths import time_column
from odradek.pipelines.planning.plan import GroupSql, PairSql, Plan, UnionSql
from odradek.pipelines.planning.verdicts import Code, Refusal
from odradek.pipelines.sql.query import Join as JoinWord
from odradek.pipelines.sql.query import WindowCall
from odradek.pipelines.sql.shapes import Groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import Path, Table


def joins(plan: Plan) -> Iterator[Refusal]:
    """Joins of streams have equal keys, two watermarks, and event times that are bounded by each other."""
    for table in plan.tables.values():
        made = table.made_by
        match made:
            case StreamJoin():
                sides = (
                    Side(made.input, made.input, table.place("from")),
                    Side(made.stream, made.stream, table.place("join", "stream")),
                )
                is_forever = made.within is None and made.how is StreamJoinKind.INNER
                if not is_forever:
                    yield from _join(plan, table, sides, [(key, key) for key in made.on], made.within is not None)
            case PairSql(shape=shape):
                left, right = (
                    Side(each.table, each.alias, table.place_in_sql(each.span[0])) for each in (shape.left, shape.right)
                )
                is_bounded = shape.low is not None and shape.high is not None
                yield from _join_in_sql(table, made, right) or _join(plan, table, (left, right), shape.keys, is_bounded)


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a join: its table, its name in the join, and its place."""

    table: str
    alias: str
    place: Place


def _join_in_sql(table: Table, made: PairSql, right: Side) -> list[Refusal]:
    """What only SQL can say wrong."""
    how, residual = made.shape.how, made.shape.residual
    if how in {JoinWord.SEMI, JoinWord.ANTI}:
        message = f"{table.described} has a LEFT {how.upper()} JOIN of two streams"
        example = "write a LEFT JOIN, and behind it a filter: where other.id is null"
        if how is JoinWord.SEMI:
            example = "write an inner join, and `deduplicate` behind it"
        return [Refusal(Code.NOT_ROW_BY_ROW, table, right.place, message, example)]
    if how is not JoinWord.INNER and residual:
        text = " and ".join(made.query.text(each) for each in residual)
        join = f"the {how.upper()} join of streams"
        message = f"{join} has a further condition, {text}: only inner joins filter pairs"
        example = "write the condition into a step before the join, or behind it"
        return [Refusal(Code.OUTER_JOIN_WITH_CONDITION, table, right.place, message, example)]
    return []


def _join(
    plan: Plan, table: Table, sides: tuple[Side, Side], keys: Sequence[tuple[str, str]], is_bounded: bool
) -> Iterator[Refusal]:
    left, right = sides
    join = f"the join of '{left.alias}' and '{right.alias}'"
    if not keys:
        example = f"add one, such as {left.alias}.id = {right.alias}.id"
        yield Refusal(Code.JOIN_WITHOUT_KEY, table, right.place, f"{join} has no equality of their columns", example)
    paths = [plan.path(each.table) for each in sides]
    if not all(each.is_stream for each in paths):
        return  # which is refused
    for side, path in zip(sides, paths, strict=True):
        if path.lost_by is not None:
            because, example = _lost(plan, path)
            message = f"{join} is by event time, and '{plan.shown(side.table)}' has none: {because}"
            yield Refusal(Code.NO_EVENT_TIME, table, side.place, message, example)
        elif path.event_time is None:
            message = f"{join} needs a watermark on '{plan.shown(side.table)}', whose rows would be kept for ever"
            table_instead = "; to look up the latest row of a key, keep the stream in a table, and join that"
            example = _watermark_example(plan, side.table, time_column(plan, side.table)) + table_instead
            yield Refusal(Code.JOIN_WITHOUT_WATERMARK, table, side.place, message, example)
    times = [each.event_time for each in paths]
    if None in times:
        return
    if not is_bounded:
        first, second = (f"{side.alias}.{time}" for side, time in zip(sides, times, strict=True))
        message = f"{join} does not bound the event times '{first}' and '{second}' by each other"
        example = f"add {second} between {first} - interval 1 hour and {first} + interval 1 hour"
        if isinstance(table.made_by, StreamJoin):
            example = "write within: 1 hour; only an inner join may be forever"
        yield Refusal(Code.JOIN_WITHOUT_BOUND, table, right.place, message, example)
    for pair in keys:
        is_time = [key.lower() == (time or "").lower() for key, time in zip(pair, times, strict=True)]
        if is_time[0] != is_time[1]:
            reason = "which is event time of one side only: the watermark would remove rows of the other"
            message = f"{join} is by '{pair[0]}', {reason}"
            example = f"join by a copy that is no event time: select {pair[0]} + interval 0 seconds as {pair[0]}_value"
            yield Refusal(Code.JOIN_WITHOUT_BOUND, table, right.place, message, example)


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
        timed = _timed(table)
        if timed is None:
            continue
        column, place = timed
        if path.event_time is None:
            because = "no source before it has a watermark"
            example = _watermark_example(plan, table.name, column or time_column(plan, table.inputs[0]))
            if path.lost_by is not None:
                because, example = _lost(plan, path)
            message = f"{table.described} needs event time, and {because}"
            yield Refusal(Code.NO_EVENT_TIME, table, place, message, example)
        elif column is not None and column.lower() != path.event_time.lower():
            over = f"'{column}'" if column else "an expression"
            message = f"the window of {table.described} is over {over}, and the event time is '{path.event_time}'"
            example = f"use {path.event_time}" + (f", or name {column} in the watermark" if column else "")
            yield Refusal(Code.NO_EVENT_TIME, table, place, message, example)


def _timed(table: Table) -> tuple[str | None, Place] | None:
    """The column of a window (empty for an expression) and the place of what needs event time; None if nothing does."""
    match table.made_by:
        case Aggregation(window=Window() as window):
            return window.column, table.place("window", "column")
        case GroupSql(shape=Groups(window=WindowCall() as call)):
            return call.time or "", table.place_in_sql(call.span[0])
        case Deduplication(within=within) if within is not None:
            return None, table.place("deduplicate")
        case KeyedState(clock=StateClock.EVENT):
            return None, table.place("state")
        case _:
            return None


def _lost(plan: Plan, path: Path) -> tuple[str, str]:
    """Why there is no event time, and what to write so that it is not lost."""
    table = plan.table(path.lost_by or "")
    name = plan.shown(table.name)
    match table.made_by:
        case StreamJoin(within=within, how=how) if within is not None and how is not StreamJoinKind.FULL:
            name_it = "name it in its source: columns: {at: _timestamp}, and use that in the watermark"
            return f"the pairs of '{name}' have no column of a record", name_it
        case KeyedState() | StreamJoin() | PairSql():
            through = "write the rows to a topic, and read that in another pipeline"
            return f"the rows of '{name}' have none", through
        case PythonFunction():
            return f"step '{name}' does not declare it", "add its column to the schema of the step"
        case GroupSql(shape=Groups(window=WindowCall())):
            return f"step '{name}' does not select the end of its window", "select window.end"
        case Aggregation() | GroupSql():
            return f"the groups of '{name}' have none", "group by a window of the event time"
        case UnionSql():
            return f"the sides of '{name}' do not have it in one column", "select it at one position on all sides"
        case _:
            return f"step '{name}' does not select it as it is", "select its column, renamed or not"


def _watermark_example(plan: Plan, name: str, column: str) -> str:
    sources = [each.name for each in plan.streams if each.name in plan.upstream(name)]
    return f"add watermark: {{column: {column}, delay: 10 minutes}} to source '{sources[0]}'"
