"""Output of records by `odradek consume`: a format string like that of kcat, or one JSON object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.cli.records.format_string import Piece, parse_format
from odradek.conventions.figures import iso_text
from odradek.record_text import text_fields

if TYPE_CHECKING:
    from odradek.admin.records.fetched_batches import FetchedRecord

OUTPUT_VERBS = "tpokvshTDKS"
# C0 without newline and tab, C1, and characters that change the direction of the text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_encode_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode  # `json.dumps` would build one each time
TIMESTAMP_TYPES = {0: None, 1: "create_time", 2: "log_append_time"}

RecordWriter = Callable[["FetchedRecord"], bytes]


def format_writer(output_format: str, null_marker: bytes = b"", *, is_for_terminal: bool = False) -> RecordWriter:
    """A function that renders a record by a format string; FormatError if it is invalid."""
    pieces = parse_format(output_format, OUTPUT_VERBS)
    if pieces == ["v", b"\n"] and not null_marker and not is_for_terminal:
        return lambda record: (record.value() or b"") + b"\n"
    parts = [_part(piece, null_marker, escape_controls if is_for_terminal else bytes) for piece in pieces]
    return lambda record: b"".join([part(record) for part in parts])


def escape_controls(data: bytes) -> bytes:
    """Text for a terminal, which takes control characters of a record for commands. Newlines and tabs stay."""
    return _CONTROLS.sub(_escaped, data.decode(errors="backslashreplace")).encode()


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _part(piece: Piece, null_marker: bytes, shown: Callable[[bytes], bytes]) -> RecordWriter:
    if isinstance(piece, bytes):
        return lambda _record: piece

    def or_null(value: bytes | None) -> bytes:
        return null_marker if value is None else shown(value)

    writers: dict[str, RecordWriter] = {
        "t": lambda record: record.topic().encode(),
        "p": lambda record: b"%d" % record.partition(),
        "o": lambda record: b"%d" % record.offset(),
        "k": lambda record: or_null(record.key()),
        "v": lambda record: or_null(record.value()),
        "s": lambda record: or_null(record.value()),
        "h": lambda record: shown(b",".join(_header_text(name, value) for name, value in record.headers())),
        "T": lambda record: b"%d" % record.timestamp()[1],
        "D": lambda record: iso_text(record.timestamp()[1]).encode(),
        "K": lambda record: b"%d" % _length(record.key()),
        "S": lambda record: b"%d" % _length(record.value()),
    }
    return writers[piece]


def _length(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _header_text(name: str, value: bytes | None) -> bytes:
    return name.encode() if value is None else name.encode() + b"=" + value


def json_writer(record: FetchedRecord) -> bytes:
    """One line: strings where the bytes are UTF-8, base64 (and `..._encoding`) where they are not."""
    kind, timestamp_ms = record.timestamp()
    fields: dict[str, Any] = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": timestamp_ms if kind else None,
        "timestamp_type": TIMESTAMP_TYPES.get(kind),
    }
    fields.update(text_fields("key", record.key()))
    fields.update(text_fields("value", record.value()))
    fields["headers"] = [{"key": name, **text_fields("value", value)} for name, value in record.headers()]
    return _encode_json(fields).encode() + b"\n"


def terminal_json_writer(record: FetchedRecord) -> bytes:
    """The same, with escapes for the control characters that JSON allows in strings."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json_writer(record)[:-1].decode()).encode() + b"\n"
