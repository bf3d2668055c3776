"""`odradek bench`: throughput of producing and consuming, and the time until records are written or read."""

from __future__ import annotations

import random
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from odradek.admin.cluster import Cluster, TopicDescription, close_consumer
from odradek.admin.records.record_reader import PartitionRange, Start, find_ranges
from odradek.cli.client.options import acks_option, cluster_options, complete_topics, compression_option
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import option, with_options
from odradek.cli.framework.output import fields_of, note, print_json, progress_bar, say, strong
from odradek.cli.framework.parameter_types import (
    DURATION_MS,
    PARTITION_COUNT,
    POSITIVE,
    RECORD_COUNT,
    SIZE_BYTES,
    TOPIC_NAME,
    VALUE_SIZE_BYTES,
)
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, duration_text, percentiles, size_text

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message


PAYLOAD_WORDS = 100_000  # a larger value repeats the text
PACE_SLICE_S = 0.001
CHUNK_RECORDS = 1000
SAMPLE_EVERY_RECORDS = 100
SETTLE_S = 10.0
READ_RECORDS = 10_000
STALL_S = 30.0
CLOSE_TIMEOUT_S = 5.0
STAMP = struct.Struct(">Qq")  # which run, and when (monotonic nanoseconds)
WARM_UP_S = 0.5  # the first records pay for connections and caches
DRAIN_S = 5.0
SWITCH_S = 0.0002  # producer and consumer share the interpreter: 5 ms, Python's default, would be what is measured

topic_option = option(
    "--topic -t", "TOPIC", TOPIC_NAME, "The topic to use.", default="odradek-bench", shell_complete=complete_topics
)
size_option = option("--size -s", "BYTES", VALUE_SIZE_BYTES, "Size of a value.", default=100)
duration_option = option("--duration duration_ms", "DURATION", DURATION_MS, "Stop after this long, such as 10s or 1m.")


def batch_options(linger: str) -> Callable[[Any], Any]:
    """The options that say how records become batches; `linger` is the default of `--linger`."""
    return lambda function: with_options(
        function,
        option("--batch-size", "BYTES", SIZE_BYTES, "Largest batch.", default=1_000_000),
        option(
            "--linger linger_ms", "DURATION", DURATION_MS, "How long a batch waits for more records.", default=linger
        ),
        acks_option,
        compression_option,
        option("--partitions -p", "N", PARTITION_COUNT, "Partitions of the topic if it has to be created.", default=6),
    )


def bench_topic(cluster: Cluster, name: str, partitions: int) -> TopicDescription:
    """The existing topic, or a new one. Its partitions have leaders when this returns."""
    if cluster.create_topic(name, partitions):
        size = count_text(partitions, "partition")
        note(f"created topic {name} with {size}; `odradek topic delete {name}` removes it")
    description = existing_topic(cluster, name)
    cluster.latest_offsets(name, [partition.id for partition in description.partitions])
    return description


def existing_topic(cluster: Cluster, name: str) -> TopicDescription:
    try:
        return cluster.describe_topic(name)
    except Failure as failure:
        raise Failure(f"{failure.message}; `odradek bench produce` creates and fills one") from None


def written_so_far(cluster: Cluster, description: TopicDescription) -> int:
    """The sum of the partitions' end offsets: its growth is the number of records that a run has written."""
    partitions = [partition.id for partition in description.partitions]
    return sum(cluster.latest_offsets(description.name, partitions).values())


def payload(size_bytes: int) -> bytes:
    """Text that compresses about as well as JSON. It is the same in every run."""
    words = random.Random(7).choices(
        [b"pressure", b"temperature", b"oil", b"rig", b"107", b"30", b"18", b"valve"], k=min(size_bytes, PAYLOAD_WORDS)
    )
    text = b" ".join([*words, b""])
    return (text * (size_bytes // len(text) + 1))[:size_bytes] if text else b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceWorkload:
    """Records to write. A run ends after `records` or after `duration_ms`, whichever is first."""

    topic: str
    value: bytes
    records: int | None
    duration_ms: int | None
    rate: float | None
    batch_size: int
    linger_ms: int
    acks: str
    compression: str

    def is_over(self, sent: int, seconds: float) -> bool:
        has_all = self.records is not None and sent >= self.records
        return has_all or (self.duration_ms is not None and seconds * 1000 >= self.duration_ms)

    def chunk_records(self, most: int) -> int:
        """Number of records to produce at once: at a low rate, those of one millisecond."""
        return most if self.rate is None else max(1, min(most, int(self.rate * PACE_SLICE_S)))

    def pace(self, sent: int, began_at: float, wait: Callable[[float], Any]) -> None:
        """Wait until the next record is due. Returns at once without a rate, or when behind it."""
        if self.rate is None:
            return
        while (ahead_s := sent / self.rate - (time.perf_counter() - began_at)) > 0:
            wait(min(ahead_s, 0.1))

    def client_settings(self) -> dict[str, Any]:
        return {
            "acks": self.acks,
            "compression.type": self.compression,
            "batch.size": self.batch_size,
            "batch.num.messages": 1_000_000,
            "linger.ms": self.linger_ms,
            "queue.buffering.max.messages": 500_000,
            "message.timeout.ms": 30_000,
            "message.max.bytes": max(1_000_000, len(self.value) + 1000),
        }

    def facts(self) -> dict[str, Any]:
        return {"size": len(self.value), **fields_of(self, "batch_size linger_ms acks compression rate")}


Tick = Callable[[int], None]


@dataclass
class Result:
    """The result of a run. `latencies_ms` are a sample; `facts` are the options of the run."""

    bench: str
    records: int
    size_bytes: int
    seconds: float
    latencies_ms: Sequence[float] = ()
    latency_of: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def show(self, as_json: bool) -> None:
        """Print the result: sentences, or one object."""
        rate = self.records / self.seconds if self.seconds else 0.0
        rate_bytes = self.size_bytes / self.seconds if self.seconds else 0.0
        spread = percentiles(self.latencies_ms)
        if as_json:
            fields = {
                "bench": self.bench, **self.facts, "records": self.records, "bytes": self.size_bytes,
                "seconds": round(self.seconds, 4), "records_per_second": round(rate, 1),
                "bytes_per_second": round(rate_bytes, 1),
            }  # fmt: skip
            if spread:
                fields["latency_ms"] = {name: round(value, 4) for name, value in spread.items()}
            print_json(fields)
            return
        took = f"{count_text(self.records, 'record')}, {size_text(self.size_bytes)} in {self.seconds:.2f} s"
        say(f"{strong(self.bench)}  {took}")
        say(f"  {count_text(rate, 'record')}/s · {size_text(rate_bytes)}/s")
        if spread:
            shown = ", ".join(f"{name} {duration_text(value)}" for name, value in spread.items())
            say(f"  {self.latency_of}: {shown}")


@group(
    ("a million records of 100 bytes", "odradek bench produce"),
    ("read them back", "odradek bench consume"),
    ("latency at 10,000 records per second", "odradek bench latency --rate 10000 --duration 10s"),
)
def bench() -> None:
    """Measure a cluster: produce, consume, latency."""


@bench.command(
    ("a million records of 100 bytes", "odradek bench produce"),
    ("1 KB records in lz4 for half a minute", "odradek bench produce --size 1000 -z lz4 --duration 30s"),
    ("small batches", "odradek bench produce --batch-size 16384 --linger 0ms"),
    ("time of acknowledgement at 50,000 records per second", "odradek bench produce --rate 50000 --duration 10s"),
    short_help="Measure the throughput of producing.",
)
@topic_option
@option("--records -n", "N", RECORD_COUNT, "Records to write. Default: a million, unless --duration is given.")
@size_option
@batch_options(linger="5ms")
@option("--rate", "N", POSITIVE, "Records per second. Default: no limit.")
@duration_option
@cluster_options
def produce(cluster: Cluster, as_json: bool, topic: str, partitions: int, **options: Any) -> None:
    """Measure the throughput of producing, and the time until records are acknowledged."""
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
        result = write(cluster, workload, tick, settle)
    written = written_so_far(cluster, description) - before
    if written < result.records:
        reason = "see the broker's log" if cluster.last_error is None else cluster.last_error.str()
        raise Failure(f"only {written:,} of {count_text(result.records, 'record')} were written; {reason}")
    result.facts = {"topic": topic, "partitions": len(description.partitions), **workload.facts()}
    result.show(as_json)


def write(cluster: Cluster, workload: ProduceWorkload, tick: Tick, settle: Callable[[int], None]) -> Result:
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
        tick(size)
        workload.pace(sent, began_at, producer.poll)
    while producer.flush(0.5):
        pass
    settle(sent)
    seconds = time.perf_counter() - began_at
    return Result("produce", sent, sent * len(workload.value), seconds, latencies_ms, "acknowledged after")


@bench.command(
    ("everything that `odradek bench produce` has written", "odradek bench consume"),
    ("at most a million records of another topic", "odradek bench consume --topic pump -n 1000000"),
    short_help="Measure the throughput of consuming.",
)
@topic_option
@option("--records -n", "N", RECORD_COUNT, "Stop after N records. Default: at the end of the topic.")
@option(
    "--fetch-size", "BYTES", SIZE_BYTES, "Largest number of bytes per partition in one response.", default=1_048_576
)
@duration_option
@cluster_options
def consume(
    *, topic: str, records: int | None, fetch_size: int, duration_ms: int | None, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Measure the throughput of consuming a topic from its beginning to its end."""
    description = existing_topic(cluster, topic)
    partitions = [partition.id for partition in description.partitions]
    found = find_ranges(cluster, topic, partitions, Start(from_beginning=True))
    ranges = [r for r in found if r.start_offset < r.end_offset]
    held = sum(r.end_offset - r.start_offset for r in ranges)
    if not held:
        raise Failure(f"topic {topic} is empty; `odradek bench produce` writes records")
    total = min(records or held, held)
    with progress_bar("consuming", total) as tick:
        result = read(cluster, topic, ranges, total, fetch_size, duration_ms, tick)
    result.facts = {"topic": topic, "partitions": len(partitions), "fetch_size": fetch_size}
    result.show(as_json)


def read(
    cluster: Cluster, topic: str, ranges: list[PartitionRange], total: int, fetch_size: int,
    duration_ms: int | None, tick: Tick,
) -> Result:  # fmt: skip
    """The time starts when partitions are assigned. Records are counted, not decoded."""
    from confluent_kafka import TopicPartition

    consumer = cluster.consumer({
        "fetch.message.max.bytes": fetch_size, "queued.max.messages.kbytes": 262_144,
        "queued.min.messages": 1_000_000, "check.crcs": False, "enable.partition.eof": True,
    })  # fmt: skip
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
                if error is not None and error.name() != "_PARTITION_EOF":
                    raise cluster.failure(error, f"topic {topic}, partition {event.partition()}")
                unread.discard(event.partition())
                messages.remove(event)
            count += len(messages)
            size_bytes += sum(map(len, messages))
            tick(len(messages))
    finally:
        close_consumer(consumer, CLOSE_TIMEOUT_S)
    return Result("consume", count, size_bytes, seconds)


@bench.command(
    ("1,000 records per second for five seconds", "odradek bench latency"),
    ("10,000 records per second, as JSON", "odradek bench latency --rate 10000 --duration 10s --format json"),
    ("one partition, leader only", "odradek bench latency --topic lat-1 --partitions 1 --acks 1"),
    short_help="Measure the time from producer to consumer.",
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
        from confluent_kafka import TopicPartition

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
            tick(chunk)
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
    return Result("latency", sent, sent * len(workload.value), seconds, latencies, "end to end")
