"""`odradek transaction describe`: coordinator, state, timeout and partitions of transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from odradek.admin.transactions import transaction_object
from odradek.cli.client.options import cluster_options, transactional_ids_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import faint, print_columns, print_json, say, strong
from odradek.conventions.figures import age_text, count_text, iso_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("coordinator, state, partitions", "odradek transaction describe billing-1"),
        ("the state, for a script", "odradek transaction describe billing-1 --format json | jq -r .state"),
    ]
)
@transactional_ids_argument
@cluster_options
def describe(names: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """Show coordinator, state, timeout, start and partitions of transactions."""
    from odradek.admin.transactions import describe_transaction

    for number, name in enumerate(dict.fromkeys(names)):
        described = transaction_object(*describe_transaction(cluster.requests, name), now_ms=int(time.time() * 1000))
        if as_json:
            print_json(described)
        else:
            if number:
                say()
            print_transaction(described)


def print_transaction(described: dict[str, Any]) -> None:
    facts = [described["state"], f"timeout {age_text(described['timeout_ms'])}"]
    if described["partitions"]:
        facts.append(count_text(len(described["partitions"]), "partition"))
    say(f"{strong(described['transactional_id'])}  {' · '.join(facts)}")
    began = []
    if described["start_ms"] is not None:
        began = [f"began {iso_text(described['start_ms'])}, {age_text(described['duration_ms'])} ago"]
    producer = f"producer {described['producer_id']}, epoch {described['producer_epoch']}"
    say(" · ".join([*began, producer, faint(f"coordinator {described['coordinator']}")]))
    if described["partitions"]:
        say()
        print_columns(["TOPIC", "PARTITION"], [(each["topic"], each["partition"]) for each in described["partitions"]])
