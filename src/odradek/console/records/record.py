"""A record as the console handles it: bytes, with the partition and the offset that they were read from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from odradek.record_text import text_fields

ROW_CHARACTERS = 240  # of the value in a row of a table
KEY_CHARACTERS = 60
CHARACTER_BYTES = 4  # at most, in UTF-8


@dataclass(frozen=True, slots=True)
class Record:
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
    return replace(
        record,
        key=None if record.key is None else record.key[: KEY_CHARACTERS * CHARACTER_BYTES + 1],
        value=None if record.value is None else record.value[: ROW_CHARACTERS * CHARACTER_BYTES + 1],
        headers=(("…", None),) * len(record.headers),
    )


def json_line(record: Record) -> bytes:
    """The line that `odradek consume --format json` prints, without the type of the timestamp."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        **text_fields("key", record.key),
        **text_fields("value", record.value),
        "headers": [{"key": name, **text_fields("value", value)} for name, value in record.headers],
    }
    return _line(fields)


def incomplete_line(reason: str, records: int) -> bytes:
    """The last line of an export that lacks records."""
    return _line({"incomplete": reason, "records": records})


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
