"""One page of a long list; and the addresses of older and newer pages of records. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.console.cluster.records import PageRead, Reading

T = TypeVar("T")
R = TypeVar("R")
PAGE_ROWS = 50
MOST_OFFSETS = 200  # in an address
TOO_MANY = f"More than {MOST_OFFSETS} partitions have records: choose one for older and newer pages."
NO_FIELDS: Mapping[str, str] = {}


def has_words(text: str, search: str) -> bool:
    """Whether a text has all words of a search, in any case."""
    return all(word in text.lower() for word in search.lower().split())


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    rows: Sequence[T]
    number: int  # the first page is 1
    pages: int
    total: int

    def with_rows(self, rows: Sequence[R]) -> Page[R]:
        return Page(rows, self.number, self.pages, self.total)

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_ROWS + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1 if self.rows else 0


def page_of(rows: Sequence[T], number: int) -> Page[T]:
    """The page with this number, or the nearest that exists."""
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    number = min(max(number, 1), pages)
    return Page(rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS], number, pages, len(rows))


class PageLinks(NamedTuple):
    """The fields of the addresses; empty where there is no such page."""

    older: Mapping[str, str] = NO_FIELDS
    newer: Mapping[str, str] = NO_FIELDS
    note: str = ""


class RecordAddress(NamedTuple):
    """`form` is that of the value: auto, json, text or hex."""

    topic: str
    partition: int
    offset: int
    form: str = "auto"

    def address(self, page: str = "") -> str:
        """Of the record itself, or of a page below: `/previous`, `/next`, or `/json` and other parts of it."""
        fields = {"partition": self.partition, "offset": self.offset}
        form = {} if self.form == "auto" else {"format": self.form}
        return f"/topics/{quote(self.topic, safe='')}/record{page}?{urlencode(fields | form)}"


def page_links(
    reading: Reading, page: PageRead, starts: Mapping[int, int], ends: Mapping[int, int], *, is_newest_first: bool
) -> PageLinks:
    """`starts` and `ends` are those of the partitions. The neighbours have the same order of rows."""
    has_more_behind = not page.is_over
    if reading.is_backward:
        has_more_before = reading.start == "before" and any(
            offset < ends.get(partition, 0) for partition, offset in page.began.items()
        )
        has_older, before, has_newer, after = has_more_behind, page.ended, has_more_before, page.began
    else:
        has_more_before = any(offset > starts.get(partition, 0) for partition, offset in page.began.items())
        has_older, before, has_newer, after = has_more_before, page.began, has_more_behind, page.ended
    if (has_older or has_newer) and reading.partition is None and _named({**before, **after}) > MOST_OFFSETS:
        return PageLinks(note=TOO_MANY)
    order = {"order": "newest" if is_newest_first else "oldest"}
    return PageLinks(
        {"start": "before", "at": _text(reading, before)} | order if has_older else NO_FIELDS,
        {"start": "offset", "at": _text(reading, after)} | order if has_newer else NO_FIELDS,
    )


def further_search(reading: Reading, rest: Mapping[int, int]) -> Mapping[str, str]:
    """The fields of a search that goes on where one has stopped; empty if it has not, or if they are too many."""
    if not rest or (reading.partition is None and _named(rest) > MOST_OFFSETS):
        return NO_FIELDS
    return {"start": "before" if reading.is_backward else "offset", "at": _text(reading, rest)}


def _named(offsets: Mapping[int, int]) -> int:
    return sum(offset > 0 for offset in offsets.values())


def _text(reading: Reading, offsets: Mapping[int, int]) -> str:
    if reading.partition is not None:
        return str(offsets.get(reading.partition, 0))
    named = {partition: offset for partition, offset in sorted(offsets.items()) if offset}
    return ",".join(f"{partition}:{offset}" for partition, offset in named.items()) or "0:0"
