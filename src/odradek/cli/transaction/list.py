"""`odradek transaction list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.kafka_admin import AclOperation
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import state_option
from odradek.cli.framework.output import note_missing, print_columns, print_json, say
from odradek.cli.framework.parameter_types import TEXT, NumberType
from odradek.cli.framework.times import DurationType
from odradek.conventions.figures import INT64_MAX

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
STATES = ("Empty", *OPEN_STATES, "CompleteCommit", "CompleteAbort")


@command(
    "list",
    examples=[
        ("every transactional id", "odradek transaction list"),
        ("transactions that have been open for a minute", "odradek transaction list --open-for 1m"),
        ("by a regular expression", "odradek transaction list --pattern 'billing-.*' --state Ongoing"),
    ],
)
@state_option("transactions", STATES)
@click.option(
    "--producer-id",
    "producer_ids",
    type=NumberType(0, INT64_MAX),
    metavar="N",
    multiple=True,
    help="Only the transactions of this producer id. Repeatable.",
)
@click.option(
    "--open-for",
    "open_for_ms",
    type=DurationType(),
    metavar="DURATION",
    help="Only transactions that have been open for longer, such as 30s or 1h.",
)
@click.option(
    "--pattern",
    type=TEXT,
    metavar="REGEX",
    help="Only transactional ids that match this regular expression (RE2) as a whole.",
)
@cluster_options
def list_transactions(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    open_for_ms: int | None,
    pattern: str | None,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """List the transactional ids of the cluster, with coordinator, producer id and state."""
    from odradek.admin import transactions as requests

    missing: dict[int, str] = {}
    found = requests.list_transactions(
        requests.read_brokers(cluster).values(),
        # Brokers compare the time since the last start, also of transactions that have ended.
        states=states or (OPEN_STATES if open_for_ms is not None else ()),
        producer_ids=producer_ids,
        open_for_ms=-1 if open_for_ms is None else open_for_ms,
        pattern=pattern,
        missing=missing,
    )
    note_missing(missing, "transactions")
    if as_json:
        for each in found:
            print_json(
                {
                    "transactional_id": each.transactional_id,
                    "coordinator": each.coordinator.broker_id,
                    "producer_id": each.producer_id,
                    "state": each.state,
                }
            )
    elif found:
        print_columns(
            ["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"],
            [(each.transactional_id, each.coordinator.broker_id, each.producer_id, each.state) for each in found],
        )
    elif not cluster.may(AclOperation.DESCRIBE):
        say(f"no transactions that {cluster.principal} may describe; an admin allows it with `odradek acl add`")
    else:
        is_filtered = bool(states or producer_ids or open_for_ms is not None or pattern)
        say(
            "no such transactions" if is_filtered else "no transactions; a producer with a transactional.id begins them"
        )
