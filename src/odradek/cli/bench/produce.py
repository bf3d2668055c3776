"""`odradek bench produce`: how many records a second the cluster takes, and how soon it acknowledges them."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.bench.options import (
    acks_option,
    compression_option,
    connections_option,
    duration_option,
    engine_option,
    partitions_option,
    size_option,
    topic_option,
)
from odradek.cli.bench.raw_produce import run_raw
from odradek.cli.bench.results import Result, Tick, progress_bar
from odradek.cli.bench.topics import bench_topic, check_plaintext, payload, written_so_far
from odradek.cli.bench.workload import ProduceWorkload
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import count_text
from odradek.cli.framework.parameter_types import POSITIVE, RECORD_COUNT, SIZE_BYTES
from odradek.cli.framework.times import DurationType

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError, Message

    from odradek.cli.client.cluster import Cluster

CHUNK_RECORDS = 1000
SAMPLE_EVERY_RECORDS = 100
SETTLE_S = 10.0


@command(
    examples=[
        ("a million records of 100 bytes", "odradek bench produce"),
        ("1 KB records in lz4 for half a minute", "odradek bench produce --size 1000 -z lz4 --duration 30s"),
        ("small batches", "odradek bench produce --batch-size 16384 --linger 0ms"),
        ("what the broker can do, without a client in the way", "odradek bench produce --engine raw -n 5000000"),
        ("50,000 records a second: how soon acknowledged?", "odradek bench produce --rate 50000 --duration 10s"),
    ]
)
@topic_option
@click.option(
    "--records",
    "-n",
    type=RECORD_COUNT,
    metavar="N",
    help="Records to write; a million if neither this nor --duration is given.",
)
@size_option
@click.option(
    "--batch-size",
    type=SIZE_BYTES,
    default=1_000_000,
    show_default=True,
    metavar="BYTES",
    help="Largest batch.",
)
@click.option(
    "--linger",
    "linger_ms",
    type=DurationType(),
    default="5ms",
    show_default=True,
    metavar="DURATION",
    help="How long a batch waits for more records.",
)
@acks_option
@compression_option
@partitions_option
@click.option(
    "--rate",
    type=POSITIVE,
    metavar="N",
    help="Records a second; as fast as it goes if absent.",
)
@duration_option
@engine_option
@connections_option
@click.option(
    "--in-flight",
    type=click.IntRange(min=1, max=100),
    default=5,
    show_default=True,
    metavar="N",
    help="Requests in flight on each connection.",
)
@cluster_options
def produce(cluster: Cluster, as_json: bool, topic: str, partitions: int, engine: str, **options: Any) -> None:
    """How many records a second the cluster takes, and how soon it acknowledges them."""
    if engine == "raw":
        check_plaintext(cluster)
    description = bench_topic(cluster, topic, partitions)
    if options["records"] is None and options["duration_ms"] is None:
        options["records"] = 1_000_000
    workload = ProduceWorkload(topic=topic, value=payload(options.pop("size")), **options)
    before = written_so_far(cluster, description)

    def settle(sent: int) -> None:
        """Without acknowledgements only the log itself tells that the records have arrived."""
        deadline = time.monotonic() + SETTLE_S
        while workload.acks == "0" and written_so_far(cluster, description) < before + sent:
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)

    with progress_bar("producing", workload.records) as tick:
        if engine == "raw":
            result = run_raw(description, workload, tick, settle)
        else:
            result = run_client(cluster, workload, tick, settle)
    written = written_so_far(cluster, description) - before
    if written < result.records:
        raise Failure(f"only {written:,} of {count_text(result.records, 'record')} were written; {last_words(cluster)}")
    result.facts = {"topic": topic, "partitions": len(description.partitions), **workload.facts()}
    result.show(as_json)


def last_words(cluster: Cluster) -> str:
    return str(cluster.last_error.str()) if cluster.last_error is not None else "the broker's log may tell why"


def run_client(cluster: Cluster, workload: ProduceWorkload, tick: Tick, settle: Callable[[int], None]) -> Result:
    """As fast as librdkafka takes records, or at the rate asked for; one acknowledgement in a hundred is timed."""
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
