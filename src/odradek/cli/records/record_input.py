"""Input of records for `odradek produce`: lines split by a format string, or one JSON object per line."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.cli.framework.parameter_types import readable
from odradek.cli.records.format_string import FormatError, parse_format
from odradek.conventions.figures import INT32_MAX, INT64_MAX, parse_time_ms

INPUT_VERBS = "kvshpT"
LONGEST_NUMBER = 40  # digits, leading zeros included
_PATTERNS = {"p": rb"\d+", "T": rb"[^\s]+?"}


class InputError(ValueError):
    """A line that is not a record; the message says why."""


@dataclass(slots=True)
class InputRecord:
    """A record to be written. Partition and timestamp are chosen by the client if they are None."""

    value: bytes | None = None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


LineReader = Callable[[bytes], InputRecord]


def line_reader(input_format: str) -> LineReader:
    """The reader of lines for a format: `json`, or a format string; FormatError if it is invalid."""
    return read_json_line if input_format == "json" else format_reader(input_format)


def format_reader(input_format: str) -> LineReader:
    r"""A reader of lines such as `%k\t%v`: a verb takes the text up to the next literal, the last verb the rest."""
    pieces = parse_format(input_format.removesuffix("\\n"), INPUT_VERBS)
    verbs = ["v" if piece == "s" else piece for piece in pieces if isinstance(piece, str)]
    if not verbs or len(set(verbs)) != len(verbs):
        raise FormatError("a format takes each of %k, %v, %h, %p, %T at most once, and at least one of them")
    if any(isinstance(a, str) and isinstance(b, str) for a, b in itertools.pairwise(pieces)):
        raise FormatError("two verbs need a separator between them")
    if verbs == ["v"] and len(pieces) == 1:
        return lambda line: InputRecord(value=line)
    groups = (
        re.escape(piece) if isinstance(piece, bytes) else b"(" + _PATTERNS.get(piece, b".*?") + b")" for piece in pieces
    )
    pattern = re.compile(b"".join(groups), re.DOTALL)

    def read(line: bytes) -> InputRecord:
        match = pattern.fullmatch(line)
        if match is None:
            raise InputError(f"it does not match the format {readable(input_format)}")
        record = InputRecord()
        for verb, text in zip(verbs, match.groups(), strict=True):
            set_part(record, verb, text)
        return record

    return read


def set_part(record: InputRecord, verb: str, text: bytes) -> None:
    if verb == "v":
        record.value = text
    elif verb == "k":
        record.key = text
    elif verb == "h":
        record.headers = parse_headers(text)
    elif verb == "p":
        record.partition = read_partition(text.decode())
    else:
        record.timestamp_ms = read_timestamp(text.decode(errors="replace"))


def parse_headers(text: bytes) -> list[tuple[str, bytes | None]]:
    """`a=1,b=2` as `consume` writes headers; a name without `=` has no value."""
    headers: list[tuple[str, bytes | None]] = []
    for part in text.split(b",") if text else []:
        name, equals, value = part.partition(b"=")
        try:
            headers.append((name.decode(), value if equals else None))
        except UnicodeDecodeError:
            raise InputError(f"{name!r} is no header name: it is not UTF-8") from None
    return headers


def read_partition(text: str) -> int:
    if len(text) > LONGEST_NUMBER or int(text) > INT32_MAX:
        raise InputError(f"{shortened(text)} is not a partition (0 to {INT32_MAX})")
    return int(text)


def read_timestamp(value: object) -> int:
    try:
        timestamp_ms = (
            value
            if isinstance(value, int) and not isinstance(value, bool)
            else parse_time_ms(str(value), int(time.time() * 1000))
        )
    except (ValueError, OverflowError):
        raise InputError(f"{shortened(repr(value))} is not a time (ISO, or milliseconds since the epoch)") from None
    if not 0 <= timestamp_ms <= INT64_MAX:
        raise InputError(f"{shortened(repr(value))} is not a time that a log can hold (0 to {INT64_MAX} ms)")
    return timestamp_ms


def shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


JSON_FIELDS = frozenset(
    {"key", "value", "key_encoding", "value_encoding", "headers", "partition", "timestamp", "timestamp_type"}
    | {"topic", "offset"}
)  # the last ones are what `consume --format json` adds: accepted, and left to the command line and the broker


def read_json_line(line: bytes) -> InputRecord:
    """An object with `value` and optionally `key`, `headers`, `partition`, `timestamp`; as `consume` writes it."""
    try:
        fields = json.loads(line)
    except UnicodeDecodeError:
        raise InputError("it is not JSON: it is not UTF-8") from None
    except ValueError as error:
        raise InputError(f"it is not JSON: {str(error).split(';', maxsplit=1)[0]}") from None
    except RecursionError:
        raise InputError("its JSON is nested too deeply") from None
    if not isinstance(fields, dict):
        raise InputError("it is not a JSON object with a value")
    unknown = fields.keys() - JSON_FIELDS
    if unknown:
        raise InputError(f"{min(unknown)!r} is not a field of a record ({', '.join(sorted(JSON_FIELDS))})")
    partition = fields.get("partition")
    if partition is not None and (type(partition) is not int or not 0 <= partition <= INT32_MAX):
        raise InputError(f"{shortened(json.dumps(partition))} is not a partition (0 to {INT32_MAX})")
    timestamp = fields.get("timestamp")
    return InputRecord(
        value=json_bytes(fields.get("value"), fields.get("value_encoding")),
        key=json_bytes(fields.get("key"), fields.get("key_encoding")),
        headers=json_headers(fields.get("headers") or []),
        partition=partition,
        timestamp_ms=None if timestamp is None else read_timestamp(timestamp),
    )


def json_bytes(value: Any, encoding: object = None) -> bytes | None:
    """A string as UTF-8, base64 where it says so, any other JSON value as its own text."""
    if value is None:
        return None
    if encoding == "base64":
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise InputError(f"{shortened(repr(value))} is not base64") from None
    if encoding is not None:
        raise InputError(f"{encoding!r} is not an encoding; there is base64")
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise InputError("its JSON is nested too deeply") from None
    return utf8(text)


def utf8(text: str) -> bytes:
    r"""JSON may write half of a surrogate pair, `"\ud800"`, which no UTF-8 stands for."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise InputError(f"{half} alone is no character; write bytes that are not UTF-8 as base64") from None


def json_headers(headers: Any) -> list[tuple[str, bytes | None]]:
    """A list of {"key", "value"} objects, or one object of names and values."""
    if isinstance(headers, dict):
        return [(header_name(name), json_bytes(value)) for name, value in headers.items()]
    if isinstance(headers, list) and all(isinstance(h, dict) and isinstance(h.get("key"), str) for h in headers):
        return [(header_name(h["key"]), json_bytes(h.get("value"), h.get("value_encoding"))) for h in headers]
    raise InputError('headers are [{"key": "a", "value": "1"}] or {"a": "1"}')


def header_name(name: str) -> str:
    utf8(name)
    return name
