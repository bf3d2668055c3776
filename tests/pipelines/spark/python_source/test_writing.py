"""Rows become records in the partitions that the Java producer would choose; an undelivered one fails the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from aiokafka.partitioner import murmur2

from odradek.pipelines.spark.python_source.lookup import Lookup
from odradek.pipelines.spark.python_source.offsets import OffsetRange, Partition
from odradek.pipelines.spark.python_source.reading import read_range
from odradek.pipelines.spark.python_source.writing import NotDelivered, write_batches

if TYPE_CHECKING:
    from tests.pipelines.spark.python_source.cluster import Topics

pytestmark = pytest.mark.spark
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def write(topics: Topics, *rows: tuple[str, bytes | None, bytes | None, Any], **settings: str) -> int:
    client = tuple(sorted({"bootstrap.servers": topics.bootstrap_servers, **settings}.items()))
    made = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return write_batches(client, [pa.RecordBatch.from_pylist(made, SCHEMA)])


def read(topics: Topics, topic: str, number: int = 0) -> list[dict[str, Any]]:
    options = topics.options(topic)
    partition = Partition(topics.name(topic), number)
    end = Lookup(options).latest([partition])[partition]
    return [row for batch in read_range(options, OffsetRange(partition, 0, end)) for row in batch.to_pylist()]


def test_records_are_written_whole(topics: Topics) -> None:
    name, other = topics.create("t"), topics.create("u")
    headers = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    written = write(topics, (name, b"k", b"v", headers), (other, None, None, None), (name, b"", b"", []))
    assert written == 3
    assert [(row["key"], row["value"], row["headers"]) for row in read(topics, "t")] == [
        (b"k", b"v", headers),
        (b"", b"", None),
    ]
    assert [(row["key"], row["value"]) for row in read(topics, "u")] == [(None, None)]


def test_keys_go_where_kafkas_producer_sends_them(topics: Topics) -> None:
    name = topics.create("t", 5)
    keys = [str(number).encode() for number in range(40)]
    write(topics, *((name, key, b"x", None) for key in keys))
    found = {row["key"]: number for number in range(5) for row in read(topics, "t", number)}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 5 for key in keys}


def test_a_record_that_is_too_large_fails_the_task_and_the_next_task_is_sound(topics: Topics) -> None:
    name = topics.create("t", config={"max.message.bytes": "1000"})
    with pytest.raises(NotDelivered, match=f"a record for topic {name} was not written: .*large"):
        write(topics, (name, None, bytes(5000), None))
    with pytest.raises(NotDelivered, match=f"a record for topic {name} was not written: .*large"):
        write(topics, (name, None, bytes(2_000_000), None))
    assert write(topics, (name, None, b"small", None)) == 1
    assert [row["value"] for row in read(topics, "t")] == [b"small"]


def test_a_record_of_a_megabyte_is_written(topics: Topics) -> None:
    name = topics.create("t")
    write(topics, (name, b"k", bytes(1_000_000), None))
    assert [len(row["value"]) for row in read(topics, "t")] == [1_000_000]
