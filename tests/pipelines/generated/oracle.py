"""The oracle: what the tables of a drawn definition must have, in plain Python, from the rows of the records alone.

It uses nothing of the pipelines. Rows carry the batch and the place of their record, and the order of its arrival. In a
stream, operators with state drop the rows that are late by the watermark that the batch before theirs started with.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from tests.pipelines.generated.expressions import CannotCompute, Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tests.pipelines.generated.expressions import Aggregate, Values

MINUTE_MS = 60_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
CANNOT_COMPUTE, NO_EVENT_TIME = "cannot be computed", "no event time"
REMOVING = ("drop", "quarantine", "fail")


@dataclass(frozen=True, slots=True)
class Row:
    """A row, with the batch and the place of its record, if it is of one."""

    values: Values
    batch: int = 0
    order: tuple[int, ...] = ()  # by which rows of a partition have arrived
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation."""

    name: str
    condition: Expression
    otherwise: str


@dataclass(frozen=True, slots=True)
class Table:
    """A source, a step or a part of one: what its rows are made by, its watermark and its expectations."""

    name: str
    owner: str  # the declaration that it is part of
    made_by: Made
    delay_minutes: int | None = None
    time: str = "at"  # the column of its watermark
    checks: tuple[Check, ...] = ()


@dataclass
class Outcome:
    """Rows by sink and view, dead letters, violations by step and expectation, and late rows by step."""

    rows: dict[str, list[Values]] = field(default_factory=dict)
    letters: Counter[tuple[str, str, str | None]] = field(default_factory=Counter)  # reason, declaration, place
    violations: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    stopped: list[tuple[int, str]] = field(default_factory=list)  # batch and name of an expectation that stops


class Made(Protocol):
    """What the rows of a table are made by."""

    @property
    def reads(self) -> tuple[str, ...]: ...

    def rows(self, oracle: Oracle, table: Table) -> Iterable[Row]: ...


class Oracle:
    """Computes the rows of all tables. Without `is_stream`, all records are one batch, and no row is late."""

    def __init__(
        self, tables: Sequence[Table], records: Sequence[Mapping[str, Sequence[Any]]], *, is_stream: bool
    ) -> None:
        self.records, self.is_stream = records, is_stream
        self.outcome = Outcome()
        self.found: dict[str, list[Row]] = {}
        self._tables = {each.name: each for each in tables}
        for table in tables:
            self.found[table.name] = [row for row in table.made_by.rows(self, table) if self._is_kept(table, row)]

    def _is_kept(self, table: Table, row: Row) -> bool:
        if table.delay_minutes is not None and row.values[table.time] is None:
            self.refuse(NO_EVENT_TIME, table, row)
            return False
        unmet = [each for each in table.checks if not each.condition.value(row.values)]
        for each in unmet:
            self.outcome.violations[table.owner, each.name] += 1
            if each.otherwise == "fail":
                self.outcome.stopped.append((row.batch, each.name))
        quarantined = [each for each in unmet if each.otherwise == "quarantine"]
        if quarantined:
            self.refuse(f"expectation '{quarantined[0].name}' not met", table, row)
        return not any(each.otherwise in REMOVING for each in unmet)

    def refuse(self, reason: str, table: Table, row: Row) -> None:
        self.outcome.letters[reason, table.owner, row.place] += 1

    def watermark_ms(self, name: str, batch: int) -> int | None:
        """The watermark by which the rows of a batch are late for a table: that of all watermarks before it."""
        marks = []
        for each in self.upstream(name):
            table = self._tables[each]
            if table.delay_minutes is not None:
                times = [milliseconds(row.values[table.time]) for row in self.found[each] if row.batch < batch - 1]
                marks.append(max(times) - table.delay_minutes * MINUTE_MS if times else None)
        known = [each for each in marks if each is not None]
        return min(known) if self.is_stream and known and len(known) == len(marks) else None

    def upstream(self, name: str) -> set[str]:
        return {name}.union(*(self.upstream(each) for each in self._tables[name].made_by.reads))

    def timely(self, table: Table, rows: Iterable[Row], end_ms: Callable[[Values], int | None]) -> Iterator[Row]:
        """The rows whose end is not passed by the watermark; those without an end are never late."""
        marks = {batch: self.watermark_ms(table.name, batch) for batch in range(len(self.records))}
        for row in rows:
            mark, end = marks[row.batch], end_ms(row.values)
            if mark is not None and end is not None and end <= mark:
                self.outcome.late[table.owner] += 1
            else:
                yield row


@dataclass(frozen=True, slots=True)
class Topic:
    """The records of a topic that can be parsed."""

    reads: tuple[str, ...] = ()

    def rows(self, oracle: Oracle, table: Table) -> Iterator[Row]:
        for number, batch in enumerate(oracle.records):
            for each in batch.get(table.name, ()):
                place = f"{each.partition}:{each.offset}"
                row = Row({}, number, (each.offset,), place)
                if each.rejected is not None:
                    oracle.refuse(each.rejected, table, row)
                else:
                    record = {"_partition": each.partition, "_topic": table.name, "_offset": each.offset}
                    yield replace(row, values={**each.values, **record})


@dataclass(frozen=True, slots=True)
class RowByRow:
    """The rows that are made of each row; `CannotCompute` makes it a dead letter."""

    read: str
    make: Callable[[Values], Iterable[Values]]

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.read,)

    def rows(self, oracle: Oracle, table: Table) -> Iterator[Row]:
        for row in oracle.found[self.read]:
            try:
                made = list(self.make(row.values))
            except CannotCompute:
                oracle.refuse(CANNOT_COMPUTE, table, row)
                continue
            yield from (replace(row, values=each, order=(*row.order, number)) for number, each in enumerate(made))


@dataclass(frozen=True, slots=True)
class United:
    """The rows of several tables, whose columns have the names of the first."""

    reads: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]  # of the columns of each

    def rows(self, oracle: Oracle, table: Table) -> Iterator[Row]:
        for read, names in zip(self.reads, self.names, strict=True):
            for row in oracle.found[read]:
                values = [row.values[name] for name in names]
                yield replace(row, values=dict(zip(self.names[0], values, strict=True)))


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of minutes over a column, or sessions with a gap."""

    time: str
    size: int = 0
    slide: int = 0
    gap: int = 0

    def spans(self, values: Values) -> list[tuple[int, int]]:
        """The windows of a row in milliseconds; of sessions the one of the row alone."""
        if values[self.time] is None:
            return []
        at, size = milliseconds(values[self.time]), self.size * MINUTE_MS
        if self.gap:
            return [(at, at + self.gap * MINUTE_MS)]
        slide = self.slide * MINUTE_MS or size
        first = at // slide * slide
        return [(start, start + size) for start in range(first, first - size, -slide) if start + size > at]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups by expressions and a window, which has the names `window_start` and `window_end`."""

    read: str
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    window: Window | None = None
    having: Expression | None = None
    columns: tuple[tuple[str, str], ...] = ()  # other names of columns

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.read,)

    def rows(self, oracle: Oracle, table: Table) -> Iterator[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for span, row in self._spans(oracle, table):
            key = tuple(comparable(each.value(row.values)) for each in self.keys)
            groups.setdefault((*key, span), []).append(row)
        if self.window is not None and self.window.gap:
            groups = merged(groups)
        if not self.keys and self.window is None:
            groups.setdefault((None,), [])
        for (*_, span), found in groups.items():
            rows = [each.values for each in found]
            made = {each.name: each.value(rows[0]) for each in self.keys} if rows else {}
            if span is not None:
                made |= {"window_start": moment(span[0]), "window_end": moment(span[1])}
            made |= {each.name: each.value(rows) for each in self.aggregates}
            if self.having is None or self.having.value(made):
                renamed = dict(self.columns)
                yield Row({renamed.get(name, name): value for name, value in made.items()})

    def _spans(self, oracle: Oracle, table: Table) -> Iterator[tuple[tuple[int, int] | None, Row]]:
        """The rows with each of their windows that is not final."""
        window, read = self.window, oracle.found[self.read]
        if window is None:
            yield from ((None, row) for row in read)
            return
        for row in read:
            for span in window.spans(row.values):
                yield from ((span, each) for each in oracle.timely(table, [row], always(span[1])))


def always(end_ms: int) -> Callable[[Values], int]:
    return lambda _: end_ms


def merged(groups: dict[tuple[Any, ...], list[Row]]) -> dict[tuple[Any, ...], list[Row]]:
    """Sessions of one key that touch are one."""
    made: dict[tuple[Any, ...], list[Row]] = {}
    last: dict[tuple[Any, ...], tuple[int, int]] = {}
    for (*key, (start, end)), rows in sorted(groups.items(), key=lambda each: each[0][-1]):
        before = last.get(tuple(key), (start, start - 1))
        is_one = start <= before[1]
        span = (before[0], max(before[1], end)) if is_one else (start, end)
        made[*key, span] = [*(made.pop((*key, before)) if is_one else ()), *rows]
        last[tuple(key)] = span
    return made


@dataclass(frozen=True, slots=True)
class First:
    """The first row of each key; with `within_minutes` of each key in each period, and then in each shifted period."""

    read: str
    key: tuple[str, ...]
    time: str | None = None
    within_minutes: int | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.read,)

    def rows(self, oracle: Oracle, table: Table) -> Iterable[Row]:
        rows: Iterable[Row] = sorted(oracle.found[self.read], key=lambda row: (row.batch, row.order))
        for shift in (0,) if self.within_minutes is None else (0, self.within_minutes):
            first: dict[tuple[Any, ...], Row] = {}
            for row in oracle.timely(table, rows, functools.partial(self._end_ms, shift)):
                period = None if self.within_minutes is None else self._end_ms(shift, row.values)
                first.setdefault((*(comparable(row.values[name]) for name in self.key), period), row)
            rows = list(first.values())
        return rows

    def _end_ms(self, shift: int, values: Values) -> int | None:
        """The time at which the state of a row is dropped."""
        if self.time is None:
            return None
        at, size = milliseconds(values[self.time]), 2 * (self.within_minutes or 0) * MINUTE_MS
        return (at + shift * MINUTE_MS) // size * size + size - shift * MINUTE_MS if size else at


@dataclass(frozen=True, slots=True)
class Numbered:
    """Keyed state: the rows of each `k` are numbered from 1 in `i`, by arrival."""

    read: str
    kept: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.read,)

    def rows(self, oracle: Oracle, table: Table) -> Iterator[Row]:
        numbers: Counter[Any] = Counter()
        for row in sorted(oracle.found[self.read], key=lambda row: (row.batch, row.order)):
            numbers[row.values["k"]] += 1
            kept = {name: row.values[name] for name in self.kept}
            yield Row({**kept, "i": numbers[row.values["k"]]}, row.batch)


@dataclass(frozen=True, slots=True)
class Paired:
    """Pairs of rows of two streams with one `k`, and the time of the right one from `low` to `high` minutes after that
    of the left one; of an outer join also rows without a pair, with nulls for the other side."""

    left: str
    right: str
    times: tuple[str, str]
    make: Callable[[Values, Values], Values]
    how: str = "inner"
    low: int | None = None  # None: at any time
    high: int | None = None
    is_open: bool = False  # the upper bound is not met by an equal time
    residual: Callable[[Values, Values], Any] | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def rows(self, oracle: Oracle, table: Table) -> Iterator[Row]:
        sides = [self._timely(oracle, table, *each) for each in zip(self.reads, self.times, strict=True)]
        nothing: list[Values] = [dict.fromkeys(side[0].values) if side else NULLS for side in sides]
        paired: tuple[set[int], set[int]] = (set(), set())
        for i, left in enumerate(sides[0]):
            for j, right in enumerate(sides[1]):
                if self._is_pair(left.values, right.values):
                    paired[0].add(i)
                    paired[1].add(j)
                    yield Row(self.make(left.values, right.values), max(left.batch, right.batch))
        if self.how in {"left", "full"}:
            alone = [row for number, row in enumerate(sides[0]) if number not in paired[0]]
            yield from (Row(self.make(row.values, nothing[1]), row.batch) for row in alone)
        if self.how in {"right", "full"}:
            alone = [row for number, row in enumerate(sides[1]) if number not in paired[1]]
            yield from (Row(self.make(nothing[0], row.values), row.batch) for row in alone)

    def _timely(self, oracle: Oracle, table: Table, name: str, time: str) -> list[Row]:
        if self.low is None:
            return oracle.found[name]
        return list(oracle.timely(table, oracle.found[name], lambda values: milliseconds(values[time])))

    def _is_pair(self, left: Values, right: Values) -> bool:
        if left["k"] is None or left["k"] != right["k"]:
            return False
        if self.residual is not None and not self.residual(left, right):
            return False
        if self.low is None or self.high is None:
            return True
        apart = milliseconds(right[self.times[1]]) - milliseconds(left[self.times[0]])
        is_before = apart < self.high * MINUTE_MS if self.is_open else apart <= self.high * MINUTE_MS
        return self.low * MINUTE_MS <= apart and is_before


class Nulls(dict[str, Any]):
    """A row of nulls of a side without rows."""

    def __missing__(self, name: str) -> None:
        return None


NULLS = Nulls()


def milliseconds(time: datetime.datetime) -> int:
    return (time - EPOCH) // datetime.timedelta(milliseconds=1)


def moment(time_ms: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(milliseconds=time_ms)


def comparable(value: Any) -> Any:
    """A value that equals those that SQL groups with it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return tuple(value) if isinstance(value, list) else value
