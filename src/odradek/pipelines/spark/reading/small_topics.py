"""Reads small topics into Arrow tables without Spark, with the columns and types that Spark's reader gives them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Map, Primitive, Struct
from odradek.pipelines.definition.json_values import (
    STRING,
    Misfit,
    Uncertain,
    converted,
    inferred_type,
    json_object,
    merged_types,
    settled_type,
)
from odradek.pipelines.definition.model import RECORD_COLUMNS
from odradek.pipelines.definition.vocabulary import Delivery, Encoding, Tombstones
from odradek.pipelines.operating.client_settings import librdkafka_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from confluent_kafka import Message

    from odradek.pipelines.definition.model import Pipeline, Source, TopicOrigin

    Row = dict[str, Any]

MOST_RECORDS, MOST_BYTES = 100_000, 64 * 1024 * 1024
AT_ONCE, TURN_S = 10_000, 0.05  # a turn takes so long, unless so many records have arrived
WAIT_S = 10.0
INFERRED_FROM = 1000  # records
RAW_COLUMNS = (
    Column("key", STRING), Column("value", STRING), Column("timestamp", Primitive("TIMESTAMP")),
    Column("partition", Primitive("INT")), Column("offset", Primitive("BIGINT")),
    Column("headers", Map(STRING, STRING)),
)  # fmt: skip
ARROW = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32(), "SMALLINT": pa.int16(), "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(), "BINARY": pa.binary(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us", "UTC"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Records:
    """Records of topics, in the order of their partitions and offsets."""

    messages: Sequence[Message]

    def raw(self) -> pa.Table:
        """Keys and values as text."""
        rows = [
            {
                "key": text_of(each.key()), "value": text_of(each.value()), "timestamp": moment_of(each),
                "partition": each.partition(), "offset": each.offset(), "headers": headers_of(each),
            }
            for each in self.messages
        ]  # fmt: skip
        return arrow_table(rows, RAW_COLUMNS)

    def decoded(self, source: Source) -> pa.Table:
        """The columns of a source, and those of the record itself; records that do not fit the schema are left out."""
        decode, rows = decoder_of(source), []
        for each in self.messages:
            try:
                row = decode(each.value())
            except Misfit:
                continue
            headers = [{"key": key, "value": value} for key, value in header_pairs(each)]
            rows.append({
                **row, "_key": each.key(), "_value": each.value(), "_headers": headers or None,
                "_timestamp": moment_of(each), "_topic": each.topic(), "_partition": each.partition(),
                "_offset": each.offset(),
            })  # fmt: skip
        return arrow_table(rows, (*columns_of(source), *RECORD_COLUMNS))

    def inferred(self, topic: str) -> tuple[Column, ...]:
        """The columns of the first records that are JSON objects."""
        found: list[ColumnType] = []
        for each in self.messages[:INFERRED_FROM]:
            try:
                found.append(inferred_type(json_object(each.value() or b"")))
            except Misfit:
                continue
        kind = settled_type(merged_types(*found))
        if not isinstance(kind, Struct):
            raise Uncertain(f"topic {topic} has no records that are JSON objects")
        return kind.fields


def read_records(pipeline: Pipeline, origin: TopicOrigin, partitions: Mapping[str, int]) -> Records:
    """All records up to the present ends of the topics."""
    names = ", ".join(partitions)
    client: dict[str, Any] = {
        "isolation.level": "read_committed" if pipeline.delivery is Delivery.EXACTLY_ONCE else "read_uncommitted",
        **librdkafka_settings({**pipeline.kafka, **origin.kafka}),
        "bootstrap.servers": origin.bootstrap_servers or pipeline.bootstrap_servers, "group.id": "odradek-sql",
        "enable.auto.commit": False, "auto.offset.reset": "earliest", "enable.partition.eof": True, "log_level": 0,
    }  # fmt: skip
    consumer = Consumer(client)
    try:
        places = [TopicPartition(name, index) for name, count in partitions.items() for index in range(count)]
        spans = {(each.topic, each.partition): consumer.get_watermark_offsets(each, timeout=WAIT_S) for each in places}
        records = sum(end - start for start, end in spans.values())
        if records > MOST_RECORDS:
            raise Uncertain(f"{names} has {records:,} records, more than {MOST_RECORDS:,}")
        ends = {place: end for place, (start, end) in spans.items() if end > start}
        consumer.assign([TopicPartition(name, index, OFFSET_BEGINNING) for name, index in ends])
        return Records(
            sorted(read_to(consumer, ends), key=lambda each: (each.topic(), each.partition(), each.offset()))
        )
    except KafkaException as error:
        raise Uncertain(f"{names} cannot be read: {error.args[0].str()}") from None
    finally:
        consumer.close()


def read_to(consumer: Consumer, ends: Mapping[tuple[str, int], int]) -> list[Message]:
    """The records before `ends`. A partition that ends with marks of transactions reports its end itself."""
    left, found, size = set(ends), list[Any](), 0
    last_at = time.monotonic()
    while left:
        batch: list[Any] = consumer.consume(AT_ONCE, timeout=TURN_S)
        last_at = time.monotonic() if batch else last_at
        if time.monotonic() - last_at > WAIT_S:
            raise Uncertain(f"{next(iter(left))[0]}: no record has arrived for {WAIT_S:.0f} s")
        for each in batch:
            place, error = (each.topic(), each.partition()), each.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name in the API
                raise Uncertain(f"{each.topic()} cannot be read: {error.str()}")
            if error is None and each.offset() < ends[place]:
                found.append(each)
                size += len(each.key() or b"") + len(each.value() or b"")
            if error is not None or each.offset() >= ends[place] - 1:
                left.discard(place)
        if size > MOST_BYTES:
            raise Uncertain(f"{', '.join({name for name, _ in ends})} has more than {MOST_BYTES >> 20} MB")
    return found


def text_of(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def moment_of(message: Message) -> datetime:
    return datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)


def header_pairs(message: Message) -> list[tuple[str, bytes | None]]:
    return cast("list[tuple[str, bytes | None]]", message.headers() or [])


def headers_of(message: Message) -> list[tuple[str, str | None]] | None:
    found = [(key, text_of(value)) for key, value in header_pairs(message)]
    if len(dict(found)) < len(found):
        raise Uncertain(f"a record of {message.topic()} has a header twice")
    return found or None


def arrow_table(rows: list[Row], columns: Sequence[Column]) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, pa.schema(arrow_fields(columns)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise Uncertain(f"a record does not fit Arrow: {error}") from None


def arrow_fields(columns: Sequence[Column]) -> list[tuple[str, pa.DataType]]:
    if len({each.name.lower() for each in columns}) < len(columns):
        raise Uncertain("names of columns differ in case only")
    return [(each.name, arrow_type(each.type)) for each in columns]


def arrow_type(kind: ColumnType) -> pa.DataType:
    if isinstance(kind, Struct):
        return pa.struct(arrow_fields(kind.fields))
    if isinstance(kind, Array):
        return pa.list_(arrow_type(kind.element))
    if isinstance(kind, Map):
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if kind.ddl not in ARROW:
        raise Uncertain(f"a column has the type {kind.ddl}")
    return ARROW[kind.ddl]


def columns_of(source: Source) -> tuple[Column, ...]:
    if source.format.schema is not None:
        return source.format.schema.columns
    return (Column("value", STRING),) if source.format.encoding is Encoding.TEXT else ()


def decoder_of(source: Source) -> Callable[[bytes | None], Row]:
    """Decodes a record's value, or raises `Misfit`."""
    keeps_tombstones, required = source.format.tombstone_policy is Tombstones.ROWS, required_names(source)
    decode = value_decoder(source)

    def decoded(value: bytes | None) -> Row:
        if value is None:
            if not keeps_tombstones:
                raise Misfit
            return {}
        row = decode(value)
        if any(row[name] is None for name in required):
            raise Misfit
        return row

    return decoded


def required_names(source: Source) -> list[str]:
    schema = source.format.schema
    return [each.name for each in schema.columns if not each.nullable] if schema is not None else []


def value_decoder(source: Source) -> Callable[[bytes], Row]:
    encoding, schema = source.format.encoding, source.format.schema
    if encoding is Encoding.JSON and schema is not None:
        whole = Struct(schema.columns)
        return lambda value: converted(json_object(value), whole)
    if encoding is Encoding.AVRO and schema is not None:
        from odradek.pipelines.spark.reading.avro import format_of  # noqa: PLC0415 - imports pandas

        how = format_of(schema)
        return lambda value: how.decode(value)[0] or misfit()
    return {Encoding.TEXT: lambda value: {"value": text_of(value)}}.get(encoding, lambda _value: {})


def misfit() -> Row:
    raise Misfit
