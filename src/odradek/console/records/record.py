"""A record, the records of a page, and the newest ones of a search: of a bounded number and size; and which records a
search finds. Pure.

Filters see records after masking, so that a search cannot find out what is hidden.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from odradek.console.records import json_path
from odradek.record_text import text_fields

ROW_CHARACTERS = 240  # of the value in a row of a table
KEY_CHARACTERS = 60
CHARACTER_BYTES = 4  # at most, in UTF-8
Rank = tuple[int, int, int]


class Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size_bytes(self) -> int:
        """Key, value and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


def cut_to_row(record: Record) -> Record:
    """The bytes that a row shows, one more if there are more, and as many headers: each counts one byte."""
    return record._replace(
        key=None if record.key is None else record.key[: KEY_CHARACTERS * CHARACTER_BYTES + 1],
        value=None if record.value is None else record.value[: ROW_CHARACTERS * CHARACTER_BYTES + 1],
        headers=(("…", None),) * len(record.headers),
    )


def json_line(record: Record) -> bytes:
    """The line that `odradek consume --format json` prints, without the type of the timestamp."""
    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    content = {**text_fields("key", record.key), **text_fields("value", record.value)}
    headers = [{"key": name, **text_fields("value", value)} for name, value in record.headers]
    return _line({**place, "timestamp": record.timestamp_ms, **content, "headers": headers})


def incomplete_line(reason: str, records: int) -> bytes:
    """The last line of an export that lacks records."""
    return _line({"incomplete": reason, "records": records})


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def in_page_order(records: Iterable[Record], *, is_newest_first: bool, is_by_offset: bool) -> list[Record]:
    """By time, or the newest first; records of a partition stay in the order of their offsets, whatever their times."""
    sign = -1 if is_newest_first else 1
    by_offset = sorted(records, key=lambda record: sign * record.offset)
    latest: dict[int, int] = {}
    ranks: dict[tuple[int, int], Rank] = {}
    for record in by_offset:
        partition, offset = record.partition, record.offset
        time_ms = 0 if is_by_offset else sign * (record.timestamp_ms or 0)
        time_ms = latest[partition] = max(time_ms, latest.get(partition, time_ms))
        ranks[partition, offset] = time_ms, sign * offset, sign * partition
    return sorted(by_offset, key=lambda record: ranks[record.partition, record.offset])


class RecordPage:
    """The first records by time, or the newest ones first; of a single partition by offset. Of a bounded number and
    size; the first record is kept whatever its size.

    Of each partition the page has records without a gap, so that another page can go on behind them.
    """

    def __init__(self, limit: int, most_bytes: int, *, is_newest_first: bool, is_by_offset: bool) -> None:
        self.records: list[Record] = []
        self.is_cut = False  # at the limit of bytes
        self._limit = limit
        self._most_bytes = most_bytes
        self._is_newest_first = is_newest_first
        self._sign = -1 if is_newest_first else 1
        self._is_by_offset = is_by_offset
        self._left_out: dict[int, int] = {}  # the offset of the first record that is not on the page, by partition

    def add(self, records: Iterable[Record]) -> None:
        found = [*self.records, *(record for record in records if not self._is_behind_gap(record))]
        self.records = in_page_order(found, is_newest_first=self._is_newest_first, is_by_offset=self._is_by_offset)
        size_bytes = kept = 0
        for record in self.records[: self._limit]:
            size_bytes += record.size_bytes
            if kept and size_bytes > self._most_bytes:
                self.is_cut = True
                break
            kept += 1
        for record in reversed(self.records[kept:]):
            self._left_out[record.partition] = record.offset
        del self.records[kept:]

    def wants_more_of(self, partition: int) -> bool:
        """Whether records of the partition that follow those that were added may belong to the page."""
        is_full = self.is_cut or len(self.records) == self._limit
        return partition not in self._left_out and not (is_full and self.records[-1].partition == partition)

    @property
    def has_left_out(self) -> bool:
        return bool(self._left_out)

    def end_in(self, partition: int, read_until: int) -> int:
        """The offset between the records of a partition that are on the page and those that follow."""
        left_out = self._left_out.get(partition)
        return read_until if left_out is None else left_out + self._is_newest_first

    def _is_behind_gap(self, record: Record) -> bool:
        left_out = self._left_out.get(record.partition)
        return left_out is not None and self._sign * record.offset >= self._sign * left_out


class NewestRecords:
    """Beyond its limits the oldest records are dropped; the newest one is kept whatever its size."""

    def __init__(self, most_records: int, most_bytes: int) -> None:
        self.records: deque[Record] = deque()
        self.dropped = 0
        self.dropped_until: dict[int, int] = {}  # the offset after the last one that was dropped, by partition
        self._size_bytes = 0
        self._most_records = most_records
        self._most_bytes = most_bytes

    def add(self, records: Iterable[Record]) -> None:
        for record in records:
            self.records.append(record)
            self._size_bytes += record.size_bytes
            while len(self.records) > 1 and (
                len(self.records) > self._most_records or self._size_bytes > self._most_bytes
            ):
                oldest = self.records.popleft()
                self._size_bytes -= oldest.size_bytes
                self.dropped_until[oldest.partition] = oldest.offset + 1
                self.dropped += 1

    def take(self) -> list[Record]:
        taken = list(self.records)
        self.records.clear()
        self._size_bytes = 0
        return taken


FIELDS = ("any", "key", "value", "header", "json")
LARGEST_SHOWN = 200_000  # characters of a document
COMPARISONS = ("contains", "equals", "differs", "greater", "less", "exists")


class RecordFilter(NamedTuple):
    """`name` is that of a header, `path` a JSON path into the value. Text is compared without regard to case."""

    field: str = "any"
    comparison: str = "contains"
    text: str = ""
    name: str = ""
    path: json_path.JsonPath = ()

    @property
    def is_active(self) -> bool:
        return bool(self.text) or (self.comparison == "exists" and self.field in ("header", "json"))

    def matches(self, record: Record) -> bool:
        if not self.is_active:
            return True
        values = self._values(record)
        if self.comparison == "differs":  # none of them is equal
            return bool(values) and all(self._holds(value) for value in values)
        return any(self._holds(value) for value in values)

    def _values(self, record: Record) -> list[Any]:
        if self.field == "key":
            return self._texts(record.key)
        if self.field == "value":
            return self._texts(record.value)
        if self.field == "header":
            found = [value for name, value in record.headers if not self.name or name == self.name]
            return [text for value in found for text in self._texts(value)]
        if self.field == "json":
            document = json_path.NOT_JSON if record.value is None else json_path.parse_json(record.value)
            is_json = document is not json_path.NOT_JSON
            return [found.value for found in json_path.locations(document, self.path)] if is_json else []
        found = [record.key, record.value, *(value for _name, value in record.headers)]
        return [text for value in found for text in self._texts(value)]

    def _texts(self, value: bytes | None) -> list[str]:
        """The text, and that of JSON as it is shown: with characters in place of their escapes (`\\u00fc`), and spaces
        after colons. Other JSON is not parsed: parsing takes longer than all other steps of a search."""
        if value is None:
            return [""]
        text = value.decode(errors="replace")
        if "\\" not in text and ": " not in self.text:
            return [text]
        document = json_path.parse_json(value)
        with contextlib.suppress(RecursionError):  # nested too deeply to be indented
            return [text] if document is json_path.NOT_JSON else [text, json_path.indent_json(document, LARGEST_SHOWN)]
        return [text]

    def _holds(self, value: Any) -> bool:
        if self.comparison == "exists":
            return True
        text = _as_text(value).lower()
        wanted = self.text.lower()
        if self.comparison == "contains":
            return wanted in text
        if self.comparison in ("greater", "less"):
            try:
                number, limit = float(text), float(wanted)
            except ValueError:
                return False
            return number > limit if self.comparison == "greater" else number < limit
        return (text == wanted) == (self.comparison == "equals")


def parse_filter(field: str, comparison: str, text: str, name: str) -> RecordFilter:
    """PathError for an invalid JSON path."""
    if field not in FIELDS or comparison not in COMPARISONS:
        raise json_path.PathError(f"there is no filter {field[:20]!r} {comparison[:20]!r}")
    path = json_path.parse_path(name or "$") if field == "json" else ()
    return RecordFilter(field, comparison, text, name, path)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""
