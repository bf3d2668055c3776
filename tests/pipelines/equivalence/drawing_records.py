"""Draws records, cut into batches: in order and out of order, duplicates, values that do not parse, late events."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import START_S, Record, Source

UNPARSED = (
    ("not JSON", "{not JSON"),
    ("does not fit the schema", '{"id": "one", "at": "2026-01-01T12:00:00Z", "ts": "2026-01-01 12:00:00"}'),
    ("missing field", '{"k": "a", "at": "2026-01-01T12:00:00Z", "ts": "2026-01-01 12:00:00"}'),
    ("no value", None),
)
KEYS = st.sampled_from(("a", "b", "c", None))
NUMBERS = st.one_of(st.integers(-3, 9), st.none())
TAGS = st.one_of(st.lists(st.sampled_from(("x", "y", None)), max_size=3), st.none())
ROWS = st.tuples(st.just("row"), st.integers(0, 59), KEYS, NUMBERS, TAGS)
DUPLICATES = st.tuples(st.just("again"), st.integers(0, 9), st.booleans())
BROKEN = st.tuples(st.just("broken"), st.sampled_from(UNPARSED))
LATE = st.tuples(st.just("late"), st.integers(0, 40), KEYS, NUMBERS, TAGS)
FEED = st.tuples(st.integers(0, 1), st.integers(0, 1), st.one_of(ROWS, ROWS, ROWS, DUPLICATES, DUPLICATES, BROKEN))
LATE_FEED = st.tuples(st.integers(0, 1), st.integers(0, 1), st.one_of(ROWS, ROWS, LATE, LATE, DUPLICATES, BROKEN))
BATCHES = st.lists(st.lists(FEED, min_size=2, max_size=7), min_size=2, max_size=3)
LATE_BATCHES = st.lists(st.lists(LATE_FEED, min_size=2, max_size=6), min_size=3, max_size=4)
Batches = tuple[dict[str, tuple[Record, ...]], ...]


def draw_batches(
    sources: tuple[Source, ...],
    delay_minutes: int,
    within_minutes: int,
    *,
    has_null_keys: bool = True,
    has_null_tags: bool = True,
    late_minutes: int | None = None,
    is_keyed: bool = False,
) -> st.SearchStrategy[Batches]:
    """Batches. Without `has_null_keys`, `k` is never null: a table refuses rows without a key; likewise for tags.

    With `is_keyed`, the records of a `k` are in one partition. With `late_minutes`, some events are at least that much
    before the watermark that the previous batch started with.
    """

    def made(drafts: list[list[Feed]]) -> Batches:
        records = Records(sources, delay_minutes, within_minutes, has_null_keys=has_null_keys)
        records.has_null_tags = has_null_tags
        records.late_s = (late_minutes or 0) * 60
        records.is_keyed = is_keyed
        return records.batches(drafts)

    return (BATCHES if late_minutes is None else LATE_BATCHES).map(made)


Feed = tuple[int, int, Any]


class Records:
    """Makes records from drafts, with consecutive offsets; only those of late drafts are before a watermark."""

    def __init__(
        self, sources: tuple[Source, ...], delay_minutes: int, within_minutes: int, *, has_null_keys: bool
    ) -> None:
        self._null_key = None if has_null_keys else "d"
        self.has_null_tags = True
        self.late_s = 0
        self.is_keyed = False
        self._names = [each.name for each in sources]
        self._delay_s = delay_minutes * 60
        self._within_s = within_minutes * 60
        self._offsets: dict[tuple[str, int], int] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self._names}
        self._latest_s: list[dict[str, int]] = [{}, {}]  # after each batch; the first two are before any
        self._latest_now: dict[str, int] = {}
        self._count = 0

    def batches(self, drafts: list[list[Feed]]) -> Batches:
        made = [self._batch(each) for each in drafts]
        for name in self._names:  # a stream without rows has no watermark, and keeps the rows of a join waiting
            if not self._rows[name]:
                record = self._record(name, 0, ("row", 30, "a", 1, ["x"]))
                made[-1][name] += (record,) if record is not None else ()
        return tuple(made)

    def _batch(self, drafts: list[Feed]) -> dict[str, tuple[Record, ...]]:
        made: dict[str, list[Record]] = {name: [] for name in self._names}
        for source, partition, draft in drafts:
            name = self._names[source % len(self._names)]
            record = self._record(name, partition, draft)
            if record is not None:
                made[name].append(record)
        self._latest_s.append(dict(self._latest_now))
        return {name: tuple(records) for name, records in made.items()}

    def _record(self, name: str, partition: int, draft: Any) -> Record | None:
        if draft[0] == "broken":
            kind, text = draft[1]
            return Record(partition, self._next_offset(name, partition), text=text, rejected=kind)
        row = self._again(name, draft) if draft[0] == "again" else self._row(name, partition, draft)
        if row is None:
            return None
        if draft[0] == "again" and self._within_s:
            partition = row["partition"]  # the order of duplicates in different partitions is not defined
        if self.is_keyed:
            partition = ord(row["k"]) % 2
        self._latest_now[name] = max(row["second"], self._latest_now.get(name, 0))
        at = datetime.datetime.fromtimestamp(START_S + row["second"], datetime.UTC)
        values = {
            "id": row["id"],
            "k": row["k"],
            "n": row["n"],
            "at": at,
            "ts": at.strftime("%Y-%m-%d %H:%M:%S"),
            "tags": row["tags"],
        }
        return Record(partition, self._next_offset(name, partition), tuple(values.items()))

    def _row(self, name: str, partition: int, draft: Any) -> dict[str, Any]:
        kind, minute, key, number, tags = draft
        self._count += 1
        row = {
            "id": self._count,
            "k": self._null_key if key is None else key,
            "n": number,
            "tags": tags if self.has_null_tags else [each or "x" for each in tags or ["x"]],
            "second": self._second(name, minute, is_late=kind == "late"),
            "partition": partition,
        }
        self._rows[name].append(row)
        return row

    def _second(self, name: str, minute: int, *, is_late: bool) -> int:
        """Each row has another second of the minute, so that no two rows of a key have one time."""
        if is_late and name in self._latest_s[-2]:
            second = self._latest_s[-2][name] - self._delay_s - self.late_s - minute * 60
            return second // 60 * 60 - 60 + self._count % 60
        second = minute * 60 + self._count % 60
        while second < self._latest_s[-1].get(name, 0) - self._delay_s:
            second += 60
        return second

    def _again(self, name: str, draft: Any) -> dict[str, Any] | None:
        """A duplicate of an earlier row; with `within` it may be a later event."""
        rows = self._rows[name]
        if not rows:
            return None
        row = rows[draft[1] % len(rows)]
        later_s = self._within_s // 2 if draft[2] else 0
        second = row["second"] + later_s // 60 * 60
        return None if second < self._latest_s[-1].get(name, 0) - self._delay_s else {**row, "second": second}

    def _next_offset(self, name: str, partition: int) -> int:
        offset = self._offsets.get((name, partition), 0)
        self._offsets[name, partition] = offset + 1
        return offset
