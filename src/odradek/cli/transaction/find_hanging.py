"""`odradek transaction find-hanging`: transactions that are open in a partition and that no coordinator will end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from odradek.admin.transactions import without_known
from odradek.cli.client.name_completion import complete_topics
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.cli.framework.parameter_types import TOPIC_NAME, NumberType
from odradek.cli.framework.times import DurationType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, age_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.transactions import OpenTransaction

LARGEST_TIMEOUT = "15m"  # the default of transaction.max.timeout.ms


@command(
    "find-hanging",
    examples=[
        ("in all partitions of the cluster", "odradek transaction find-hanging"),
        ("in a topic", "odradek transaction find-hanging --topic orders"),
        ("if brokers allow transactions of an hour", "odradek transaction find-hanging --max-timeout 1h"),
    ],
)
@click.option("--broker-id", type=NumberType(0, INT32_MAX), metavar="N", help="Only partitions that this broker leads.")
@click.option(
    "--topic", type=TOPIC_NAME, metavar="TOPIC", shell_complete=complete_topics, help="Only partitions of this topic."
)
@click.option(
    "--max-timeout",
    "max_timeout_ms",
    type=DurationType(),
    default=LARGEST_TIMEOUT,
    show_default=True,
    metavar="DURATION",
    help="The brokers' transaction.max.timeout.ms: younger transactions are not examined.",
)
@cluster_options
def find_hanging(
    broker_id: int | None, topic: str | None, max_timeout_ms: int, cluster: Cluster, as_json: bool
) -> None:
    """Find transactions that are open in a partition for longer than --max-timeout, and that no coordinator knows.

    Such a transaction holds back read_committed consumers of its partition. `odradek transaction abort` ends it.
    """
    from odradek.admin.transactions import (
        live_brokers,
        partition_leaders,
        read_open_transactions,
    )

    brokers = live_brokers(cluster.requests)
    if broker_id is not None and broker_id not in brokers:
        raise Failure(f"there is no broker {broker_id}; `odradek cluster info` shows those that run")
    leaders = partition_leaders(cluster, [topic] if topic is not None else cluster.topic_names())
    chosen = {key: leader for key, leader in leaders.items() if broker_id in (None, leader.broker_id)}
    now_ms = int(time.time() * 1000)
    old = [
        each
        for each in read_open_transactions(cluster.requests, chosen)
        if now_ms - each.last_timestamp_ms > max_timeout_ms
    ]
    hanging = without_known(cluster.requests, brokers.values(), old)
    if as_json:
        for each in hanging:
            print_json(as_object(each, now_ms))
    elif hanging:
        print_columns(
            ["TOPIC", "PARTITION", "START OFFSET", "PRODUCER ID", "EPOCH", "OPEN FOR"],
            [
                (
                    each.topic,
                    each.partition,
                    each.start_offset,
                    each.producer_id,
                    each.producer_epoch,
                    age_text(now_ms - each.last_timestamp_ms),
                )
                for each in hanging
            ],
        )
    else:
        say("no hanging transactions")


def as_object(found: OpenTransaction, now_ms: int) -> dict[str, str | int]:
    return {
        "topic": found.topic,
        "partition": found.partition,
        "start_offset": found.start_offset,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator_epoch": found.coordinator_epoch,
        "last_timestamp_ms": found.last_timestamp_ms,
        "open_for_ms": now_ms - found.last_timestamp_ms,
    }
