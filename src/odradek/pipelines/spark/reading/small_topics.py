"""Small topics as tables of DuckDB: their records are read without Spark, and DuckDB parses them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from odradek.pipelines.definition.column_types import Primitive, Struct
from odradek.pipelines.definition.model import RECORD_COLUMNS
from odradek.pipelines.definition.vocabulary import Delivery, Encoding, Tombstones
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.reading.record_files import RECORD_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from odradek.pipelines.definition.model import Pipeline, RecordSchema, Source, TopicOrigin

MOST_RECORDS, MOST_BYTES = 100_000, 64 * 1024 * 1024
AT_ONCE, TURN_S = 10_000, 0.05  # a turn takes so long, unless so many records have arrived
WAIT_S = 10.0
INFERRED_FROM = 1000  # records
MACROS = (  # bytes that are not UTF-8 are shown with escapes
    "CREATE TEMP MACRO text_of(a) AS coalesce(TRY(decode(a)), CAST(a AS VARCHAR))",
    "CREATE TEMP MACRO json_of(a) AS TRY_CAST(text_of(a) AS JSON)",
    "CREATE TEMP MACRO object_of(a) AS CASE WHEN json_type(json_of(a)) = 'OBJECT' THEN json_of(a) END",
)
INTEGERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
UNSIGNED = re.compile('(?<=[:[])"UBIGINT"')  # a type, not the name of a field
RAW = (
    'SELECT text_of(key) AS key, text_of(value) AS value, timestamp, partition, "offset", map_from_entries('
    "list_transform(headers, lambda each: struct_pack(k := each.key, v := text_of(each.value)))) AS headers FROM {}"
)


class NotSmall(Exception):
    """Why the records of a topic are left to Spark."""


def structure_query(records: str) -> str:
    """The structure of the first records that are JSON objects; null if there are none."""
    objects = f"SELECT object_of(value) AS found FROM {records} LIMIT {INFERRED_FROM}"
    return f"SELECT json_group_structure(found) FROM ({objects}) WHERE found IS NOT NULL"


def inferred_query(records: str, structure: str) -> str:
    text = UNSIGNED.sub('"BIGINT"', structure).replace("'", "''")
    return _with_record(records, f"json_transform(object_of(value), '{text}')", "it IS NOT NULL")


def source_query(records: str, source: Source) -> str:
    """The rows of a source. What is no JSON object is left out; a field that does not fit its type is null."""
    encoding, schema = source.format.encoding, source.format.schema
    keeps_tombstones = source.format.tombstone_policy is Tombstones.ROWS
    if encoding is Encoding.JSON and schema is not None:
        made = f"TRY_CAST({with_whole_numbers(schema)} AS {in_duckdb(Struct(schema.columns).ddl)})"
        required = "".join(f" AND it.{quoted(each.name)} IS NOT NULL" for each in schema.columns if not each.nullable)
        condition = f"(it IS NOT NULL{required})"
    elif encoding in {Encoding.TEXT, Encoding.BYTES}:
        made = "struct_pack(value := text_of(value))" if encoding is Encoding.TEXT else ""
        condition = "value IS NOT NULL"
    else:
        raise NotSmall(f"{source.name} is {encoding}")
    return _with_record(records, made, f"{condition} OR value IS NULL" if keeps_tombstones else condition)


def with_whole_numbers(schema: RecordSchema) -> str:
    """The object of a record, without values of integer columns that are not integers: DuckDB would round 1.5 to 2."""
    patch = ""
    for column in schema.columns:
        if isinstance(column.type, Primitive) and column.type.name in INTEGERS:
            key = column.name.replace("'", "''")
            at = f"'/{key.replace('~', '~0').replace('/', '~1')}'"
            is_whole = f"json_type(object_of(value), {at}) IN ('BIGINT', 'UBIGINT')"
            value = f"CASE WHEN {is_whole} THEN json_extract(object_of(value), {at}) END"
            patch += f"{', ' if patch else ''}'{key}', {value}"
    return f"json_merge_patch(object_of(value), json_object({patch}))" if patch else "object_of(value)"


def _with_record(records: str, made: str, condition: str) -> str:
    """The fields of a struct, and the columns of the record itself."""
    own = ", ".join(f"{quoted(each.name[1:])} AS {quoted(each.name)}" for each in RECORD_COLUMNS)
    fields, rows = ("it.*, ", f"(SELECT *, {made} AS it FROM {records})") if made else ("", records)
    return f"SELECT {fields}{own} FROM {rows} WHERE {condition}"


def in_duckdb(ddl: str) -> str:
    """A type of Spark in DuckDB's SQL."""
    from sqlglot import exp  # noqa: PLC0415 - the import takes 0.2 s

    kind = exp.DataType.build(ddl, dialect="spark")
    for constraint in list(kind.find_all(exp.ColumnConstraint)):  # NOT NULL, which DuckDB has in tables only
        constraint.pop()
    return kind.sql("duckdb")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_records(pipeline: Pipeline, origin: TopicOrigin, partitions: Mapping[str, int]) -> pa.Table:
    """All records up to the present ends of the topics, in the order of their partitions and offsets."""
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
            raise NotSmall(f"{names} has {records:,} records, more than {MOST_RECORDS:,}")
        ends = {place: end for place, (start, end) in spans.items() if end > start}
        consumer.assign([TopicPartition(name, index, OFFSET_BEGINNING) for name, index in ends])
        found = sorted(read_to(consumer, ends), key=lambda each: (each.topic(), each.partition(), each.offset()))
        return pa.Table.from_pylist(list(map(row_of, found)), RECORD_SCHEMA)
    except KafkaException as error:
        raise NotSmall(f"{names} cannot be read: {error.args[0].str()}") from None
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
            raise NotSmall(f"{next(iter(left))[0]}: no record has arrived for {WAIT_S:.0f} s")
        for each in batch:
            place, error = (each.topic(), each.partition()), each.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name in the API
                raise NotSmall(f"{each.topic()} cannot be read: {error.str()}")
            if error is None and each.offset() < ends[place]:
                found.append(each)
                size += len(each.key() or b"") + len(each.value() or b"")
            if error is not None or each.offset() >= ends[place] - 1:
                left.discard(place)
        if size > MOST_BYTES:
            raise NotSmall(f"{', '.join({name for name, _ in ends})} has more than {MOST_BYTES >> 20} MB")
    return found


def row_of(message: Message) -> dict[str, Any]:
    headers: Any = message.headers() or ()
    return {
        "key": message.key(), "value": message.value(), "topic": message.topic(), "partition": message.partition(),
        "offset": message.offset(), "timestamp": datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
        "headers": [{"key": key, "value": value} for key, value in headers] or None,
    }  # fmt: skip
