"""The description of a case: a definition and the records that it is fed, as plain values.

Both the YAML definition and the oracle's program are made from it. Every stream has the columns `id`, `k`, `n`, `at`
and `tags`; the name of a column determines its type (see `TYPES`).
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any

START_S = 1_767_268_800  # 2026-01-01 12:00:00 UTC
TYPES = {
    "id": "BIGINT",
    "k": "STRING",
    "n": "BIGINT",
    "at": "TIMESTAMP",
    "tags": "ARRAY<STRING>",
    "tag": "STRING",
    "label": "STRING",
    "x": "BIGINT",
    "text": "STRING",
    "i": "BIGINT",
    "other": "BIGINT",
    "other_n": "BIGINT",
    "other_at": "TIMESTAMP",
    "events": "BIGINT",
    "total": "BIGINT",
    "top": "BIGINT",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "valid_from": "TIMESTAMP",
    "valid_to": "TIMESTAMP",
    "is_current": "BOOLEAN",
    "_key": "BINARY",
    "_value": "BINARY",
    "_headers": "HEADERS",
    "_timestamp": "TIMESTAMP",
    "_topic": "STRING",
    "_partition": "INT",
    "_offset": "BIGINT",
}
RECORD_COLUMNS = tuple(name for name in TYPES if name.startswith("_"))
WRITTEN_AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STREAM_COLUMNS = ("id", "k", "n", "at", "tags")
ROW = ("id", "k", "n", "at")
RENAMED = (("other", "id"), ("other_n", "n"), ("other_at", "at"))  # columns of the right side of a declared join
LABELS = (("a", "Ada"), ("b", "Bob"), ("d", "Dan"))
KNOWN = {"is not Bob": ("label <> 'Bob'", "drop"), "is Ada": ("label = 'Ada'", "warn")}  # expectations of labels


@dataclass(frozen=True)
class Record:
    """A record of a source: the fields of its value, or a value that does not parse, with the kind of its reason."""

    partition: int
    offset: int
    values: tuple[tuple[str, object], ...] = ()
    text: str | None = None
    rejected: str | None = None

    @property
    def value(self) -> bytes | None:
        values = {name: each.isoformat() if isinstance(each, datetime.datetime) else each for name, each in self.values}
        text = self.text if self.rejected is not None else json.dumps(values)
        return None if text is None else text.encode()

    def columns(self, topic: str) -> dict[str, Any]:
        """The values of `RECORD_COLUMNS`."""
        return dict(
            zip(RECORD_COLUMNS, (None, self.value, [], WRITTEN_AT, topic, self.partition, self.offset), strict=True)
        )


@dataclass(frozen=True)
class Source:
    """A topic. `at` is a field of the record or computed from text; its watermark may be that of a step instead."""

    name: str
    delay_minutes: int | None
    is_time_computed: bool = False


@dataclass(frozen=True)
class Expectation:
    name: str
    check: str
    otherwise: str


@dataclass(frozen=True)
class Select:
    """`*`, or named columns with computed ones."""

    input: str
    columns: tuple[str, ...] | None
    computed: tuple[tuple[str, str], ...] = ()
    where: str | None = None


@dataclass(frozen=True)
class Explode:
    """A row for each of `tags`."""

    input: str
    style: str  # select | outer | lateral


@dataclass(frozen=True)
class StaticJoin:
    """A join with the table `labels` on `k`, or with the step `known` of those that meet `KNOWN`."""

    input: str
    how: str
    is_checked: bool = False

    @property
    def table(self) -> str:
        return "known" if self.is_checked else "labels"


@dataclass(frozen=True)
class Aggregate:
    """Counts and sums by columns, in windows of minutes if `size` is set, in sessions if `gap` is."""

    input: str
    by: tuple[str, ...]
    size: int | None = None
    slide: int | None = None
    is_sql: bool = False
    gap: int | None = None
    time: str = "at"
    value: str = "n"

    @property
    def is_windowed(self) -> bool:
        return self.size is not None or self.gap is not None


@dataclass(frozen=True)
class Deduplicate:
    """The first row of each `id`."""

    input: str
    within_minutes: int | None = None


@dataclass(frozen=True)
class Number:
    """Keyed state: the rows of each `k` are numbered from 1 in `i`."""

    input: str


@dataclass(frozen=True)
class StreamJoin:
    """Rows of two streams with the same `k`, at most `minutes` apart.

    It is written in SQL, or as `join: {stream: …}`, whose right side has the columns `RENAMED`.
    """

    left: str
    right: str
    how: str  # inner | left; declared also right | full
    minutes: int
    is_declared: bool = False


@dataclass(frozen=True)
class Union:
    """`has_star`: the columns of both are `*`, of which the last is named behind it."""

    left: str
    right: str
    has_star: bool = False


@dataclass(frozen=True)
class Python:
    """A Python function: `positive` filters and computes `x`, `tallied` counts the rows of each `k`."""

    input: str
    function: str


Operation = Select | Explode | StaticJoin | Aggregate | Deduplicate | Number | StreamJoin | Union | Python


@dataclass(frozen=True)
class Step:
    name: str
    operation: Operation
    expectations: tuple[Expectation, ...] = ()
    delay_minutes: int | None = None  # a watermark on `at`


@dataclass(frozen=True)
class Sink:
    """An output: a topic, a table or files. `key` is that of an upserted table, or of the groups of an update.

    `form` is empty for plain rows. Of a table: `latest` (order_by), `arrived` (upsert without order_by), `by COLUMN`
    (groups with this order_by), `changes` and `history` (change data). Of a topic: `deletes` (rows with a negative `n`
    are tombstones).
    """

    name: str
    input: str
    kind: str  # topic | table | files
    mode: str = "append"  # append | update | upsert
    key: tuple[str, ...] = ()
    form: str = ""


@dataclass(frozen=True)
class View:
    """The latest row of each `k`, by `at` or by arrival, an aggregate by `k` or of all rows, or change data by `k`."""

    name: str
    input: str
    form: str  # latest | arrived | groups | whole | changes | history


@dataclass(frozen=True)
class Case:
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    views: tuple[View, ...] = ()
    batches: tuple[dict[str, tuple[Record, ...]], ...] = ()

    def step(self, name: str) -> Step | None:
        return next((each for each in self.steps if each.name == name), None)

    def upstream(self, name: str) -> list[Step]:
        """The steps before a name and its own, each once."""
        step = self.step(name)
        before = [each for read in inputs_of(step.operation) for each in self.upstream(read)] if step else []
        return list(dict.fromkeys([*before, *([step] if step else [])]))

    @property
    def checks_labels(self) -> bool:
        return any(isinstance(each.operation, StaticJoin) and each.operation.is_checked for each in self.steps)

    @property
    def stopping(self) -> list[Step]:
        """The steps with an expectation that stops the pipeline."""
        return [each for each in self.steps if any(rule.otherwise == "fail" for rule in each.expectations)]


def inputs_of(operation: Operation) -> tuple[str, ...]:
    return (operation.left, operation.right) if isinstance(operation, StreamJoin | Union) else (operation.input,)


@dataclass
class Shape:
    """What later steps and sinks may do with the rows of a source or step."""

    columns: tuple[str, ...]
    has_time: bool = True  # `at` carries a watermark
    has_unique_ids: bool = True  # rows with one id are equal
    has_unique_times: bool = True  # rows with one `k` and `at` are equal
    has_outer_rows: bool = False  # `id`, `k` and `at` may be null
    groups: tuple[str, ...] | None = None  # the key of groups, if an aggregation is before it
    is_windowed: bool = False
    is_final: bool = False  # sessions, which are written once
    is_nested: bool = False  # windows over windows: only final rows are written
    is_group_filtered: bool = False  # groups are filtered by an aggregate
    is_shrinking: bool = False  # a group that passes the filter may not pass it later
    is_counted: bool = False  # a step before it keeps state
    is_joined: bool = False  # a join of streams is before it
