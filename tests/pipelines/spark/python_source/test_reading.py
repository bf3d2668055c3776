"""Ranges of real topics: all columns, all records of the range, and a clear error for missing ones."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from odradek.pipelines.spark.python_source import reading
from odradek.pipelines.spark.python_source.offsets import OffsetRange, Partition
from odradek.pipelines.spark.python_source.reading import RecordsMissing, headers_of, read_range
from odradek.protocol.compression import Compression
from odradek.testing import broker
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, produce
from tests.protocol.malformed_batches import batch, records

if TYPE_CHECKING:
    from tests.pipelines.spark.python_source.cluster import Topics

pytestmark = pytest.mark.spark
AT_MS = 1_767_268_800_123


def test_records_keep_all_that_they_have(topics: Topics) -> None:
    name = topics.create("t")
    topics.produce("t", [b"\x00\xff"], key=b"k", timestamp=AT_MS, headers=[("a", b"1"), ("a", None)])
    topics.produce("t", [None, b""], timestamp=AT_MS)
    first, second, third = topics.rows(topics.options(), 0, 3)
    assert first == {
        "key": b"k",
        "value": b"\x00\xff",
        "topic": name,
        "partition": 0,
        "offset": 0,
        "timestamp": datetime.fromtimestamp(AT_MS / 1000, UTC),
        "timestampType": 0,
        "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
    }
    assert (second["key"], second["value"], second["headers"]) == (None, None, None)
    assert (third["value"], third["offset"]) == (b"", 2)


def test_the_time_of_arrival_has_a_type_of_its_own(topics: Topics) -> None:
    topics.create("t", config={"message.timestamp.type": "LogAppendTime"})
    topics.produce("t", [b"x"], timestamp=AT_MS)
    (row,) = topics.rows(topics.options(), 0, 1)
    assert row["timestampType"] == 1
    assert row["timestamp"] > datetime.fromtimestamp(AT_MS / 1000, UTC)


def test_a_range_is_read_exactly(topics: Topics) -> None:
    topics.create("t")
    topics.produce("t", [str(number).encode() for number in range(2000)])
    for first, end in ((0, 1), (700, 1701), (1999, 2000), (5, 5)):
        assert [row["offset"] for row in topics.rows(topics.options(), first, end)] == list(range(first, end))


def test_large_records_come_in_small_batches(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES", 1 << 20)
    topics.create("t")
    topics.produce("t", [bytes(1_000_000)] * 3)
    wanted = reading_range(topics, 3)
    batches = list(read_range(topics.options(), wanted))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert all(len(row["value"]) == 1_000_000 for batch in batches for row in batch.to_pylist())


def reading_range(topics: Topics, end: int) -> OffsetRange:
    return OffsetRange(Partition(topics.name("t"), 0), 0, end)


def test_deleted_records_are_missed(topics: Topics) -> None:
    topics.create("t")
    topics.produce("t", [b"x"] * 10)
    topics.delete_records("t", 6)
    with pytest.raises(
        RecordsMissing, match=r"the first offset of .*-t-0 is 6, but 3 was to be read.*on_data_loss: skip"
    ):
        topics.rows(topics.options(), 3, 10)
    skipping = topics.options(failOnDataLoss="false")
    assert [row["offset"] for row in topics.rows(skipping, 3, 10)] == [6, 7, 8, 9]
    assert topics.rows(skipping, 3, 5) == []


def test_a_log_that_is_too_short_is_not_waited_for_for_ever(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    topics.create("t")
    topics.produce("t", [b"x"])
    assert len(topics.rows(topics.options(), 0, 1)) == 1  # connects its consumer
    monkeypatch.setattr(reading, "STALLED_S", 3.0)
    with pytest.raises(RecordsMissing, match=r"-t-0 cannot be read at offset 1: no record for .*; the range ends at 3"):
        topics.rows(topics.options(), 0, 3)


READING = """
import os, sys
from odradek.pipelines.spark.python_source import reading
from odradek.pipelines.spark.python_source.offsets import OffsetRange, Partition
from odradek.pipelines.spark.python_source.options import TopicOptions
options = TopicOptions.of({"kafka.bootstrap.servers": sys.argv[1]})
reading.STALLED_S = 2.0
try:
    list(reading.read_range(options, OffsetRange(Partition("t", int(sys.argv[2])), 0, 2)))
except reading.RecordsMissing as error:
    print(error, flush=True)
    os._exit(0)  # as workers of Spark do: the library does not return from a close, either
"""


def test_a_batch_at_which_the_client_library_hangs_or_stops_is_named_in_time() -> None:
    """It may hang before it has returned the records before the batch."""
    good = batch(records(1), 1)
    batches = [batch(b"x", 1, attributes=Compression.GZIP), batch(b"\x7f" + bytes(30), 1)]
    with (
        broker({"produce.validation": "header"}) as running,
        Connection(running.bootstrap_servers) as connection,
    ):
        assert create_topic(connection, "t", len(batches)) == "NONE"
        for number, data in enumerate(batches):
            assert [produce(connection, "t", each, number).error for each in (good, data, good)] == ["NONE"] * 3
            command = [sys.executable, "-c", READING, running.bootstrap_servers, str(number)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert re.match(
                rf"t-{number} cannot be read at offset ([01]): no record for 2 s; the range ends at 2\. "
                rf"`odradek consume t -p {number} -o \1 -n 1000` names a batch that is corrupt",
                done.stdout,
            )


def test_transactions_leave_gaps(topics: Topics) -> None:
    name = topics.create("t")
    producer = Producer({"bootstrap.servers": topics.bootstrap_servers, "transactional.id": topics.prefix})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(name, b"x")
        assert producer.flush(30) == 0
        end(30)
    everything = topics.rows(topics.options(), 0, 6)  # odd offsets are transaction markers
    assert [row["offset"] for row in everything] == [0, 2, 4]
    committed = topics.rows(topics.options(**{"kafka.isolation.level": "read_committed"}), 0, 6)
    assert [row["offset"] for row in committed] == [0, 4]


def test_header_names_that_are_not_utf_8_do_not_stop_the_reading() -> None:
    class Hostile:
        def headers(self) -> None:
            raise SystemError("returned a result with an exception set")

    assert headers_of(Hostile()) is None
