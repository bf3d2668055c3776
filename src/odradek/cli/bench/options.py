"""Options that the bench commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.cli.bench.topics import BENCH_TOPIC
from odradek.cli.client.name_completion import complete_topics
from odradek.cli.framework.parameter_types import PARTITION_COUNT, TOPIC_NAME, VALUE_SIZE_BYTES
from odradek.cli.framework.times import DurationType

F = TypeVar("F", bound=Callable[..., Any])

topic_option = click.option(
    "--topic", "-t", type=TOPIC_NAME, default=BENCH_TOPIC, show_default=True, shell_complete=complete_topics,
    metavar="TOPIC", help="The topic to use.",
)  # fmt: skip
partitions_option = click.option(
    "--partitions", "-p", type=PARTITION_COUNT, default=6, show_default=True, metavar="N",
    help="Partitions of the topic if it has to be created.",
)  # fmt: skip
size_option = click.option(
    "--size", "-s", type=VALUE_SIZE_BYTES, default=100, show_default=True, metavar="BYTES", help="Size of a value."
)
acks_option = click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Replicas to wait for: none, the leader, or all in-sync replicas.",
)
compression_option = click.option(
    "--compression", "-z", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none",
    show_default=True, help="Compression of the batches.",
)  # fmt: skip
duration_option = click.option(
    "--duration",
    "duration_ms",
    type=DurationType(),
    metavar="DURATION",
    help="Stop after this long, such as 10s or 1m.",
)
engine_option = click.option(
    "--engine", type=click.Choice(["client", "raw"]), default="client", show_default=True,
    help="`client` uses librdkafka; `raw` sends prepared requests and measures the broker alone, with little CPU.",
)  # fmt: skip
connections_option = click.option(
    "--connections", type=click.IntRange(min=1, max=64), default=2, show_default=True, metavar="N",
    help="Connections of the raw engine.",
)  # fmt: skip
