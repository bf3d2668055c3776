"""Records as they are shown: decoded, coloured, cut to what a row holds, or in full; and the addresses of
older and newer pages. Pure.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from odradek.console.records.json_path import NOT_JSON, indent_json, parse_json
from odradek.console.records.record import CHARACTER_BYTES, KEY_CHARACTERS, ROW_CHARACTERS, Record, RecordFilter
from odradek.console.views.figures import moment
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.console.cluster.records import PageRead, Reading

FULL_CHARACTERS = 200_000
MOST_OFFSETS = 200  # in an address
TOO_MANY = f"More than {MOST_OFFSETS} partitions have records: choose one for older and newer pages."
NO_FIELDS: Mapping[str, str] = {}
HEX_BYTES = 16_384
MOST_HEADERS = 200
CONTROLS = (*range(0x20), *range(0x7F, 0xA0), *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070))
ESCAPES = {code: f"\\u{code:04x}" for code in (*CONTROLS, 0x061C, 0xFEFF) if chr(code) not in "\n\r\t"}
FORMATS = ("auto", "json", "text", "hex")
LONGEST_TEXT = 20_000  # longer documents are shown in one colour: each part is an element of the page
PARTS = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*"(?=:))|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<literal>true|false|null|NaN|-?Infinity)"
)


class Decoded(NamedTuple):
    """`kind` is json, text, hex, empty or null."""

    kind: str
    text: str


def decode(value: bytes | None, form: str = "auto") -> Decoded:
    """JSON is indented. Bytes that are neither JSON nor UTF-8 text are shown in hexadecimal."""
    if value is None:
        return Decoded("null", "null")
    if not value:
        return Decoded("empty", "")
    if form in ("auto", "json"):
        document = parse_json(value)
        if document is not NOT_JSON and (form == "json" or isinstance(document, dict | list)):
            with contextlib.suppress(RecursionError):  # nested too deeply to be indented
                return Decoded("json", cut(indent_json(document, FULL_CHARACTERS + 1)))
    if form != "hex":
        try:
            text = value.decode(errors="strict" if form == "auto" else "replace")
        except UnicodeDecodeError:
            return Decoded("hex", hexadecimal(value))
        if form != "auto" or all(character.isprintable() or character in "\n\r\t" for character in text[:2000]):
            return Decoded("text", cut(text))
    return Decoded("hex", hexadecimal(value))


def cut(text: str) -> str:
    """At most FULL_CHARACTERS, with characters that hide or reorder others as escapes."""
    shown = visible(text[:FULL_CHARACTERS])
    return shown if len(text) <= FULL_CHARACTERS else f"{shown}\n… cut after {FULL_CHARACTERS:,} characters"


def visible(text: str) -> str:
    """Text in which control characters, such as those of terminals and of bidirectional text, are escapes."""
    return text.translate(ESCAPES)


def hexadecimal(value: bytes) -> str:
    """Lines of offset, sixteen bytes, and their ASCII characters."""
    lines = []
    for first in range(0, min(len(value), HEX_BYTES), 16):
        part = value[first : first + 16]
        numbers = " ".join(f"{byte:02x}" for byte in part)
        characters = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
        lines.append(f"{first:06x}  {numbers:<47}  {characters}")
    if len(value) > HEX_BYTES:
        lines.append(f"… {len(value) - HEX_BYTES:,} more bytes")
    return "\n".join(lines)


def one_line(value: bytes | None, characters: int, form: str = "auto") -> Decoded:
    """A value on one line of a table."""
    if value is None:
        return Decoded("null", "null")
    if not value:
        return Decoded("empty", "empty")
    start = value[: characters * CHARACTER_BYTES]
    if form != "hex":
        try:
            text = start.decode(errors="strict" if len(start) == len(value) and form == "auto" else "replace")
        except UnicodeDecodeError:
            return Decoded("hex", start[: characters // 3].hex(" "))
        if form != "auto" or "\ufffd" not in text[:characters]:
            shown = "".join(character if character.isprintable() else "·" for character in text)
            return Decoded("text", shown if len(shown) <= characters else shown[: characters - 1] + "…")
    return Decoded("hex", start[: characters // 3].hex(" "))


class RecordRow(NamedTuple):
    partition: int
    offset: int
    time: str
    key: Decoded
    value: Decoded
    headers: int

    @property
    def position(self) -> str:
        return f"{self.partition}:{self.offset}"


def row(record: Record, form: str = "auto") -> RecordRow:
    key, value = one_line(record.key, KEY_CHARACTERS, form), one_line(record.value, ROW_CHARACTERS, form)
    return RecordRow(record.partition, record.offset, moment(record.timestamp_ms), key, value, len(record.headers))


class RecordDetail(NamedTuple):
    record: Record
    time: str
    key: Decoded
    value: Decoded
    headers: Sequence[tuple[str, Decoded]]


def detail(record: Record, form: str) -> RecordDetail:
    headers = [(visible(name[:400]), one_line(value, 400)) for name, value in record.headers[:MOST_HEADERS]]
    return RecordDetail(record, moment(record.timestamp_ms), decode(record.key), decode(record.value, form), headers)


class CopiedCommand(NamedTuple):
    """`note` says how what the command prints differs from the page."""

    text: str
    note: str = ""


def consume_command(
    address: str, reading: Reading, wanted: RecordFilter, rows: Sequence[RecordRow]
) -> CopiedCommand | None:
    """The command that prints the records of the page, or all that match a filter. None for a page before an offset
    without rows, because `odradek consume` reads forward from the first of them, and for an offset of each partition.
    """
    if reading.offsets and reading.partition is None:
        return None
    words = ["odradek", "consume", reading.topic, "-b", address]
    limit = reading.limit
    if reading.start == "newest" and not wanted.is_active:
        words += ["--last", str(reading.limit)]
    elif reading.start in ("newest", "oldest") or (reading.start == "before" and wanted.is_active):
        words += ["--from-beginning"]
    elif reading.start == "offset":
        words += ["--offset", str(reading.offset_of(reading.partition or 0))]
    elif reading.start == "before":
        if not rows:
            return None
        words += ["--offset", str(min(each.offset for each in rows))]
        limit = len(rows)
    else:
        words += ["--from-time", str(reading.time_ms)]
    if reading.partition is not None:
        words += ["--partition", str(reading.partition)]
    words += ["--until-end", "--keys", "--timestamps", "--offsets"]
    if wanted.is_active:
        return _filtered(words, wanted)
    if reading.partition is None and reading.start == "newest":
        newest = count_text(reading.limit, "record")
        return CopiedCommand(shlex.join(words), f"It prints the newest {newest} of each partition.")
    words += ["--max-records", str(limit)]
    note = f"It prints the first {count_text(limit, 'record')} that arrive, of any partition."
    return CopiedCommand(shlex.join(words), note if reading.partition is None else "")


def _filtered(words: list[str], wanted: RecordFilter) -> CopiedCommand:
    if wanted.comparison != "contains" or wanted.field not in ("any", "key", "value"):
        return CopiedCommand(shlex.join(words), "The filter is not part of the command: it prints all records.")
    if wanted.field == "any":
        words.append("--headers")
        note = "It prints the lines that have the text anywhere."
    else:
        note = f"It prints the lines that have the text anywhere, not in the {wanted.field} only."
    return CopiedCommand(f"{shlex.join(words)} | grep -i -F -- {shlex.quote(wanted.text)}", note)


class JsonPart(NamedTuple):
    kind: str  # name, string, number, literal; empty for the text between them
    text: str


def json_parts(text: str) -> list[JsonPart]:
    """The parts in their order: joined they are the text."""
    if len(text) > LONGEST_TEXT:
        return [JsonPart("", text)]
    parts: list[JsonPart] = []
    end = 0
    for found in PARTS.finditer(text):
        if found.start() > end:
            parts.append(JsonPart("", text[end : found.start()]))
        parts.append(JsonPart(found.lastgroup or "", found[0]))
        end = found.end()
    if end < len(text):
        parts.append(JsonPart("", text[end:]))
    return parts


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
