"""Reads records of a topic: a page of them, single ones, or all in order, with limits on what is read and kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from confluent_kafka import KafkaException

from odradek.cli.framework.failure import Failure
from odradek.cli.records.consume_range import PartitionRange, Start, find_ranges
from odradek.cli.records.record_reader import RecordReader
from odradek.console.cluster.permissions import needs
from odradek.console.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from confluent_kafka import Message

    from odradek.cli.client.cluster import Cluster

READ_TIMEOUT_S = 10.0
IDLE_MS = 3_000
PAGE_BYTES = 16 * 1024 * 1024  # of the records of a page
MOST_READ_FOR_PAGE = 4_000
NEAR_OFFSETS = 1_000  # records to replay within this distance are read together
CONSUMER_SETTINGS = {
    "fetch.wait.max.ms": 50,
    "fetch.message.max.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 16 * 1024,
    "queued.min.messages": 1_000,
    "client.id": "odradek-console",
}
# A range that ends with the marker of a transaction is known to be read when a fetch at the end returns nothing: a page
# would wait for that as long as the fetch does.
RANGE_SETTINGS = {**CONSUMER_SETTINGS, "fetch.wait.max.ms": 5}
SCAN_SETTINGS = {**RANGE_SETTINGS, "queued.min.messages": 20_000}  # the limit of bytes above holds as well


@dataclass(frozen=True, slots=True)
class Reading:
    """A range of records: of one partition or all, from `start`, which is newest, oldest, offset or time."""

    topic: str
    partition: int | None = None
    start: str = "newest"
    offset: int = 0
    time_ms: int = 0
    limit: int = 50


def record_of(message: Message) -> Record:
    kind, timestamp_ms = message.timestamp()
    return Record(
        message.topic() or "",
        cast("int", message.partition()),
        cast("int", message.offset()),
        timestamp_ms if kind else None,
        message.key(),
        message.value(),
        tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])),
    )


def find_reading_ranges(cluster: Cluster, reading: Reading, *, newest: int | None = None) -> list[PartitionRange]:
    """The ranges from the start of a reading to the ends of its partitions."""
    wanted = () if reading.partition is None else (reading.partition,)
    with needs("Describe", f"topic {reading.topic}"):
        partitions = cluster.choose_partitions(reading.topic, wanted)
    starts = {
        "newest": Start(last=newest if newest is not None else reading.limit),
        "oldest": Start(from_beginning=True),
        "offset": Start(offset=reading.offset),
        "time": Start(from_time_ms=reading.time_ms),
    }
    with needs("Describe", f"topic {reading.topic}"):
        return find_ranges(cluster, reading.topic, partitions, starts[reading.start])


def read_page(cluster: Cluster, reading: Reading) -> list[Record]:
    """At most `limit` records: the newest first, or in the order of their time from the start."""
    wanted = () if reading.partition is None else (reading.partition,)
    with needs("Describe", f"topic {reading.topic}"):
        partitions = len(cluster.choose_partitions(reading.topic, wanted))
    share = max(1, min(reading.limit, MOST_READ_FOR_PAGE // partitions))
    found = find_reading_ranges(cluster, reading, newest=share)
    ranges = [PartitionRange(r.partition, r.start_offset, min(r.end_offset, r.start_offset + share)) for r in found]
    records: list[Record] = []
    size_bytes = 0
    deadline = time.monotonic() + READ_TIMEOUT_S
    for batch in _batches(cluster, reading.topic, ranges):
        for message in batch:
            record = record_of(message)
            records.append(record)
            size_bytes += record.size_bytes
        if size_bytes > PAGE_BYTES or time.monotonic() > deadline:
            break
    is_newest = reading.start == "newest"
    records.sort(key=lambda each: (each.timestamp_ms or 0, each.offset, each.partition), reverse=is_newest)
    return records[: reading.limit]


def read_record(cluster: Cluster, topic: str, partition: int, offset: int) -> Record:
    """Failure if the partition has no such record."""
    for record in read_selected(cluster, topic, [(partition, offset)]):
        return record
    raise Failure(f"{topic}-{partition} has no record at offset {offset}; it was deleted, or compacted away")


def read_selected(cluster: Cluster, topic: str, positions: Sequence[tuple[int, int]]) -> Iterator[Record]:
    """The records at these partitions and offsets that exist, by partition and offset."""
    with needs("Describe", f"topic {topic}"):
        partitions = cluster.choose_partitions(topic, [partition for partition, _offset in positions])
        earliest = cluster.earliest_offsets(topic, partitions)
        latest = cluster.latest_offsets(topic, partitions)
    wanted = {each for each in positions if earliest[each[0]] <= each[1] < latest[each[0]]}
    pending = sorted(wanted)
    while pending:
        partition, first = pending[0]
        last = first
        while pending and pending[0][0] == partition and pending[0][1] - last <= NEAR_OFFSETS:
            last = pending.pop(0)[1]
        for batch in _batches(cluster, topic, [PartitionRange(partition, first, last + 1)]):
            for message in batch:
                if (message.partition(), message.offset()) in wanted:
                    yield record_of(message)


def scan(
    cluster: Cluster, topic: str, ranges: Sequence[PartitionRange], is_stopped: Callable[[], bool]
) -> Iterator[list[Record]]:
    """All records of ranges in batches, until their ends, or until the caller stops. Failure if they stop coming."""
    for batch in _batches(cluster, topic, ranges, SCAN_SETTINGS, must_reach_ends=True):
        yield [record_of(message) for message in batch]
        if is_stopped():
            return


def follow(
    cluster: Cluster, topic: str, partition: int | None, is_stopped: Callable[[], bool]
) -> Iterator[list[Record]]:
    """New records in batches, until the caller stops."""
    reading = Reading(topic, partition, "newest")
    ranges = find_reading_ranges(cluster, reading, newest=0)
    with (
        needs("Read", f"topic {topic}"),
        RecordReader(
            cluster, topic, ranges, until_end=False, idle_timeout_ms=500, settings=CONSUMER_SETTINGS
        ) as reader,
    ):
        while not is_stopped():
            for batch in reader.batches():
                yield [record_of(message) for message in batch]
                if is_stopped():
                    return


def _batches(
    cluster: Cluster,
    topic: str,
    ranges: Sequence[PartitionRange],
    settings: Mapping[str, Any] = RANGE_SETTINGS,
    *,
    must_reach_ends: bool = False,
) -> Iterator[list[Message]]:
    if not any(each.start_offset < each.end_offset for each in ranges):
        return
    try:
        with (
            needs("Read", f"topic {topic}"),
            RecordReader(cluster, topic, ranges, until_end=True, idle_timeout_ms=IDLE_MS, settings=settings) as reader,
        ):
            yield from reader.batches()
            if must_reach_ends and reader.ends:
                partition, end = min(reader.ends.items())
                raise Failure(
                    f"{topic}-{partition} sent no records for {IDLE_MS / 1000:g} s and was not read up to offset {end}"
                )
    except KafkaException as error:
        raise cluster.failure(error.args[0], f"topic {topic}") from None
