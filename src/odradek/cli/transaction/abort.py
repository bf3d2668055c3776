"""`odradek transaction abort`: end a transaction in one partition by an abort marker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.client.options import cluster_options, topic_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import OFFSET, PARTITION
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("partition and start offset as find-hanging prints them", "odradek transaction find-hanging"),
        ("", "odradek transaction abort orders --partition 2 --start-offset 1041"),
    ]
)
@topic_argument
@click.option("--partition", "-p", type=PARTITION, metavar="N", required=True, help="The partition.")
@click.option(
    "--start-offset", type=OFFSET, metavar="N", required=True, help="Offset of the transaction's first record there."
)
@yes_option
@cluster_options
def abort(topic: str, partition: int, start_offset: int, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Abort a transaction that is open in a partition, by its first offset there.

    The leader of the partition writes an abort marker, so that read_committed consumers can pass. The coordinator
    is not involved: abort only transactions that `find-hanging` shows. Others may be committed later in part.
    """
    from odradek.admin.transactions import (
        abort_transaction,
        partition_leaders,
        read_open_transactions,
    )

    leaders = partition_leaders(cluster, [topic])
    cluster.choose_partitions(topic, [partition])
    if (topic, partition) not in leaders:
        raise Failure(f"{topic}-{partition} has no leader")
    found = read_open_transactions(cluster.requests, {(topic, partition): leaders[topic, partition]})
    chosen = next((each for each in found if each.start_offset == start_offset), None)
    if chosen is None:
        offsets = ", ".join(str(each.start_offset) for each in found)
        has = f"transactions are open from offset {offsets}" if found else "no transaction is open there"
        raise Failure(f"no transaction of {topic}-{partition} begins at offset {start_offset}; {has}")
    confirm(f"Abort the transaction of producer {chosen.producer_id} in {topic}-{partition}?", yes)
    abort_transaction(cluster.requests, chosen)
    if as_json:
        print_json(
            {"topic": topic, "partition": partition, "start_offset": start_offset, "producer_id": chosen.producer_id}
        )
    else:
        say(f"aborted the transaction of producer {chosen.producer_id} in {topic}-{partition}")
