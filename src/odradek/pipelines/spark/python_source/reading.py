"""Reads a range of one partition on a worker, as Arrow batches with the columns of Spark's connector."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.python_source.lookup import READ_UNCOMMITTED, Lookup
from odradek.pipelines.spark.python_source.offsets import loss_message
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.spark.python_source.offsets import OffsetRange
    from odradek.pipelines.spark.python_source.options import TopicOptions

HEADER = T.StructType([T.StructField("key", T.StringType()), T.StructField("value", T.BinaryType())])
COLUMNS = T.StructType([
    T.StructField("key", T.BinaryType()),
    T.StructField("value", T.BinaryType()),
    T.StructField("topic", T.StringType()),
    T.StructField("partition", T.IntegerType()),
    T.StructField("offset", T.LongType()),
    T.StructField("timestamp", T.TimestampType()),
    T.StructField("timestampType", T.IntegerType()),
])  # fmt: skip
COLUMNS_WITH_HEADERS = T.StructType([*COLUMNS.fields, T.StructField("headers", T.ArrayType(HEADER))])

# The same columns in Arrow.
ARROW = pa.schema([
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestampType", pa.int32()),
])  # fmt: skip
ARROW_HEADER = pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
ARROW_WITH_HEADERS = ARROW.append(pa.field("headers", pa.list_(ARROW_HEADER)))

BATCH_ROWS = 10_000
BATCH_BYTES = 8 << 20
MOST_AT_ONCE = 500
POLL_S = 0.05  # a range may end in a gap, where no record follows
STALLED_S = 60.0
END_OF_PARTITION: int = KafkaError._PARTITION_EOF  # noqa: SLF001 - its name in the API
OUT_OF_RANGE: int = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
TRANSIENT_ERRORS = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})  # noqa: SLF001
SETTINGS = {
    "group.id": "odradek-pipelines",  # required by librdkafka; nothing is committed
    "isolation.level": READ_UNCOMMITTED,
    "check.crcs": "true",
    "queued.max.messages.kbytes": "16384",
}
OURS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "log_level": "0",
}


class RecordsMissing(PipelineError):
    """Records of the range are missing."""


def columns_of(options: TopicOptions) -> T.StructType:
    return COLUMNS_WITH_HEADERS if options.has_headers else COLUMNS


@functools.cache
def consumer_of(client: tuple[tuple[str, str], ...]) -> Consumer:
    """The consumer of a cluster, cached per worker process, so that it stays connected between batches."""
    return Consumer({**SETTINGS, **dict(client), **OURS})


def read_range(options: TopicOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """All records of the range that the log has; compaction and transactions leave gaps in offsets."""
    consumer = consumer_of(options.client)
    rows = Rows(ARROW_WITH_HEADERS if options.has_headers else ARROW)
    try:
        for message in messages(consumer, options, wanted):
            rows.add(message)
            if rows.is_full:
                yield rows.take()
        if rows.count:
            yield rows.take()
    finally:
        consumer.unassign()


def messages(consumer: Any, options: TopicOptions, wanted: OffsetRange) -> Iterator[Any]:
    next_offset = wanted.first
    consumer.assign([TopicPartition(*wanted.partition, next_offset)])
    give_up_at = time.monotonic() + STALLED_S
    while next_offset < wanted.end:
        found = consumer.consume(min(wanted.end - next_offset, MOST_AT_ONCE), POLL_S)
        for message in found:
            error = message.error()
            if error is None:
                if message.offset() >= wanted.end:
                    return
                next_offset = message.offset() + 1
                yield message
            elif error.code() == END_OF_PARTITION:
                next_offset = max(next_offset, message.offset())
            elif error.code() == OUT_OF_RANGE:
                next_offset = offset_after_loss(options, wanted, next_offset)
                consumer.assign([TopicPartition(*wanted.partition, next_offset)])
            elif not error.retriable() and error.code() not in TRANSIENT_ERRORS:
                raise unread(wanted, next_offset, error.str())
        if found:
            give_up_at = time.monotonic() + STALLED_S
        elif time.monotonic() > give_up_at:
            raise unread(wanted, next_offset, f"no record for {STALLED_S:.0f} s; the range ends at {wanted.end}")


def unread(wanted: OffsetRange, offset: int, problem: str) -> RecordsMissing:
    """At a corrupt batch, the client library may stop without an error and without the records before it."""
    topic, number = wanted.partition
    return RecordsMissing(
        f"{wanted.partition} cannot be read at offset {offset}: {problem}. `odradek consume {topic} -p {number} -o "
        f"{offset} -n 1000` names a batch that is corrupt; on_data_loss: skip passes over it after `odradek topic trim`"
    )


def offset_after_loss(options: TopicOptions, wanted: OffsetRange, offset: int) -> int:
    """The first offset that is left, if the source skips lost records; otherwise raises RecordsMissing."""
    earliest = Lookup(options).earliest(wanted.partition)
    if options.is_loss_fatal:
        raise RecordsMissing(
            loss_message([f"the first offset of {wanted.partition} is {earliest}, but {offset} was to be read"])
        )
    return min(max(earliest, offset), wanted.end) if earliest >= offset else wanted.end


class Rows:
    """The columns of an Arrow batch under construction."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._has_headers = "headers" in schema.names
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._size_bytes = 0
        self._columns: list[list[Any]] = [[] for _ in self._schema.names]

    @property
    def is_full(self) -> bool:
        return self.count >= BATCH_ROWS or self._size_bytes >= BATCH_BYTES

    def add(self, message: Any) -> None:
        kind, time_ms = message.timestamp()
        key, value = message.key(), message.value()
        row: tuple[Any, ...] = (
            key, value, message.topic(), message.partition(), message.offset(), time_ms * 1000, kind - 1
        )  # fmt: skip
        if self._has_headers:
            row = (*row, headers_of(message))
        for column, field in zip(self._columns, row, strict=True):
            column.append(field)
        self.count += 1
        self._size_bytes += len(value or b"") + len(key or b"")

    def take(self) -> pa.RecordBatch:
        arrays = [pa.array(column, field.type) for column, field in zip(self._columns, self._schema, strict=True)]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def headers_of(message: Any) -> list[dict[str, Any]] | None:
    """The headers, or None if there are none, like Spark's connector. None as well if a name is not UTF-8: the client
    library returns none of them then."""
    try:
        found = message.headers()
    except (SystemError, UnicodeDecodeError):
        return None
    return [{"key": name, "value": value} for name, value in found] if found else None
