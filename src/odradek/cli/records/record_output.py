"""Output of records by `odradek consume`: a format string like that of kcat, or one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from odradek.cli.framework.times import iso_text
from odradek.cli.records.format_string import Piece, parse_format
from odradek.record_text import text_fields

if TYPE_CHECKING:
    from confluent_kafka import Message

OUTPUT_VERBS = "tpokvshTDKS"
TIMESTAMP_TYPES = {0: None, 1: "create_time", 2: "log_append_time"}

RecordWriter = Callable[["Message"], bytes]


def format_writer(output_format: str, null_marker: bytes = b"") -> RecordWriter:
    """A function that renders a record by a format string; FormatError if it is invalid."""
    pieces = parse_format(output_format, OUTPUT_VERBS)
    if pieces == ["v", b"\n"] and not null_marker:
        return lambda message: (_bytes(message.value()) or b"") + b"\n"
    parts = [_part(piece, null_marker) for piece in pieces]
    return lambda message: b"".join([part(message) for part in parts])


def _part(piece: Piece, null_marker: bytes) -> RecordWriter:
    if isinstance(piece, bytes):
        return lambda _message: piece

    def or_null(value: bytes | None) -> bytes:
        return null_marker if value is None else value

    writers: dict[str, RecordWriter] = {
        "t": lambda message: str(message.topic()).encode(),
        "p": lambda message: b"%d" % cast("int", message.partition()),
        "o": lambda message: b"%d" % cast("int", message.offset()),
        "k": lambda message: or_null(_bytes(message.key())),
        "v": lambda message: or_null(_bytes(message.value())),
        "s": lambda message: or_null(_bytes(message.value())),
        "h": lambda message: b",".join(_header_text(name, value) for name, value in _headers(message)),
        "T": lambda message: b"%d" % _timestamp(message)[1],
        "D": lambda message: iso_text(_timestamp(message)[1]).encode(),
        "K": lambda message: b"%d" % _length(_bytes(message.key())),
        "S": lambda message: b"%d" % _length(_bytes(message.value())),
    }
    return writers[piece]


def _bytes(value: Any) -> bytes | None:
    return cast("bytes | None", value)


def _length(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _timestamp(message: Message) -> tuple[int, int]:
    return message.timestamp()


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    return cast("list[tuple[str, bytes | None]]", message.headers() or [])


def _header_text(name: str, value: bytes | None) -> bytes:
    return name.encode() if value is None else name.encode() + b"=" + value


def json_writer(message: Message) -> bytes:
    """One line: strings where the bytes are UTF-8, base64 (and `..._encoding`) where they are not."""
    kind, timestamp_ms = _timestamp(message)
    fields: dict[str, Any] = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp_ms if kind else None,
        "timestamp_type": TIMESTAMP_TYPES.get(kind),
    }
    fields.update(text_fields("key", _bytes(message.key())))
    fields.update(text_fields("value", _bytes(message.value())))
    fields["headers"] = [{"key": name, **text_fields("value", value)} for name, value in _headers(message)]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
