"""Draws ends, and says what they must have of the rows of their table."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.pipelines.generated.constructs import Construct
from tests.pipelines.generated.expressions import COUNT, TYPES, Expression
from tests.pipelines.generated.oracle import Table
from tests.pipelines.generated.state_steps import Grouping, draw_aggregates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.pipelines.generated.drafts import Draft
    from tests.pipelines.generated.expressions import Values
    from tests.pipelines.generated.oracle import Oracle, Row

CANNOT_STORE = "cannot be stored"
CHANGE_DATA = (Construct.CHANGES, Construct.HISTORY)
INEXACT = ("DOUBLE", "ARRAY<STRING>", "ARRAY<BIGINT>")
NEGATIVE = Expression("n < 0", ("n",), lambda values: values["n"] is not None and values["n"] < 0)
FEW = Expression("events < 2", ("events",), lambda values: values["events"] < 2)


@dataclass(frozen=True, slots=True)
class End:
    """A sink or a view: where it writes, which rows it has, and by which columns."""

    name: str
    read: str
    construct: Construct
    kind: str  # topic | files | table
    columns: tuple[str, ...]  # of its rows
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    deletes: Expression | None = None
    has_filter: bool = False  # a group that was written may not be among the rows at the end
    of_groups: bool = False

    def rows(self, oracle: Oracle) -> list[Values]:
        """What the end must have. Rows that it cannot store become dead letters."""
        found = [row for row in oracle.found[self.read] if self._is_storable(oracle, row)]
        if self.construct is Construct.TOMBSTONES:
            return [self._as_tombstone(row.values) for row in found]
        if self.construct in CHANGE_DATA:
            return [self._shown(values) for values in self._changed([row.values for row in found])]
        if self.construct in {Construct.KEYED_BY_ARRIVAL, Construct.KEYED_BY_ORDER} or self.order_by:
            return [self._shown(row.values) for row in self._kept(found)]
        return [self._shown(row.values) for row in found]

    def _shown(self, values: Values) -> Values:
        shown = (*self.columns, *(name for name in ("valid_from", "valid_to", "is_current") if name in values))
        return {name: values[name] for name in shown}

    def _is_storable(self, oracle: Oracle, row: Row) -> bool:
        needed = (*self.key, *(self.order_by if self.construct in CHANGE_DATA else ()))
        is_storable = self.kind != "table" or all(row.values[name] is not None for name in needed)
        if not is_storable:
            oracle.outcome.letters[CANNOT_STORE, self.name, row.place] += 1
        return is_storable

    def _as_tombstone(self, values: Values) -> Values:
        assert self.deletes is not None
        return {"deleted": str(values[self.key[0]])} if self.deletes.value(values) else self._shown(values)

    def _kept(self, rows: Sequence[Row]) -> list[Row]:
        """The row of each key that arrived last, or is the greatest."""
        names = [*self.order_by, *(each for each in self.columns if each not in self.order_by)]

        def order(row: Row) -> tuple[Any, ...]:
            return (row.batch, row.order) if not self.order_by else tuple(rank(row.values[name]) for name in names)

        return list({tuple(row.values[name] for name in self.key): row for row in sorted(rows, key=order)}.values())

    def _changed(self, rows: list[Values]) -> list[Values]:
        """Change data: the changes of a key in the order of their sequence; a deletion ends a row."""
        (key,), (sequence,) = self.key, self.order_by
        assert self.deletes is not None
        changes = {(row[key], row[sequence]): row for row in rows}
        made = []
        for each in {row[key] for row in rows}:
            ordered = [changes[at] for at in sorted(at for at in changes if at[0] == each)]
            for row, after in zip(ordered, [*ordered[1:], None], strict=True):
                if self.deletes.value(row):
                    continue
                ends_at = None if after is None else after[sequence]
                if self.construct is Construct.HISTORY:
                    made.append({**row, "valid_from": row[sequence], "valid_to": ends_at, "is_current": after is None})
                elif after is None:
                    made.append(row)
        return made


def rank(value: Any) -> tuple[Any, ...]:
    """The order of values in a database: null, which NaN becomes, is the least; lists are ordered by their JSON."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return (0,)
    if isinstance(value, str):
        return (1, value.encode())
    return (1, json.dumps(value, separators=(",", ":")).encode() if isinstance(value, list) else value)


def draw_ends(draft: Draft) -> None:
    """An end of each table that nothing reads, and further ones."""
    plan = draft.plan()
    read = {name for each in plan.tables.values() for name in each.inputs}
    leaves = [name for name in draft.columns if name not in read]
    steps = [name for name in draft.columns if name in draft.definition["steps"] and choices(draft, name)]
    for name in [*leaves, *draft.random.choices(steps or leaves, k=draft.one_of(0, 1, 1, 2))]:
        choice = draft.one_of(*choices(draft, name))
        add_end(draft, choice(draft, name))


def choices(draft: Draft, read: str) -> list[Callable[[Draft, str], End]]:
    """The ends that may read a table."""
    path, columns = draft.path(read), draft.columns[read]
    if draft.is_realtime:
        return [appended_topic, *([tombstones] if deletion(columns) else [])]
    found: list[Callable[[Draft, str], End]] = []
    if path.never_final is None:
        found += [appended_topic, appended_table, files, *([tombstones] if deletion(columns) else [])]
        if path.groups is None and draft.is_row(read):
            found += [by_order, by_order]
            found += [by_arrival, by_arrival] if draft.fits(Construct.KEYED_BY_ARRIVAL, read) else []
        found += [changes, changes] if read in draft.unique and deletion(columns) else []
    if path.groups and path.can_change:
        found += [updated, updated]
    if path.groups and key_of_groups(draft, read) and (path.can_change or path.never_final is None):
        found += [keyed_groups, keyed_groups, keyed_groups]
    if draft.is_row(read) and path.groups is None and not path.keeps_other_state and path.never_final is None:
        found.append(aggregate_view)
    return found


def name_of(draft: Draft) -> str:
    return f"out{len(draft.ends)}"


def made_end(draft: Draft, read: str, construct: Construct, kind: str) -> End:
    """The columns of a table are in the order of its plan, by which ties are decided."""
    columns = draft.plan().table(read).columns
    known = [] if columns is None else [each for each in columns.names if each in draft.columns[read]]
    names = tuple(known) if len(known) == len(draft.columns[read]) else draft.columns[read]
    return End(name_of(draft), read, construct, kind, names, of_groups=draft.path(read).groups is not None)


def appended_topic(draft: Draft, read: str) -> End:
    end = made_end(draft, read, Construct.APPEND, "topic")
    some = tuple(draft.some(end.columns, 1, 3)) if draft.happens(4) else ()
    return replace(end, columns=some or end.columns)


def appended_table(draft: Draft, read: str) -> End:
    return made_end(draft, read, Construct.APPEND, "table")


def files(draft: Draft, read: str) -> End:
    return made_end(draft, read, Construct.APPEND, "files")


def deletion(columns: tuple[str, ...]) -> Expression | None:
    return next((each for each in (NEGATIVE, FEW) if each.fits(columns)), None)


def tombstones(draft: Draft, read: str) -> End:
    end = made_end(draft, read, Construct.TOMBSTONES, "topic")
    key = next((each for each in ("id", "window_end", "until") if each in end.columns), end.columns[0])
    return replace(end, key=(key,), deletes=deletion(end.columns))


def updated(draft: Draft, read: str) -> End:
    end, groups = made_end(draft, read, Construct.UPDATE, "topic"), draft.path(read).groups or ()
    names = [next((each for each in columns if each in end.columns), None) for columns in groups]
    key = tuple(each for each in names if each is not None)
    return replace(end, key=key, has_filter=has_filter(draft, read) or len(key) < len(groups))


def has_filter(draft: Draft, read: str) -> bool:
    """Whether a step behind the groups may remove one."""
    plan = draft.plan()
    grouped = plan.path(read).grouped_by or read
    behind = [plan.table(each) for each in plan.upstream(read) if grouped in plan.upstream(each)]
    return any(each.checks or each.name != grouped for each in behind)


def key_of_groups(draft: Draft, read: str) -> tuple[str, ...]:
    """A column for each expression of GROUP BY; none if one is not selected, or not exact."""
    found = []
    for names in draft.path(read).groups or ():
        exact = [each for each in names if each in draft.columns[read] and TYPES[each] not in INEXACT]
        if not exact:
            return ()
        found.append(draft.one_of(*exact))
    return tuple(found)


def keyed_groups(draft: Draft, read: str) -> End:
    path = draft.path(read)
    construct = Construct.KEYED_CURRENT if path.can_change else Construct.KEYED_FINAL
    end = replace(made_end(draft, read, construct, "table"), key=key_of_groups(draft, read))
    others = [each for each in end.columns if each not in end.key]
    if others and (not path.is_ordered or draft.happens(4)):
        return replace(end, order_by=(draft.one_of(*others),))
    return end if path.is_ordered else replace(end, order_by=end.key[:1])


def by_arrival(draft: Draft, read: str) -> End:
    return replace(made_end(draft, read, Construct.KEYED_BY_ARRIVAL, "table"), key=(draft.one_of("id", "k"),))


def by_order(draft: Draft, read: str) -> End:
    end = replace(made_end(draft, read, Construct.KEYED_BY_ORDER, "table"), key=(draft.one_of("id", "k"),))
    others = [each for each in end.columns if each not in end.key and TYPES[each] not in INEXACT]
    return replace(end, order_by=tuple(draft.random.sample(others, min(len(others), draft.one_of(1, 2)))))


def changes(draft: Draft, read: str) -> End:
    construct = draft.one_of(Construct.CHANGES, Construct.HISTORY)
    end = made_end(draft, read, construct, "table")
    key, sequence = draft.unique[read]
    return replace(end, key=(key,), order_by=(sequence,), deletes=deletion(end.columns))


def aggregate_view(draft: Draft, read: str) -> End:
    """A view of groups, or of one group of all rows."""
    by = draft.one_of(("k",), ("k",), ())
    grouping = Grouping(by, (), draw_aggregates(draft, draft.columns[read], set(by)), None)
    name = name_of(draft)
    draft.tables.append(Table(f"{name} groups", name, grouping.made(read)))
    aggregates = {each.name: each.sql for each in (COUNT, *grouping.aggregates)}
    view = {"from": read, "aggregate": aggregates, **({"by": list(by)} if by else {})}
    draft.definition.setdefault("views", {})[name] = view
    end = End(name, f"{name} groups", Construct.KEYED_CURRENT, "table", grouping.columns, by)
    return replace(end, of_groups=True)


def add_end(draft: Draft, end: End) -> None:
    """Adds the declaration of an end; keyed tables and change data may be views."""
    draft.ends.append(end)
    views: dict[str, Any] = draft.definition.setdefault("views", {})
    if end.name in views:
        return
    declared: dict[str, Any] = {"from": end.read}
    if end.deletes is not None and end.kind == "table":
        history = {"history": True} if end.construct is Construct.HISTORY else {}
        declared["changes"] = {"key": list(end.key), "sequence": end.order_by[0], "deletes": end.deletes.sql, **history}
    elif end.kind == "table" and end.key:
        declared |= {"key": list(end.key), **({"order_by": list(end.order_by)} if end.order_by else {})}
    if len(declared) > 1 and draft.happens(3):
        views[end.name] = declared
        return
    if end.kind == "topic":
        declared |= declared_topic(draft, end)
    else:
        declared |= {"table": end.name} if end.kind == "table" else {"files": {"path": end.name, "format": "json"}}
    draft.definition.setdefault("sinks", {})[end.name] = declared


def declared_topic(draft: Draft, end: End) -> dict[str, Any]:
    made: dict[str, Any] = {"topic": end.name}
    if end.construct is Construct.UPDATE:
        made["mode"] = "update"
    if end.deletes is not None:
        return {**made, "key": end.key[0], "deletes": end.deletes.sql}
    if end.columns != draft.columns[end.read] and set(end.columns) < set(draft.columns[end.read]):
        made["value"] = list(end.columns)
    if "k" in draft.columns[end.read] and draft.happens(3):
        made |= {"key": "k", "headers": {"kind": "coalesce(k, 'none')"}}
    return made
