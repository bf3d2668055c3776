"""`odradek bench consume`: throughput of consuming."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import TopicPartition

from odradek.admin.cluster import Cluster, close_consumer
from odradek.admin.records.record_reader import PartitionRange, Start, find_ranges
from odradek.cli.bench.raw_engine import consume_raw
from odradek.cli.bench.workload import (
    Result,
    Tick,
    check_plaintext,
    existing_topic,
    progress_bar,
    run_options,
    topic_option,
)
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import option
from odradek.cli.framework.parameter_types import RECORD_COUNT, SIZE_BYTES
from odradek.conventions.failures import Failure

CHUNK_RECORDS = 10_000
STALL_S = 30.0
CLOSE_TIMEOUT_S = 5.0
END_OF_PARTITION = "_PARTITION_EOF"


@command(
    examples=[
        ("everything that `odradek bench produce` has written", "odradek bench consume"),
        ("at most a million records of another topic", "odradek bench consume --topic pump -n 1000000"),
        ("the broker alone, without the cost of a client", "odradek bench consume --engine raw"),
    ]
)
@topic_option
@option("--records -n", "N", RECORD_COUNT, "Stop after N records. Default: at the end of the topic.")
@option(
    "--fetch-size", "BYTES", SIZE_BYTES, "Largest number of bytes per partition in one response.", default=1_048_576
)
@run_options
@cluster_options
def consume(
    *, topic: str, records: int | None, fetch_size: int, duration_ms: int | None, engine: str, connections: int,
    cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Measure the throughput of consuming a topic from its beginning to its end."""
    if engine == "raw":
        check_plaintext(cluster)
    description = existing_topic(cluster, topic)
    partitions = [partition.id for partition in description.partitions]
    ranges = [
        r for r in find_ranges(cluster, topic, partitions, Start(from_beginning=True)) if r.start_offset < r.end_offset
    ]
    held = sum(r.end_offset - r.start_offset for r in ranges)
    if not held:
        raise Failure(f"topic {topic} is empty; `odradek bench produce` writes records")
    total = min(records or held, held)
    asked: dict[str, Any] = {"ranges": ranges, "total": total, "fetch_size": fetch_size, "duration_ms": duration_ms}
    with progress_bar("consuming", total) as tick:
        if engine == "raw":
            result = consume_raw(description, connection_count=connections, tick=tick, **asked)
        else:
            result = consume_by_client(cluster, topic=topic, tick=tick, **asked)
    result.facts = {"topic": topic, "partitions": len(partitions), "fetch_size": fetch_size}
    result.show(as_json)


def consume_by_client(
    cluster: Cluster, *, topic: str, ranges: list[PartitionRange], total: int, fetch_size: int,
    duration_ms: int | None, tick: Tick,
) -> Result:  # fmt: skip
    """librdkafka's consumer; the time starts when partitions are assigned. Records are counted, not decoded."""
    consumer = cluster.consumer(
        {
            "fetch.message.max.bytes": fetch_size,
            "queued.max.messages.kbytes": 262_144,
            "queued.min.messages": 1_000_000,
            "check.crcs": False,
            "enable.partition.eof": True,
        }
    )
    unread = {r.partition for r in ranges}
    count = size_bytes = 0
    seconds = 0.0
    began_at = received_at = time.perf_counter()
    try:
        consumer.assign([TopicPartition(topic, r.partition, r.start_offset) for r in ranges])
        while unread and count < total and (duration_ms is None or seconds * 1000 < duration_ms):
            messages = consumer.consume(CHUNK_RECORDS, 0.1)
            seconds = time.perf_counter() - began_at
            if messages:
                received_at = time.perf_counter()
            elif time.perf_counter() - received_at > STALL_S:
                raise Failure(f"no record within {STALL_S:.0f} s; {count:,} of {total:,} were read")
            for event in [message for message in messages if message.error() is not None]:
                error = event.error()
                if error is not None and error.name() != END_OF_PARTITION:
                    raise cluster.failure(error, f"topic {topic}, partition {event.partition()}")
                unread.discard(event.partition())
                messages.remove(event)
            count += len(messages)
            size_bytes += sum(map(len, messages))
            tick(count)
    finally:
        close_consumer(consumer, CLOSE_TIMEOUT_S)
    return Result("consume", "client", count, size_bytes, seconds)
