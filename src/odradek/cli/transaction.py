"""`odradek transaction`: list, describe and abort transactions, and find those that hang."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from odradek.admin import transactions
from odradek.admin.broker_requests import live
from odradek.cli.client import options as client
from odradek.cli.framework import output
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import confirm, option, repeatable, state_option, yes_option
from odradek.cli.framework.parameter_types import DURATION_MS, OFFSET, PARTITION, TEXT, TOPIC_NAME, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX, age_text, count_text, iso_text
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
STATES = ("Empty", *OPEN_STATES, "CompleteCommit", "CompleteAbort")
PLACE = "topic partition start_offset producer_id producer_epoch"


@group(
    ("transactions that have been open for a minute", "odradek transaction list --open-for 1m"),
    ("coordinator, state, partitions", "odradek transaction describe billing-1"),
    ("transactions that hold back read_committed consumers for ever", "odradek transaction find-hanging"),
    name="transaction",
)
def transaction() -> None:
    """List, describe and abort transactions, and find those that hang."""


@transaction.command(
    ("every transactional id", "odradek transaction list"),
    ("transactions that have been open for a minute", "odradek transaction list --open-for 1m"),
    ("by a regular expression", "odradek transaction list --pattern 'billing-.*' --state Ongoing"),
    name="list",
    short_help="List the transactional ids of the cluster.",
)
@state_option("transactions", STATES)
@repeatable("--producer-id producer_ids", "N", NumberType(0, INT64_MAX), "Only the transactions of this producer id.")
@option(
    "--open-for open_for_ms", "DURATION", DURATION_MS,
    "Only transactions that have been open for longer, such as 30s or 1h.",
)  # fmt: skip
@option("--pattern", "REGEX", TEXT, "Only transactional ids that match this regular expression (RE2) as a whole.")
@client.cluster_options
def list_transactions(
    states: tuple[str, ...], producer_ids: tuple[int, ...], open_for_ms: int | None, pattern: str | None,
    cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """List the transactional ids of the cluster, with coordinator, producer id and state."""
    missing: dict[int, str] = {}
    found = transactions.list_transactions(
        cluster.requests,
        # Brokers compare the time since the last start, also of transactions that have ended.
        states=states or (OPEN_STATES if open_for_ms is not None else ()),
        producer_ids=producer_ids,
        open_for_ms=-1 if open_for_ms is None else open_for_ms,
        pattern=pattern,
        missing=missing,
    )
    output.note_missing(missing, "transactions")
    nothing = "no transactions; a producer with a transactional.id begins them"
    if states or producer_ids or open_for_ms is not None or pattern:
        nothing = "no such transactions"
    if not found and not as_json:
        nothing = client.nothing_visible(cluster, "transactions", nothing, Operation.DESCRIBE)
    objects = [{**each._asdict(), "coordinator": each.coordinator.broker_id} for each in found]
    titles = ["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"]
    output.print_list(objects, titles, otherwise=nothing, as_json=as_json)


@transaction.command(
    ("coordinator, state, partitions", "odradek transaction describe billing-1"),
    ("the state, for a script", "odradek transaction describe billing-1 --format json | jq -r .state"),
    short_help="Show the state and the partitions of transactions.",
)
@client.transactional_ids_argument
@client.cluster_options
def describe(names: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """Show coordinator, state, timeout, start and partitions of transactions."""
    described = (transactions.describe_transaction(cluster.requests, name) for name in dict.fromkeys(names))
    objects = (transactions.transaction_object(*each, now_ms=int(time.time() * 1000)) for each in described)
    output.print_each(objects, dict, print_transaction, as_json=as_json)


def print_transaction(described: dict[str, Any]) -> None:
    facts = [described["state"], f"timeout {age_text(described['timeout_ms'])}"]
    if described["partitions"]:
        facts.append(count_text(len(described["partitions"]), "partition"))
    output.say(f"{output.strong(described['transactional_id'])}  {' · '.join(facts)}")
    facts = [
        f"producer {described['producer_id']}, epoch {described['producer_epoch']}",
        output.faint(f"coordinator {described['coordinator']}"),
    ]
    if described["start_ms"] is not None:
        facts.insert(0, f"began {iso_text(described['start_ms'])}, {age_text(described['duration_ms'])} ago")
    output.say(" · ".join(facts))
    if described["partitions"]:
        output.say()
        output.print_columns(["TOPIC", "PARTITION"], [list(each.values()) for each in described["partitions"]])


@transaction.command(
    ("partition and start offset as find-hanging prints them", "odradek transaction find-hanging"),
    ("", "odradek transaction abort orders --partition 2 --start-offset 1041"),
    short_help="Abort a transaction that is open in a partition.",
)
@client.topic_argument
@option("--partition -p", "N", PARTITION, "The partition.", required=True)
@option("--start-offset", "N", OFFSET, "Offset of the transaction's first record there.", required=True)
@yes_option
@client.cluster_options
def abort(topic: str, partition: int, start_offset: int, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Abort a transaction that is open in a partition, by its first offset there.

    The leader of the partition writes an abort marker, so that read_committed consumers can pass. The coordinator
    is not involved: abort only transactions that `find-hanging` shows. Others may be committed later in part.
    """
    chosen = transactions.find_open_transaction(cluster, topic, partition, start_offset)
    confirm(f"Abort the transaction of producer {chosen.producer_id} in {topic}-{partition}?", yes)
    transactions.abort_transaction(cluster.requests, chosen)
    aborted = output.fields_of(chosen, "topic partition start_offset producer_id")
    text = f"aborted the transaction of producer {chosen.producer_id} in {topic}-{partition}"
    output.print_result(aborted, text, as_json=as_json)


@transaction.command(
    ("in all partitions of the cluster", "odradek transaction find-hanging"),
    ("in a topic", "odradek transaction find-hanging --topic orders"),
    ("if brokers allow transactions of an hour", "odradek transaction find-hanging --max-timeout 1h"),
    name="find-hanging",
    short_help="Find open transactions that no coordinator knows.",
)
@option("--broker-id", "N", NumberType(0, INT32_MAX), "Only partitions that this broker leads.")
@option("--topic", "TOPIC", TOPIC_NAME, "Only partitions of this topic.", shell_complete=client.complete_topics)
@option(
    "--max-timeout max_timeout_ms", "DURATION", DURATION_MS,
    "The brokers' transaction.max.timeout.ms: younger transactions are not examined.", default="15m",
)  # fmt: skip
@client.cluster_options
def find_hanging(
    broker_id: int | None, topic: str | None, max_timeout_ms: int, cluster: Cluster, as_json: bool
) -> None:
    """Find transactions that are open in a partition for longer than --max-timeout, and that no coordinator knows.

    Such a transaction holds back read_committed consumers of its partition. `odradek transaction abort` ends it.
    """
    brokers = {each.broker_id for each in live(cluster.requests.describe().brokers)}
    if broker_id is not None and broker_id not in brokers:
        raise Failure(f"there is no broker {broker_id}; `odradek cluster info` shows those that run")
    leaders = transactions.partition_leaders(cluster, [topic] if topic is not None else cluster.topic_names())
    chosen = {key: leader for key, leader in leaders.items() if broker_id in (None, leader.broker_id)}
    now_ms = int(time.time() * 1000)
    found = transactions.read_open_transactions(cluster.requests, chosen)
    old = [each for each in found if now_ms - each.last_timestamp_ms > max_timeout_ms]
    hanging = transactions.without_known(cluster.requests, old)
    names = f"{PLACE} coordinator_epoch last_timestamp_ms"
    objects = [{**output.fields_of(each, names), "open_for_ms": now_ms - each.last_timestamp_ms} for each in hanging]
    titles = ["TOPIC", "PARTITION", "START OFFSET", "PRODUCER ID", "EPOCH", "OPEN FOR"]
    rows = [[*output.values_of(each, PLACE), age_text(now_ms - each.last_timestamp_ms)] for each in hanging]
    output.print_list(objects, titles, rows, otherwise="no hanging transactions", as_json=as_json)
