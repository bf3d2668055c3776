"""`odradek bench produce`, `consume` and `latency`: throughput, and the time until records are written or read."""

from __future__ import annotations

import struct
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from confluent_kafka import KafkaError, Message, TopicPartition

from odradek.admin.cluster import Cluster, close_consumer
from odradek.admin.records.record_reader import PartitionRange, Start, find_ranges
from odradek.cli.bench.raw_engine import consume_raw, produce_raw
from odradek.cli.bench.workload import (
    ProduceWorkload,
    Result,
    Tick,
    batch_options,
    bench_topic,
    check_plaintext,
    existing_topic,
    payload,
    progress_bar,
    run_options,
    size_option,
    topic_option,
    written_so_far,
)
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import option
from odradek.cli.framework.parameter_types import DURATION_MS, POSITIVE, RECORD_COUNT, SIZE_BYTES
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Callable


CHUNK_RECORDS = 1000
SAMPLE_EVERY_RECORDS = 100
SETTLE_S = 10.0
READ_RECORDS = 10_000
STALL_S = 30.0
CLOSE_TIMEOUT_S = 5.0
END_OF_PARTITION = "_PARTITION_EOF"
STAMP = struct.Struct(">Qq")  # which run, and when (monotonic nanoseconds)
WARM_UP_S = 0.5  # the first records pay for connections and caches
DRAIN_S = 5.0
SWITCH_S = 0.0002  # producer and consumer share the interpreter: 5 ms, Python's default, would be what is measured


@command(
    examples=[
        ("a million records of 100 bytes", "odradek bench produce"),
        ("1 KB records in lz4 for half a minute", "odradek bench produce --size 1000 -z lz4 --duration 30s"),
        ("small batches", "odradek bench produce --batch-size 16384 --linger 0ms"),
        ("the broker alone, without the cost of a client", "odradek bench produce --engine raw -n 5000000"),
        ("time of acknowledgement at 50,000 records per second", "odradek bench produce --rate 50000 --duration 10s"),
    ]
)
@topic_option
@option("--records -n", "N", RECORD_COUNT, "Records to write. Default: a million, unless --duration is given.")
@size_option
@batch_options(linger="5ms")
@option("--rate", "N", POSITIVE, "Records per second. Default: no limit.")
@run_options
@option("--in-flight", "N", click.IntRange(min=1, max=100), "Requests in flight on each connection.", default=5)
@cluster_options
def produce(cluster: Cluster, as_json: bool, topic: str, partitions: int, engine: str, **options: Any) -> None:
    """Measure the throughput of producing, and the time until records are acknowledged."""
    if engine == "raw":
        check_plaintext(cluster)
    description = bench_topic(cluster, topic, partitions)
    if options["records"] is None and options["duration_ms"] is None:
        options["records"] = 1_000_000
    workload = ProduceWorkload(topic=topic, value=payload(options.pop("size")), **options)
    before = written_so_far(cluster, description)

    def settle(sent: int) -> None:
        """Wait until the records are in the log, which acks=0 does not report."""
        deadline = time.monotonic() + SETTLE_S
        while workload.acks == "0" and written_so_far(cluster, description) < before + sent:
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)

    with progress_bar("producing", workload.records) as tick:
        if engine == "raw":
            result = produce_raw(description, workload, tick, settle)
        else:
            result = produce_by_client(cluster, workload, tick, settle)
    written = written_so_far(cluster, description) - before
    if written < result.records:
        reason = "see the broker's log" if cluster.last_error is None else cluster.last_error.str()
        raise Failure(f"only {written:,} of {count_text(result.records, 'record')} were written; {reason}")
    result.facts = {"topic": topic, "partitions": len(description.partitions), **workload.facts()}
    result.show(as_json)


def produce_by_client(cluster: Cluster, workload: ProduceWorkload, tick: Tick, settle: Callable[[int], None]) -> Result:
    """Produce at the requested rate, or without a limit. One acknowledgement in a hundred is measured."""
    latencies_ms: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            latencies_ms.append((message.latency() or 0.0) * 1000)

    chunk_size = workload.chunk_records(CHUNK_RECORDS)
    producer = cluster.producer(workload.client_settings())
    began_at = time.perf_counter()
    sent = 0
    while not workload.is_over(sent, time.perf_counter() - began_at):
        size = chunk_size if workload.records is None else min(chunk_size, workload.records - sent)
        chunk: list[dict[str, Any]] = [{"value": workload.value} for _ in range(size)]
        for sampled in chunk[::SAMPLE_EVERY_RECORDS]:
            sampled["callback"] = delivered
        while chunk:
            with suppress(BufferError):
                chunk = chunk[producer.produce_batch(workload.topic, chunk) :]
            if chunk:
                producer.poll(0.01)
        sent += size
        producer.poll(0)
        tick(sent)
        workload.pace(sent, began_at, producer.poll)
    while producer.flush(0.5):
        pass
    settle(sent)
    seconds = time.perf_counter() - began_at
    return Result("produce", "client", sent, sent * len(workload.value), seconds, latencies_ms, "acknowledged after")


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
            messages = consumer.consume(READ_RECORDS, 0.1)
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


@command(
    examples=[
        ("1,000 records per second for five seconds", "odradek bench latency"),
        ("10,000 records per second, as JSON", "odradek bench latency --rate 10000 --duration 10s --format json"),
        ("one partition, leader only", "odradek bench latency --topic lat-1 --partitions 1 --acks 1"),
    ]
)
@topic_option
@option("--rate", "N", POSITIVE, "Records per second.", default=1000)
@option("--duration duration_ms", "DURATION", DURATION_MS, "How long to measure.", default="5s")
@size_option
@batch_options(linger="0ms")
@cluster_options
def latency(cluster: Cluster, as_json: bool, topic: str, partitions: int, size: int, **options: Any) -> None:
    """Measure the time from the producer's call until a consumer receives the record, at a given rate.

    Producer and consumer are this one process, so that one clock times both ends. The first half second is not counted.
    """
    description = bench_topic(cluster, topic, partitions)
    ids = [partition.id for partition in description.partitions]
    ranges = find_ranges(cluster, topic, ids, Start())
    value = payload(max(size, STAMP.size))
    workload = ProduceWorkload(topic=topic, value=value, records=None, **options)
    total = int(options["rate"] * (options["duration_ms"] / 1000 + WARM_UP_S))
    with progress_bar("measuring", total) as tick:
        result = run(cluster, workload, ranges, tick)
    result.facts = {"topic": topic, "partitions": len(ids), **workload.facts()}
    result.show(as_json)


class Listener(threading.Thread):
    """The consumer: stamps what it reads with the time that passed since it was produced."""

    def __init__(self, cluster: Cluster, workload: ProduceWorkload, ranges: list[PartitionRange], run_id: int) -> None:
        super().__init__(name="bench-consumer", daemon=True)
        self.run_id = run_id
        self.received = 0
        self.latencies_ns: list[tuple[int, int]] = []  # produced at, latency
        self.is_stopped = False
        self.consumer = cluster.consumer({"fetch.wait.max.ms": 100, "fetch.min.bytes": 1, "fetch.queue.backoff.ms": 1})
        self.consumer.assign([TopicPartition(workload.topic, r.partition, r.start_offset) for r in ranges])

    def run(self) -> None:
        while not self.is_stopped:
            first = self.consumer.poll(0.1)
            if first is None:
                continue
            for message in [first, *self.consumer.consume(1000, 0)]:
                now = time.perf_counter_ns()
                value = message.value()
                if message.error() is None and value is not None and len(value) >= STAMP.size:
                    run_id, produced_at = STAMP.unpack_from(value)
                    if run_id == self.run_id:
                        self.received += 1
                        self.latencies_ns.append((produced_at, now - produced_at))
        self.consumer.close()


def run(cluster: Cluster, workload: ProduceWorkload, ranges: list[PartitionRange], tick: Tick) -> Result:
    run_id = time.time_ns()
    listener = Listener(cluster, workload, ranges, run_id)
    listener.start()
    sys.setswitchinterval(SWITCH_S)
    producer = cluster.producer(workload.client_settings())
    rest = workload.value[STAMP.size :]
    chunk = workload.chunk_records(1000)
    try:
        began_at = time.perf_counter()
        sent = 0
        while not workload.is_over(sent, time.perf_counter() - began_at - WARM_UP_S):
            for _ in range(chunk):
                producer.produce(workload.topic, STAMP.pack(run_id, time.perf_counter_ns()) + rest)
            sent += chunk
            workload.pace(sent, began_at, time.sleep)
            producer.poll(0)
            tick(sent)
        while producer.flush(0.5):
            pass
        seconds = time.perf_counter() - began_at
        deadline = time.monotonic() + DRAIN_S
        while listener.received < sent and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        listener.is_stopped = True
        listener.join()
    if listener.received < sent:
        raise Failure(f"only {listener.received:,} of {count_text(sent, 'record')} came through; see the broker's log")
    counted_from = int((began_at + WARM_UP_S) * 1e9)
    latencies = [taken / 1e6 for produced_at, taken in listener.latencies_ns if produced_at >= counted_from]
    return Result("latency", "client", sent, sent * len(workload.value), seconds, latencies, "end to end")
