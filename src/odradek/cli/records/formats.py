"""Records as text, read by `odradek produce` and written by `odradek consume`: format strings like kcat's, and JSON.

Both directions use one parser of format strings, so that `produce -f` can read the output of `consume -f`.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from odradek.admin.records.fetched_batches import FetchedRecord, values_of
from odradek.cli.framework.parameter_types import readable
from odradek.conventions.dataclass import dataclass
from odradek.conventions.figures import INT32_MAX, INT64_MAX, iso_text, parse_time_ms
from odradek.record_text import text_fields

ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "e": b"\x1b", "\\": b"\\"}
_TOKEN = re.compile(
    r"%(?P<verb>.)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.)|(?P<text>[^%\\]+)|(?P<stray>.)", re.DOTALL
)

Piece = bytes | str  # literal text as bytes, a verb as its letter
INPUT_VERBS = "kvshpT"
LONGEST_NUMBER = 40  # digits, leading zeros included
_PATTERNS = {"p": rb"\d+", "T": rb"[^\s]+?"}
JSON_FIELDS = frozenset(
    {"key", "value", "key_encoding", "value_encoding", "headers", "partition", "timestamp", "timestamp_type"}
    | {"topic", "offset"}
)  # the last ones are what `consume --format json` adds: accepted, and left to the command line and the broker
OUTPUT_VERBS = "tpokvshTDKS"
# C0 without newline and tab, C1, and characters that change the direction of the text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TIMESTAMP_TYPES = {0: None, 1: "create_time", 2: "log_append_time"}


class FormatError(ValueError):
    """A format string that cannot be read; the message says which part."""


def parse_format(text: str, verbs: str) -> list[Piece]:
    """The pieces of a format string: literals joined, verbs one by one; FormatError names an unknown verb or escape."""
    pieces: list[Piece] = []

    def add(literal: bytes) -> None:
        if pieces and isinstance(pieces[-1], bytes):
            pieces[-1] += literal
        else:
            pieces.append(literal)

    for match in _TOKEN.finditer(text):
        verb, hexadecimal, escape = match["verb"], match["hex"], match["escape"]
        if verb == "%":
            add(b"%")
        elif verb is not None:
            if verb not in verbs:
                raise FormatError(f"%{verb} is not one of {', '.join('%' + known for known in verbs)}, %%")
            pieces.append(verb)
        elif hexadecimal is not None:
            add(bytes([int(hexadecimal, 16)]))
        elif escape is not None:
            if escape not in ESCAPES:
                raise FormatError(f"\\{escape} is not one of {', '.join(chr(92) + known for known in ESCAPES)}, \\xHH")
            add(ESCAPES[escape])
        elif match["stray"] is not None:
            raise FormatError(f"a single {match['stray']} at the end is incomplete; write it twice")
        else:
            add(match["text"].encode(errors="surrogateescape"))  # keeps bytes that are not UTF-8
    return pieces


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
    groups = [re.escape(each) if isinstance(each, bytes) else b"(%b)" % _PATTERNS.get(each, b".*?") for each in pieces]
    pattern = re.compile(b"".join(groups), re.DOTALL)

    def read(line: bytes) -> InputRecord:
        match = pattern.fullmatch(line)
        if match is None:
            raise InputError(f"it does not match the format {readable(input_format)}")
        record = InputRecord()
        for verb, text in zip(verbs, match.groups(), strict=True):
            name, read_part = PARTS[verb]
            setattr(record, name, read_part(text))
        return record

    return read


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
        timestamp_ms = value if type(value) is int else parse_time_ms(str(value), int(time.time() * 1000))
    except (ValueError, OverflowError):
        raise InputError(f"{shortened(repr(value))} is not a time (ISO, or milliseconds since the epoch)") from None
    if not 0 <= timestamp_ms <= INT64_MAX:
        raise InputError(f"{shortened(repr(value))} is not a time that a log can hold (0 to {INT64_MAX} ms)")
    return timestamp_ms


def shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


PARTS: dict[str, tuple[str, Callable[[bytes], Any]]] = {
    "k": ("key", bytes),
    "v": ("value", bytes),
    "h": ("headers", parse_headers),
    "p": ("partition", lambda text: read_partition(text.decode())),
    "T": ("timestamp_ms", lambda text: read_timestamp(text.decode(errors="replace"))),
}


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


_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # json.dumps builds one per call

RecordWriter = Callable[["Sequence[FetchedRecord]"], bytes]  # of the records of a batch
Part = Callable[["FetchedRecord"], bytes]


def format_writer(output_format: str, null_marker: bytes = b"", *, is_for_terminal: bool = False) -> RecordWriter:
    """A function that renders records by a format string; FormatError if it is invalid."""
    pieces = parse_format(output_format, OUTPUT_VERBS)
    if pieces == ["v", b"\n"] and not null_marker and not is_for_terminal:
        return lambda records: b"\n".join([*values_of(records), b""])
    parts = [_part(piece, null_marker, escape_controls if is_for_terminal else bytes) for piece in pieces]
    return lambda records: b"".join([part(record) for record in records for part in parts])


def escape_controls(data: bytes) -> bytes:
    """Text for a terminal, which takes control characters of a record for commands. Newlines and tabs stay."""
    text = data.decode(errors="backslashreplace")
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text).encode()


def _part(piece: Piece, null_marker: bytes, shown: Callable[[bytes], bytes]) -> Part:
    if isinstance(piece, bytes):
        return lambda _record: piece

    def or_null(value: bytes | None) -> bytes:
        return null_marker if value is None else shown(value)

    def headers_text(record: FetchedRecord) -> bytes:
        pairs = [name.encode() if value is None else name.encode() + b"=" + value for name, value in record.headers()]
        return shown(b",".join(pairs))

    parts: dict[str, Part] = {
        "t": lambda record: record.topic().encode(),
        "p": lambda record: b"%d" % record.partition(),
        "o": lambda record: b"%d" % record.offset(),
        "k": lambda record: or_null(record.key()),
        "v": lambda record: or_null(record.value()),
        "s": lambda record: or_null(record.value()),
        "h": headers_text,
        "T": lambda record: b"%d" % record.timestamp()[1],
        "D": lambda record: iso_text(record.timestamp()[1]).encode(),
        "K": lambda record: _size_text(record.key()),
        "S": lambda record: _size_text(record.value()),
    }
    return parts[piece]


def _size_text(value: bytes | None) -> bytes:
    return b"-1" if value is None else b"%d" % len(value)


def json_writer(records: Sequence[FetchedRecord]) -> bytes:
    """A line for each record: strings where the bytes are UTF-8, base64 (and `..._encoding`) where they are not."""
    return "".join([_encode_json(_json_fields(record)) + "\n" for record in records]).encode()


def _json_fields(record: FetchedRecord) -> dict[str, Any]:
    kind, timestamp_ms = record.timestamp()
    return {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": timestamp_ms if kind else None,
        "timestamp_type": TIMESTAMP_TYPES.get(kind),
        **text_fields("key", record.key()),
        **text_fields("value", record.value()),
        "headers": [{"key": name, **text_fields("value", value)} for name, value in record.headers()],
    }


def terminal_json_writer(records: Sequence[FetchedRecord]) -> bytes:
    """The same, with escapes for the control characters that JSON allows in strings."""
    text = json_writer(records).decode()
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
