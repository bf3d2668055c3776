"""`odradek transaction describe`: coordinator, state, timeout and partitions of transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from odradek.cli.client.options import cluster_options, transactional_ids_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import age_text, count_text, faint, print_columns, print_json, say, strong
from odradek.cli.framework.times import iso_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.transactions import Broker
    from odradek.protocol.messages.describe_transactions import TransactionState


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
    from odradek.admin.transactions import describe_transaction, read_brokers

    brokers = read_brokers(cluster)
    for number, name in enumerate(dict.fromkeys(names)):
        described = as_object(*describe_transaction(brokers, name), now_ms=int(time.time() * 1000))
        if as_json:
            print_json(described)
        else:
            if number:
                say()
            print_transaction(described)


def as_object(coordinator: Broker, state: TransactionState, now_ms: int) -> dict[str, Any]:
    """`start_ms` and `duration_ms` are None if no transaction has begun."""
    start_ms = state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None
    return {
        "transactional_id": state.transactional_id,
        "coordinator": coordinator.broker_id,
        "state": state.transaction_state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "timeout_ms": state.transaction_timeout_ms,
        "start_ms": start_ms,
        "duration_ms": None if start_ms is None else max(now_ms - start_ms, 0),
        "partitions": [
            {"topic": topic.topic, "partition": partition}
            for topic in sorted(state.topics, key=lambda topic: topic.topic)
            for partition in sorted(topic.partitions)
        ],
    }


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
