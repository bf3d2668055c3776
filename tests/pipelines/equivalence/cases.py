"""The description of a case: a definition and the records that it is fed, as plain values.

Both the YAML definition and the oracle's program are made from it. Every stream has the columns `id`, `k`, `n`, `at`
and `tags`; the name of a column tells its type (see `TYPES`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    "events": "BIGINT",
    "total": "BIGINT",
    "top": "BIGINT",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
}
STREAM_COLUMNS = ("id", "k", "n", "at", "tags")
ROW = ("id", "k", "n", "at")
LABELS = (("a", "Ada"), ("b", "Bob"), ("d", "Dan"))


@dataclass(frozen=True)
class Record:
    """A record of a source: the fields of its value, or a value that does not parse, with the kind of its reason."""

    partition: int
    offset: int
    values: tuple[tuple[str, object], ...] = ()
    text: str | None = None
    rejected: str | None = None


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
    """A join with the table `labels` on `k`."""

    input: str
    how: str


@dataclass(frozen=True)
class Aggregate:
    """Counts and sums by columns, in windows of minutes if `size` is set."""

    input: str
    by: tuple[str, ...]
    size: int | None = None
    slide: int | None = None
    is_sql: bool = False


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
    """Rows of two streams with the same `k`, at most `minutes` apart."""

    left: str
    right: str
    how: str  # inner | left
    minutes: int


@dataclass(frozen=True)
class Union:
    left: str
    right: str


Operation = Select | Explode | StaticJoin | Aggregate | Deduplicate | Number | StreamJoin | Union


@dataclass(frozen=True)
class Step:
    name: str
    operation: Operation
    expectations: tuple[Expectation, ...] = ()
    delay_minutes: int | None = None  # a watermark on `at`


@dataclass(frozen=True)
class Sink:
    """An output: a topic, a table or files. `key` is that of an upserted table, or of the groups of an update."""

    name: str
    input: str
    kind: str  # topic | table | files
    mode: str = "append"  # append | update | upsert
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """The latest row of each `k`, or an aggregate by `k`."""

    name: str
    input: str
    is_latest: bool


@dataclass(frozen=True)
class Case:
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    views: tuple[View, ...] = ()
    batches: tuple[dict[str, tuple[Record, ...]], ...] = ()
    late: frozenset[tuple[str, int, int]] = frozenset()  # source, partition and offset of records that are late

    def step(self, name: str) -> Step | None:
        return next((each for each in self.steps if each.name == name), None)


@dataclass
class Shape:
    """What later steps and sinks may do with the rows of a source or step."""

    columns: tuple[str, ...]
    has_time: bool = True  # `at` carries a watermark
    has_unique_ids: bool = True  # rows with one id are equal
    groups: tuple[str, ...] | None = None  # the key of groups, if an aggregation is before it
    is_windowed: bool = False
    is_counted: bool = False  # a step before it keeps state
    roots: frozenset[str] = field(default_factory=frozenset)
