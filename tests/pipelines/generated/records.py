"""Draws records, cut into batches: in order and out of order, duplicates, late events, and values of every kind.

The records of a `k` are in one partition, so that the order of their arrival is defined.
"""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.pipelines.generated.drafts import Draft
    from tests.pipelines.generated.expressions import Values

START = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
YEAR_1 = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
UNPARSED = (
    ("not JSON", "{not JSON"),
    ("does not fit the schema", '{"id": "one", "at": "2026-01-01T12:00:00Z"}'),
    ("no value", None),
)
Batches = tuple[dict[str, tuple["Record", ...]], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a source: the fields of its value, or a text that is rejected, and the kinds of values it has."""

    partition: int
    offset: int
    values: Values
    kinds: tuple[str, ...] = ()
    text: str | None = None
    rejected: str | None = None

    @property
    def value(self) -> bytes | None:
        if self.rejected is not None:
            return None if self.text is None else self.text.encode()
        return json.dumps({name: as_json(each) for name, each in self.values.items()}).encode()


def as_json(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


class Feed:
    """Draws the records of sources. Only with late rows an event is at or before the watermark."""

    def __init__(self, draft: Draft, delays: dict[str, int], late_minutes: int) -> None:
        self._draft, self._delays, self._late_minutes = draft, delays, late_minutes
        self._rows: dict[str, list[Values]] = {name: [] for name in delays}
        self._latest: dict[str, list[int]] = {name: [] for name in delays}  # second, after each batch
        self._offsets: Counter[tuple[str, int]] = Counter()
        self._count = 0

    def batches(self) -> Batches:
        count = self._draft.random.randint(3, 4) if self._draft.has_late_rows else self._draft.random.randint(2, 3)
        return tuple(self._batch(is_last=number == count - 1) for number in range(count))

    def _batch(self, *, is_last: bool) -> dict[str, tuple[Record, ...]]:
        made: dict[str, list[Record]] = {name: [] for name in self._delays}
        for _ in range(self._draft.random.randint(2, 7)):
            name = self._draft.one_of(*self._delays)
            made[name] += self._records(name)
        for name, rows in self._rows.items():
            if is_last and not rows:  # a stream without rows has no watermark, and keeps the rows of a join waiting
                made[name].append(self._placed(name, self._row(name, "row"), ()))
            self._latest[name].append(max((seconds(row) for row in rows if row["at"] is not None), default=-1))
        return {name: tuple(records) for name, records in made.items()}

    def _records(self, name: str) -> list[Record]:
        kinds = ("row", "row", "row", "row", "duplicate", "unparsed", "null event time", *self._late_kinds(name))
        kind = self._draft.one_of(*kinds)
        if kind == "unparsed":
            rejected, text = self._draft.one_of(*UNPARSED)
            return [Record(0, self._next_offset(name, 0), {}, (kind,), text, rejected)]
        if kind == "duplicate":
            rows = [row for row in self._rows[name] if self._is_timely(name, row)]
            return [self._placed(name, self._draft.one_of(*rows), (kind,))] if rows else []
        row = self._row(name, kind)
        return [self._placed(name, row, (*(each for each in (kind,) if each != "row"), *self._strange(row)))]

    def _late_kinds(self, name: str) -> tuple[str, ...]:
        """Lateness is by the watermark that the batch before this one started with."""
        has_mark = len(self._latest[name]) > 1 and self._latest[name][-2] >= 0
        return ("late", "late", "at the watermark") if self._draft.has_late_rows and has_mark else ()

    def _row(self, name: str, kind: str) -> Values:
        pick, self._count = self._draft.one_of, self._count + 1
        row: Values = {
            "id": self._count,
            "k": pick("a", "b", "c", "a", "b", None),
            "n": pick(*range(-3, 10), None),
            "d": pick(0.0, 0.25, 1.5, 2.0, None),
            "t": pick("12", "7", "40", "3", None),
            "tags": pick(["x", "y"], ["x", "y", "z"], ["y", "x"], [None, "x"], ["y", "z", "x"]),
            "at": START + datetime.timedelta(seconds=self._second(name, kind)),
            "seen": START + datetime.timedelta(minutes=pick(1, 2, 3)),
        }
        if kind == "null event time":
            row["at"] = None
        self._rows[name].append(row)
        return row

    def _strange(self, row: Values) -> tuple[str, ...]:
        """Gives a row a value that may not be computed or stored."""
        values = {
            "−0.0": ("d", -0.0),
            "NaN": ("d", math.nan),
            "year 1": ("seen", YEAR_1),
            "\\0": ("t", "1\0"),
            "short array": ("tags", self._draft.one_of(["x"], [], None)),
            "text that is no number": ("t", "x"),
        }
        if not self._draft.happens(3):
            return ()
        kind = self._draft.one_of(*values)
        column, value = values[kind]
        row[column] = value
        return (kind,)

    def _second(self, name: str, kind: str) -> int:
        """Each row has another second of the minute, so that no two rows of a key have one time."""
        minute, latest, delay = self._draft.random.randint(0, 59), self._latest[name], self._delays[name] * 60
        if kind == "at the watermark":
            return latest[-2] - delay
        if kind == "late":
            late = latest[-2] - delay - self._late_minutes * 60 - self._draft.random.randint(0, 40) * 60
            return late // 60 * 60 - 60 + self._count % 60
        second = minute * 60 + self._count % 60
        while latest and latest[-1] >= 0 and second <= latest[-1] - delay:
            second += 60
        return second

    def _is_timely(self, name: str, row: Values) -> bool:
        latest = self._latest[name][-1] if self._latest[name] else -1
        return row["at"] is None or latest < 0 or seconds(row) > latest - self._delays[name] * 60

    def _placed(self, name: str, row: Values, kinds: tuple[str, ...]) -> Record:
        partition = ord(row["k"] or "a") % 2
        return Record(partition, self._next_offset(name, partition), row, kinds)

    def _next_offset(self, name: str, partition: int) -> int:
        self._offsets[name, partition] += 1
        return self._offsets[name, partition] - 1


def seconds(row: Values) -> int:
    return int((row["at"] - START).total_seconds())


def in_one_batch(batches: Batches) -> Batches:
    return ({name: tuple(each for batch in batches for each in batch[name]) for name in batches[0]},)


def one_by_one(batches: Batches) -> Batches:
    """A batch for each record, in the order of event time, so that none is late; offsets are in this order."""
    every = [(name, each) for name, records in in_one_batch(batches)[0].items() for each in records]
    every.sort(key=lambda each: (each[1].values.get("at") or START, each[1].offset))
    offsets: Counter[tuple[str, int]] = Counter()
    made: list[dict[str, tuple[Record, ...]]] = []
    for name, record in every:
        offset = offsets[name, record.partition]
        offsets[name, record.partition] += 1
        moved = (replace(record, offset=offset),)
        made.append({each: moved if each == name else () for each in batches[0]})
    return tuple(made)


SPLITS = {"as drawn": lambda batches: batches, "one batch": in_one_batch, "one by one": one_by_one}
