"""`odradek bench latency`: time from the producer's call until the consumer has the record."""

from __future__ import annotations

import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition

from odradek.admin.records.record_reader import PartitionRange, Start, find_ranges
from odradek.cli.bench.workload import (
    ProduceWorkload,
    Result,
    Tick,
    batch_options,
    bench_topic,
    payload,
    progress_bar,
    size_option,
    topic_option,
)
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import option
from odradek.cli.framework.parameter_types import DURATION_MS, POSITIVE
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

STAMP = struct.Struct(">Qq")  # which run, and when (monotonic nanoseconds)
WARM_UP_S = 0.5  # the first records pay for connections and caches
DRAIN_S = 5.0
SWITCH_S = 0.0002  # producer and consumer share the interpreter: 5 ms, Python's default, would be what is measured


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
