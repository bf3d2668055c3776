"""The topic and the records of a bench, the options that its commands share, its results and its progress bar."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.client.options import acks_option, complete_topics, compression_option
from odradek.cli.framework.options import option, with_options
from odradek.cli.framework.output import fields_of, note, print_json, say, shows_progress, strong
from odradek.cli.framework.parameter_types import DURATION_MS, PARTITION_COUNT, SIZE_BYTES, TOPIC_NAME, VALUE_SIZE_BYTES
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, duration_text, percentiles, size_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster, TopicDescription

BENCH_TOPIC = "odradek-bench"
PAYLOAD_WORDS = 100_000  # a larger value repeats the text
PACE_SLICE_S = 0.001

topic_option = option(
    "--topic -t", "TOPIC", TOPIC_NAME, "The topic to use.", default=BENCH_TOPIC, shell_complete=complete_topics
)
size_option = option("--size -s", "BYTES", VALUE_SIZE_BYTES, "Size of a value.", default=100)
batch_size_option = option("--batch-size", "BYTES", SIZE_BYTES, "Largest batch.", default=1_000_000)
partitions_option = option(
    "--partitions -p", "N", PARTITION_COUNT, "Partitions of the topic if it has to be created.", default=6
)
RUN_OPTIONS = (
    option("--duration duration_ms", "DURATION", DURATION_MS, "Stop after this long, such as 10s or 1m."),
    option(
        "--engine", None, click.Choice(["client", "raw"]),
        "`client` uses librdkafka; `raw` sends prepared requests and measures the broker alone, with little CPU.",
        default="client",
    ),
    option("--connections", "N", click.IntRange(min=1, max=64), "Connections of the raw engine.", default=2),
)  # fmt: skip


def batch_options(linger: str) -> Callable[[Any], Any]:
    """The options that say how records become batches; `linger` is the default of `--linger`."""
    text = "How long a batch waits for more records."
    linger_option = option("--linger linger_ms", "DURATION", DURATION_MS, text, default=linger)
    options = (batch_size_option, linger_option, acks_option, compression_option, partitions_option)
    return lambda function: with_options(function, *options)


def run_options(function: Any) -> Any:
    return with_options(function, *RUN_OPTIONS)


def bench_topic(cluster: Cluster, name: str, partitions: int) -> TopicDescription:
    """The existing topic, or a new one. Its partitions have leaders when this returns."""
    if cluster.create_topic(name, partitions):
        note(
            f"created topic {name} with {count_text(partitions, 'partition')}; `odradek topic delete {name}` removes it"
        )
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


def check_plaintext(cluster: Cluster) -> None:
    """The raw engine has neither TLS nor SASL."""
    protocol = cluster.properties.get("security.protocol", "plaintext")
    if protocol.lower() != "plaintext":
        raise Failure(f"--engine raw speaks plaintext only, not {protocol}; use --engine client")


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
    connections: int = 2
    in_flight: int = 5

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
        ahead_s = sent / self.rate - (time.perf_counter() - began_at)
        while ahead_s > 0:
            wait(min(ahead_s, 0.1))
            ahead_s = sent / self.rate - (time.perf_counter() - began_at)

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
    engine: str
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
                **fields_of(self, "bench engine"),
                **self.facts,
                "records": self.records,
                "bytes": self.size_bytes,
                "seconds": round(self.seconds, 4),
                "records_per_second": round(rate, 1),
                "bytes_per_second": round(rate_bytes, 1),
            }
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


def progress_bar(description: str, total: int | None) -> AbstractContextManager[Tick]:
    """A bar on a terminal. Its value is a function that takes the number of records so far."""
    if not shows_progress():
        return nullcontext(lambda _done: None)
    from odradek.cli.framework.progress import count_progress

    return count_progress(description, total)
