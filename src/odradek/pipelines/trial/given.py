"""Converts given rows to the form in which Spark reads them, records of bytes or rows as JSON, and checks without Spark
that their values fit the types of columns, as Spark reads them."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.avro import HEADER_BYTES, MAGIC
from odradek.pipelines.definition.column_types import Array, Decimal, Map, Primitive, Struct
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import Encoding, parse_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from odradek.pipelines.definition.column_types import Column, ColumnType
    from odradek.pipelines.definition.model import Pipeline, RecordSchema, Source
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.trial.model import GivenBatch, PlacedValue

# The default timestamp of a record.
WRITTEN_AT = datetime(2000, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RECORD_KEYS = ("_key", "_value", "_headers", "_timestamp", "_topic", "_partition", "_offset")
BITS = {"TINYINT": 8, "BYTE": 8, "SMALLINT": 16, "SHORT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64, "LONG": 64}
FRACTIONS = frozenset(("FLOAT", "REAL", "DOUBLE"))
NO_NUMBERS = frozenset(("NaN", "INF", "+INF", "-INF", "Infinity", "+Infinity", "-Infinity"))
TIMES = frozenset(("TIMESTAMP", "TIMESTAMP_LTZ"))  # a number is a time in seconds since 1970
DATES = frozenset(("TIMESTAMP_NTZ", "DATE"))
BEGINNING_OF_A_TIME = re.compile(r"\s*([+-]?\d{4,7}\b|T?\d?\d:)")


@dataclass(frozen=True, slots=True)
class GivenRecord:
    """A record of a topic."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp: datetime
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of Spark's Kafka source."""
        headers = [{"key": name, "value": value} for name, value in self.headers]
        return {**asdict(self), "timestampType": 0, "headers": headers}


def records_of(
    rows: Sequence[PlacedValue],
    source: Source,
    origin: TopicOrigin,
    problems: Problems,
    ends: dict[tuple[str, int], int] | None = None,
) -> list[GivenRecord]:
    """Converts rows to records; offsets are consecutive in each partition unless they are given.

    `ends` has the next offset by topic and partition, and is changed.
    """
    ends = {} if ends is None else ends
    topic = origin.topics[0] if origin.topics else source.name
    made = []
    for row in rows:
        maker = RecordMaker(row, source, problems)
        place = maker.text("_topic") or topic, maker.number("_partition") or 0
        given_offset = maker.number("_offset")
        offset = ends.get(place, 0) if given_offset is None else given_offset
        ends[place] = offset + 1
        made.append(GivenRecord(maker.encoded("_key"), maker.value(), *place, offset, maker.moment(), maker.headers()))
    return made


class RecordMaker:
    """Converts one row of a test; names with a leading `_` belong to the record, the others are fields of its value."""

    def __init__(self, row: PlacedValue, source: Source, problems: Problems) -> None:
        self._source = source
        self._problems = problems
        self._place: Place = row.place
        fields: Mapping[str, Any] = row.value if isinstance(row.value, dict) else {"_value": row.value}
        own = {name: value for name, value in fields.items() if name in RECORD_KEYS}
        columns = {name: value for name, value in fields.items() if name not in RECORD_KEYS}
        if columns and "_value" in own:
            self._wrong(f"the record has both _value and fields such as '{next(iter(columns))}'", "keep one of the two")
        self._own, self._columns = own, columns

    def _wrong(self, message: str, hint: str = "") -> None:
        self._problems.error(self._place, message, hint)

    def value(self) -> bytes | None:
        """The record's value: text and bytes unchanged, anything else in the format of the source."""
        if "_value" in self._own:
            return self.encoded("_value")
        if self._source.format.encoding is Encoding.AVRO:
            return self._avro()
        schema = self._source.format.schema
        found = None if schema is None else mismatch(self._columns, schema.columns)
        if found is not None:
            self._wrong(
                f"the row does not fit the schema of source '{self._source.name}': {found}",
                'give the record as text, if it is not to fit: \'{"field": "value"}\'',
            )
        return json.dumps(self._columns).encode()

    def _avro(self) -> bytes | None:
        import fastavro  # noqa: PLC0415 - records in Avro only

        schema = self._source.format.schema
        assert schema is not None
        text, header = written_with(schema)
        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, json.loads(text), self._columns)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._wrong(
                f"the row does not match the Avro schema: {error}", "use `_value: {hex: …}` for invalid records"
            )
            return None
        return header + stream.getvalue()

    def encoded(self, name: str) -> bytes | None:
        content = self._own.get(name)
        if content is None:
            return None
        if not is_bytes(content):
            return text_or_json(content)
        ((kind, text),) = content.items()
        try:
            return bytes.fromhex(text) if kind == "hex" else base64.b64decode(text, validate=True)
        except ValueError:
            self._wrong(f"{kind} of {name} is invalid: {text}")
            return None

    def text(self, name: str) -> str | None:
        content = self._own.get(name)
        if content is None or isinstance(content, str):
            return content
        self._wrong(f"{name} must be text, not {content}", "quote it")
        return None

    def number(self, name: str) -> int | None:
        content = self._own.get(name)
        if content is None or (type(content) is int and content >= 0):
            return content
        self._wrong(f"{name} must be an integer, not {content}")
        return None

    def moment(self) -> datetime:
        content = self._own.get("_timestamp")
        if content is None:
            return WRITTEN_AT
        time_ms = content if type(content) is int else parse_moment(content) if isinstance(content, str) else None
        if time_ms is None:
            self._wrong(
                f"_timestamp must be a time, not {content}", "write 2026-01-31 12:00:00, or milliseconds since 1970"
            )
            return WRITTEN_AT
        return EPOCH + timedelta(milliseconds=time_ms)

    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        content = self._own.get("_headers", {})
        if not isinstance(content, dict):
            self._wrong("_headers must be a mapping of names to text")
            return ()
        return tuple((name, None if value is None else text_or_json(value)) for name, value in content.items())


def written_with(schema: RecordSchema) -> tuple[str, bytes]:
    """The Avro schema with which a given row is written, and the header for it: the writer's of the highest id."""
    if schema.writers is not None:
        number = max(schema.writers)
        return schema.writers[number], MAGIC + number.to_bytes(HEADER_BYTES - 1)
    return schema.avro or "{}", b""


def text_or_json(content: Any) -> bytes:
    return content.encode() if isinstance(content, str) else json.dumps(content).encode()


def is_bytes(content: Any) -> bool:
    """Whether the value is bytes, written as `{hex: …}` or `{base64: …}`."""
    if not isinstance(content, dict) or len(content) != 1:
        return False
    ((kind, text),) = content.items()
    return kind in {"hex", "base64"} and isinstance(text, str)


def check_columns(rows: Sequence[PlacedValue], columns: Sequence[Column], what: str, problems: Problems) -> None:
    """Checks that rows that are not records have existing columns, with values of their types."""
    names = [each.name for each in columns]
    known = {name.lower() for name in names}
    for row in rows:
        if not isinstance(row.value, dict):
            problems.error(row.place, f"a row of {what} must be a mapping of columns", "write - {column: value}")
            continue
        for name in row.value:
            if name.lower() not in known:
                problems.error(row.place, f"{what} has no column '{name}'", suggestion(name, names, what="it has"))
        found = mismatch(row.value, columns)
        if found is not None:
            problems.error(row.place, f"the row does not fit the columns of {what}: {found}")


def check_given(batches: Sequence[GivenBatch], pipeline: Pipeline, problems: Problems) -> None:
    """Checks given rows without Spark."""
    for source in pipeline.sources:
        rows = [row for each in batches for row in each.rows.get(source.name, ())]
        schema = source.format.schema
        if isinstance(source.origin, TopicOrigin):
            records_of(rows, source, source.origin, problems)
        elif schema is not None:
            check_columns(rows, schema.columns, f"source '{source.name}'", problems)


def mismatch(fields: dict[str, Any], columns: Iterable[Column]) -> str | None:
    """The first field that does not fit its column, as in the reason of a dead letter; fields that are missing, and
    those that no column reads, fit."""
    return next(_mismatches(fields, columns, ""), None)


def _mismatches(fields: dict[str, Any], columns: Iterable[Column], prefix: str) -> Iterator[str]:
    for column in columns:
        value, path = fields.get(column.name), f"{prefix}{column.name}"
        if isinstance(column.type, Struct) and isinstance(value, dict):
            yield from _mismatches(value, column.type.fields, f"{path}.")
        elif value is not None and not _fits(value, column.type):
            yield f"field {path}: expected {column.type.ddl}, found {json.dumps(value, ensure_ascii=False)}"


def _fits(value: Any, kind: ColumnType) -> bool:
    if value is None:
        return True
    match kind:
        case Struct():
            return isinstance(value, dict) and mismatch(value, kind.fields) is None
        case Array():
            return isinstance(value, list) and all(_fits(each, kind.element) for each in value)
        case Map():
            return isinstance(value, dict) and all(_fits(each, kind.value) for each in value.values())
        case Decimal():
            return is_number(value) or isinstance(value, str)
        case Primitive():
            return _fits_primitive(value, kind.name)


def _fits_primitive(value: Any, name: str) -> bool:
    if name in BITS:
        return type(value) is int and -(1 << BITS[name] - 1) <= value < 1 << BITS[name] - 1
    if name in FRACTIONS:
        return is_number(value) or (isinstance(value, str) and value in NO_NUMBERS)
    if name == "BOOLEAN":
        return isinstance(value, bool)
    if name in TIMES or name in DATES:
        is_text = isinstance(value, str) and BEGINNING_OF_A_TIME.match(value) is not None
        return is_text or (name in TIMES and type(value) is int)
    return name != "BINARY" or isinstance(value, str)  # text takes any value, as it is written


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
