"""`odradek bench produce`: throughput of producing, and the time until records are acknowledged."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.bench.raw_engine import produce_raw
from odradek.cli.bench.workload import (
    ProduceWorkload,
    Result,
    Tick,
    batch_options,
    bench_topic,
    check_plaintext,
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
from odradek.cli.framework.parameter_types import POSITIVE, RECORD_COUNT
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError, Message

    from odradek.admin.cluster import Cluster

CHUNK_RECORDS = 1000
SAMPLE_EVERY_RECORDS = 100
SETTLE_S = 10.0


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
