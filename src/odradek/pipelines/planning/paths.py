"""What a table gives to those behind it: its event time, its order, its groups and its state, of each kind of table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Source, TopicOrigin
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    KeyedState,
    PythonFunction,
    StreamJoin,
)
from odradek.pipelines.definition.vocabulary import StreamJoinKind
from odradek.pipelines.planning.columns import RECORD_COLUMN_NAMES, TIMESTAMP
from odradek.pipelines.planning.plan import LEFT, RIGHT, GroupSql, PairSql, Path, Plan, RowSql, Table, UnionSql
from odradek.pipelines.sql.query import Item, Query
from odradek.pipelines.sql.query import Join as JoinWord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.pipelines.definition.model import Watermark

STATIC = Path()


def path_of(table: Table, inputs: Sequence[Table], watermark: Watermark | None = None) -> Path:
    """The path of a table whose inputs have theirs; `watermark` is the one that its declaration gives it."""
    made = table.made_by
    if isinstance(made, Source):
        path = Path(is_stream=made.is_stream, is_ordered=is_one_topic(made))
    else:
        path = _behind(table, [each for each in inputs if each.path.is_stream])
    if watermark is None or not path.is_stream:
        return path
    return replace(path, watermark=table.name, event_time=watermark.column, lost_by=None)


def is_one_topic(source: Source) -> bool:
    """Whether the records of a key arrive in one order: those of a key are in one partition of one topic."""
    return source.is_stream and isinstance(source.origin, TopicOrigin) and len(source.origin.topics) == 1


def _behind(table: Table, streams: Sequence[Table]) -> Path:
    if not streams:
        return STATIC
    made, first = table.made_by, streams[0].path
    match made:
        case RowSql():
            return _of_rows(table.name, made, first)
        case UnionSql():
            return _of_union(table, streams)
        case GroupSql():
            return _of_groups(table, made, first)
        case Aggregation():
            return _of_aggregation(table.name, made, first)
        case Deduplication():
            return replace(_with_state(table.name, first, is_other=first.groups is not None), is_ordered=False)
        case StreamJoin() if len(streams) == 2 or made.input == made.stream:
            return _of_stream_join(table, made, streams[0].path, streams[-1].path)
        case PairSql():
            return _of_pairs(table, made, streams[0].path, streams[-1].path)
        case KeyedState():
            path = _with_state(table.name, first, is_other=True)
            return _without_time(replace(path, is_ordered=False, groups=None), table.name)
        case PythonFunction():
            return _of_python(table, made, streams)
        case _:
            return Path(is_stream=True)


def _with_state(name: str, path: Path, *, is_other: bool) -> Path:
    """The path behind an operator with state, which reads final rows unless it is the first one."""
    is_other = is_other or path.keeps_other_state
    return replace(path, state=(*path.state, name), keeps_other_state=is_other, can_change=False)


def _without_time(path: Path, lost_by: str) -> Path:
    return path if path.event_time is None else replace(path, event_time=None, lost_by=lost_by)


def _of_rows(name: str, made: RowSql, path: Path) -> Path:
    """A SELECT renames the columns that it selects as they are. A generator makes several rows of a group. Rows
    lose their order of arrival by subqueries, which Spark computes as joins, and by hints, which may divide them."""
    query = made.query
    is_mixed = bool(query.subqueries or query.tree.args.get("hint")) if path.groups is None else made.makes_several
    is_ordered = path.is_ordered and not made.shape.tables and not is_mixed
    groups = path.groups
    if groups is not None:
        groups = tuple(tuple(out for each in columns for out in outputs_of(made, each)) for columns in groups)
    times = () if path.event_time is None else outputs_of(made, path.event_time)
    path = replace(path, is_ordered=is_ordered, groups=groups)
    return replace(path, event_time=times[0], lost_by=None) if times else _without_time(path, name)


def outputs_of(made: RowSql, column: str) -> tuple[str, ...]:
    """The names under which a SELECT has a column of its stream as it is."""
    query = made.query
    if made.pairs is not None:
        side, column = (made.pairs.left if column.startswith(LEFT) else made.pairs.right), column[2:]
    else:
        stream = made.shape.streams[0].lower() if made.shape.streams else ""
        side = next(each for each in query.tables if each.table.lower() == stream)
    found = []
    for item in query.items:
        if item.star_of is not None:
            is_selected = item.star_of.lower() in {"", side.alias.lower()}
            is_excepted = column.lower() in {each.lower() for each in item.excepted}
            found += [column] if is_selected and not is_excepted else []
        elif _is_column(query, item, side.alias, column):
            found += [item.name]
    return tuple(found)


def _is_column(query: Query, item: Item, alias: str, column: str) -> bool:
    """Whether an expression is a column of a table and nothing else."""
    named = next((each for each in query.references(item.span) if each.span == item.span), None)
    if named is None or len(named.parts) != 1 or not item.name:
        return False
    if named.item is not None:
        return _is_column(query, named.item, alias, column)
    return (named.table or "").lower() == alias.lower() and named.parts[0].lower() == column.lower()


def _of_union(table: Table, streams: Sequence[Table]) -> Path:
    """Rows of all sides in any order. Their event time is where all sides have it at one position."""
    path = _together(streams)
    positions = {_position(each, each.path.event_time) for each in streams}
    name = streams[0].path.event_time
    if len(positions) == 1 and name is not None and None not in positions:
        return replace(path, event_time=name)
    return _without_time(path, table.name)


def _position(table: Table, name: str | None) -> int | str | None:
    """The position of a column; its name, if the columns of the table are not known."""
    if name is None or table.columns is None:
        return None if name is None else name.lower()
    names = [each.lower() for each in table.columns.names]
    return names.index(name.lower()) if name.lower() in names else None


def _together(streams: Sequence[Table]) -> Path:
    """What several streams have in common: rows of groups are final."""
    paths = [each.path for each in streams]
    return Path(
        is_stream=True,
        watermark=next((each.watermark for each in paths if each.watermark), None),
        event_time=next((each.event_time for each in paths if each.event_time), None),
        lost_by=next((each.lost_by for each in paths if each.lost_by), None),
        never_final=next((each.never_final for each in paths if each.never_final), None),
        grouped_by=next((each.grouped_by for each in paths if each.grouped_by), None),
        state=tuple(dict.fromkeys(name for each in paths for name in each.state)),
        keeps_other_state=any(each.keeps_other_state or each.groups is not None for each in paths),
        sessions=next((each.sessions for each in paths if each.sessions), None),
    )


def _of_groups(table: Table, made: GroupSql, path: Path) -> Path:
    window, name = made.shape.window, table.name
    timed = [
        each
        for each in made.shape.keys
        if _is_time(path, window.time if each.is_window and window is not None else each.column)
    ]
    times = [output for each in timed for output in (each.ends if each.is_window else each.outputs)]
    keys = tuple(each.outputs for each in made.shape.keys)
    has_sessions = window is not None and window.function == "session_window"
    return grouped(name, path, keys, next(iter(times), None), is_final=bool(timed), has_sessions=has_sessions)


def _of_aggregation(name: str, made: Aggregation, path: Path) -> Path:
    window = made.window
    keys = [("window_start", "window_end"), *((each,) for each in made.by)] if window else [(each,) for each in made.by]
    is_timed = window is not None and _is_time(path, window.column)
    time = "window_end" if is_timed else next((each for each in made.by if _is_time(path, each)), None)
    return grouped(name, path, tuple(keys), time, is_final=time is not None, has_sessions=bool(window and window.gap))


def _is_time(path: Path, column: str | None) -> bool:
    return path.event_time is not None and column is not None and column.lower() == path.event_time.lower()


def grouped(
    name: str, path: Path, keys: tuple[tuple[str, ...], ...], time: str | None, *, is_final: bool, has_sessions: bool
) -> Path:
    """The path behind groups with these key columns. They can be read before they are final if they are the only state,
    and no sessions, which Spark writes once."""
    can_change = not has_sessions and not path.keeps_other_state and path.groups is None
    path = replace(
        _with_state(name, path, is_other=True),
        event_time=path.event_time if time is None else time,
        is_ordered=True,
        groups=keys,
        grouped_by=name,
        never_final=path.never_final if is_final else name,
        can_change=can_change,
        sessions=name if has_sessions else path.sessions,
    )
    return _without_time(path, name) if time is None else path


def _of_stream_join(table: Table, made: StreamJoin, left: Path, right: Path) -> Path:
    """Event time is that of the side that is kept; rows that match at any time have none."""
    kept = right if made.how is StreamJoinKind.RIGHT else left
    is_lost = made.how is StreamJoinKind.FULL or made.within is None or kept.event_time in RECORD_COLUMN_NAMES
    return _of_sides(table.name, left, right, None if is_lost else kept.event_time)


def _of_pairs(table: Table, made: PairSql, left: Path, right: Path) -> Path:
    is_right = made.shape.how is JoinWord.RIGHT
    kept, prefix = (right, RIGHT) if is_right else (left, LEFT)
    is_lost = made.shape.how is JoinWord.FULL or kept.event_time is None
    return _of_sides(table.name, left, right, None if is_lost else f"{prefix}{kept.event_time}")


def _of_sides(name: str, left: Path, right: Path, event_time: str | None) -> Path:
    state = tuple(dict.fromkeys((*left.state, *right.state, name)))
    path = Path(
        is_stream=True,
        watermark=left.watermark or right.watermark,
        event_time=event_time,
        never_final=left.never_final or right.never_final,
        state=state,
        keeps_other_state=True,
    )
    return path if event_time is not None else replace(path, lost_by=name if path.watermark else None)


def _of_python(table: Table, made: PythonFunction, streams: Sequence[Table]) -> Path:
    """A function keeps event time by the name of the column among those that it declares."""
    path = _together(streams)
    times = {(each.path.event_time or "").lower() for each in streams}
    declared = {each.name.lower() for each in made.columns or ()}
    return path if len(times) == 1 and times <= declared else _without_time(path, table.name)


def time_column(plan: Plan, name: str, *key: str) -> str:
    """A column of a table that may be its event time; behind a key, one that may be the order of its rows."""
    path, columns = plan.path(name), plan.table(name).columns
    types = {} if columns is None else columns.without((*RECORD_COLUMN_NAMES, *key)).types
    times = [each for each, kind in types.items() if kind == TIMESTAMP]
    of_record = "_timestamp" if columns is not None and "_timestamp" in columns and not key else "at"
    return path.event_time or next(iter(times or (types if key else ())), of_record)
