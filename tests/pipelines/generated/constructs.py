"""The one list of constructs: what each table and each end is, and what that needs of the rows before it.

The generator draws what has what it needs, and all that it draws is accepted by the rules.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import Source, TableTarget, TopicTarget
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import StateClock, StreamJoinKind
from odradek.pipelines.planning.plan import End, EndMode, GroupSql, PairSql, Plan, RowSql, StaticSql, Table, UnionSql
from odradek.pipelines.sql.query import Join as JoinWord

if TYPE_CHECKING:
    from odradek.pipelines.planning.plan import Path
    from odradek.pipelines.sql.shapes import Groups


class Construct(StrEnum):
    """What a definition can have over streams."""

    SELECT = "select"
    WHERE = "where"
    GENERATOR = "generator"
    HIDDEN = "hidden step"
    UNION_ALL = "union all"
    TABLE_JOIN = "table join"
    LOOK_UP = "look-up by subquery"
    STATIC_SQL = "static SQL"
    PYTHON_ROWS = "python rows"
    GROUP = "group"
    GROUP_SQL = "group in SQL"
    COUNT_DISTINCT = "count distinct"
    HAVING = "having"
    WINDOW = "window"
    SLIDING_WINDOW = "sliding window"
    SESSION = "session"
    WINDOW_BEHIND_WINDOW = "window behind window"
    STREAM_JOIN = "stream join"
    STREAM_JOIN_SQL = "stream join in SQL"
    OUTER_STREAM_JOIN = "outer stream join"
    FOREVER = "join forever"
    DEDUPLICATE = "deduplicate"
    DEDUPLICATE_WITHIN = "deduplicate within"
    STATE = "keyed state"
    STATE_EVENT = "keyed state in event time"
    CHECK = "check"
    APPEND = "end append"
    TOMBSTONES = "end tombstones"
    UPDATE = "end update"
    KEYED_BY_ARRIVAL = "end keyed by arrival"
    KEYED_BY_ORDER = "end keyed by order_by"
    KEYED_CURRENT = "end keyed by current groups"
    KEYED_FINAL = "end keyed by final groups"
    CHANGES = "end changes"
    HISTORY = "end history"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a construct needs of its input."""

    event_time: bool = False
    watermark_each: bool = False  # of both sides of a join
    order: bool = False  # of arrival, or what stands in its place
    rows_or_final: bool = False  # no groups that never become final
    exact_key: bool = False
    group_key: bool = False  # the key is the columns of the groups


WINDOW = Needs(event_time=True, rows_or_final=True)
JOIN = Needs(watermark_each=True, rows_or_final=True)
NEEDS: dict[Construct, Needs] = {
    Construct.GROUP: Needs(rows_or_final=True),
    Construct.GROUP_SQL: Needs(rows_or_final=True),
    Construct.WINDOW: WINDOW,
    Construct.SLIDING_WINDOW: WINDOW,
    Construct.SESSION: WINDOW,
    Construct.WINDOW_BEHIND_WINDOW: WINDOW,
    Construct.STREAM_JOIN: JOIN,
    Construct.STREAM_JOIN_SQL: JOIN,
    Construct.OUTER_STREAM_JOIN: JOIN,
    Construct.FOREVER: Needs(rows_or_final=True),
    Construct.DEDUPLICATE: Needs(order=True, rows_or_final=True),
    Construct.DEDUPLICATE_WITHIN: Needs(event_time=True, order=True, rows_or_final=True),
    Construct.STATE: Needs(order=True, rows_or_final=True),
    Construct.STATE_EVENT: Needs(event_time=True, order=True, rows_or_final=True),
    Construct.APPEND: Needs(rows_or_final=True),
    Construct.TOMBSTONES: Needs(rows_or_final=True),
    Construct.KEYED_BY_ARRIVAL: Needs(order=True, exact_key=True, rows_or_final=True),
    Construct.KEYED_BY_ORDER: Needs(exact_key=True, rows_or_final=True),
    Construct.KEYED_CURRENT: Needs(order=True, exact_key=True, group_key=True),
    Construct.KEYED_FINAL: Needs(order=True, exact_key=True, group_key=True, rows_or_final=True),
    Construct.CHANGES: Needs(exact_key=True, rows_or_final=True),
    Construct.HISTORY: Needs(exact_key=True, rows_or_final=True),
}
NOTHING = Needs()
OTHERS = {
    UnionSql: Construct.UNION_ALL,
    PythonFunction: Construct.PYTHON_ROWS,
}


def needs_of(construct: Construct) -> Needs:
    return NEEDS.get(construct, NOTHING)


def constructs_of(plan: Plan) -> Counter[Construct]:
    """How often a plan has each construct."""
    found = Counter(each for table in plan.tables.values() for each in of_table(plan, table))
    return found + Counter(each for end in plan.ends for each in of_end(plan, end))


def of_table(plan: Plan, table: Table) -> list[Construct]:
    """What a table is. Static tables need nothing."""
    made = table.made_by
    if not table.path.is_stream or isinstance(made, Source):
        return [Construct.STATIC_SQL] if isinstance(made, StaticSql) else []
    found = {Construct.HIDDEN: table.is_hidden, Construct.CHECK: any(not each.is_implicit for each in table.checks)}
    match made:
        case RowSql(query=query):
            found |= {
                Construct.SELECT: True,
                Construct.WHERE: query.where is not None,
                Construct.LOOK_UP: bool(query.subqueries),
                Construct.TABLE_JOIN: len(query.tables) > 1 and made.pairs is None,
                Construct.GENERATOR: made.makes_several,
            }
        case GroupSql(shape=shape):
            is_distinct = any(each.name == "count" and each.is_distinct for each in shape.aggregates)
            found |= {Construct.GROUP_SQL: True, Construct.HAVING: bool(shape.having)}
            found |= {Construct.COUNT_DISTINCT: is_distinct}
            if shape.window is not None:
                is_session = shape.window.function == "session_window"
                found |= _of_window(plan.path(shape.stream), is_session, _is_sliding(shape))
        case Aggregation(window=window):
            found |= {Construct.GROUP: True}
            if window is not None:
                is_sliding = window.slide not in {None, window.size}
                found |= _of_window(plan.path(made.input), window.gap is not None, is_sliding)
        case PairSql(shape=pairs):
            found |= {Construct.STREAM_JOIN_SQL: True, Construct.OUTER_STREAM_JOIN: pairs.how is not JoinWord.INNER}
        case StreamJoin():
            found |= {Construct.FOREVER if made.within is None else Construct.STREAM_JOIN: True}
            found |= {Construct.OUTER_STREAM_JOIN: made.how is not StreamJoinKind.INNER}
        case Deduplication():
            found |= {Construct.DEDUPLICATE if made.within is None else Construct.DEDUPLICATE_WITHIN: True}
        case KeyedState():
            found |= {Construct.STATE_EVENT if made.clock is StateClock.EVENT else Construct.STATE: True}
        case UnionSql() | PythonFunction():
            found |= {OTHERS[type(made)]: True}
    return [each for each, is_there in found.items() if is_there]


def _is_sliding(shape: Groups) -> bool:
    return any(each.is_window and each.text.count(",") > 1 for each in shape.keys)


def _of_window(before: Path, is_session: bool, is_sliding: bool) -> dict[Construct, bool]:
    kind = Construct.SESSION if is_session else Construct.SLIDING_WINDOW if is_sliding else Construct.WINDOW
    return {kind: True, Construct.WINDOW_BEHIND_WINDOW: before.groups is not None}


def of_end(plan: Plan, end: End) -> list[Construct]:
    """What an end is. A keyed end of groups is keyed by them."""
    path, target = plan.path(end.input), end.target
    if not path.is_stream:
        return []
    if end.mode is EndMode.UPDATE:
        return [Construct.UPDATE]
    if end.mode is EndMode.CHANGES:
        changes = target.changes if isinstance(target, TableTarget) else None
        return [Construct.HISTORY if changes is not None and changes.keeps_history else Construct.CHANGES]
    if end.mode is EndMode.KEYED and path.groups is not None:
        return [Construct.KEYED_CURRENT if path.can_change else Construct.KEYED_FINAL]
    if end.mode is EndMode.KEYED:
        return [Construct.KEYED_BY_ORDER if end.order_by else Construct.KEYED_BY_ARRIVAL]
    is_deleting = isinstance(target, TopicTarget) and target.deletes is not None
    return [Construct.TOMBSTONES if is_deleting else Construct.APPEND]
