"""The addresses of older and newer pages of records: the offset in each partition at which they begin. Pure.

A page has the records of each partition between two offsets, so that both neighbours follow from it:
`start=before&at=0:950,1:20` ends before offset 950 of partition 0 and 20 of partition 1. A partition that is not named
has the offset 0: nothing is before it, and everything from it on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from odradek.console.pages.forms import FormError, parse_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.console.cluster.records import PageRead, Reading

MOST_OFFSETS = 200  # in an address
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
TOO_MANY = f"More than {MOST_OFFSETS} partitions have records: choose one for older and newer pages."
NO_FIELDS: Mapping[str, str] = {}


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


def parse_offsets(text: str) -> tuple[int, dict[int, int]]:
    """One offset for all partitions, or offsets by partition. FormError for anything else."""
    if ":" not in text:
        return parse_number(text, "offset", 0, INT64_MAX), {}
    pairs = [each.partition(":") for each in text.split(",")]
    if len(pairs) > MOST_OFFSETS:
        raise FormError(f"offset: at most {MOST_OFFSETS} partitions can be named")
    return 0, {
        parse_number(partition.strip(), "partition", 0, INT32_MAX): parse_number(offset.strip(), "offset", 0, INT64_MAX)
        for partition, _colon, offset in pairs
    }


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
