"""Transactions: listed, described and aborted, by the requests of `odradek transaction`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin import transactions
from odradek.admin.errors import NotAuthorized
from odradek.admin.transactions import ListedTransaction, OpenTransaction, transaction_object
from odradek.console.cluster.connection import CLUSTER, needs
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from odradek.admin.cluster import Cluster

__all__ = ["ListedTransaction", "OpenTransaction"]


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """The state that the coordinator has, and the parts that are open in partitions."""

    facts: Mapping[str, Any]
    open: Sequence[OpenTransaction]


class TransactionList(NamedTuple):
    """`failures` of the brokers whose transactions are missing."""

    found: list[ListedTransaction]
    failures: list[str]


def list_transactions(cluster: Cluster) -> TransactionList:
    """Failure if no broker answers."""
    found: list[ListedTransaction] = []
    failures: list[str] = []
    brokers = transactions.live_brokers(cluster.requests).values()
    for broker in brokers:
        try:
            found += transactions.list_transactions(cluster.requests, [broker])
        except NotAuthorized:
            raise
        except Failure as failure:
            failures.append(failure.message)
    if brokers and len(failures) == len(brokers):
        raise Failure(failures[0])
    return TransactionList(found, failures)


def describe_transaction(cluster: Cluster, name: str, now_ms: int) -> DescribedTransaction:
    with needs("Describe", f"transactional-id {name}"):
        coordinator, state = transactions.describe_transaction(cluster.requests, name)
    facts = transaction_object(coordinator, state, now_ms)
    keys = {(each["topic"], each["partition"]) for each in facts["partitions"]}
    leaders = transactions.partition_leaders(cluster, {topic for topic, _ in keys}) if keys else {}
    with needs("Read", "the topics of the transaction"):
        found = transactions.read_open_transactions(
            cluster.requests, {key: leaders[key] for key in keys if key in leaders}
        )
    return DescribedTransaction(facts, [each for each in found if each.producer_id == state.producer_id])


def abort_in_partition(cluster: Cluster, topic: str, partition: int, start_offset: int) -> None:
    """Write an abort marker; Failure if no transaction begins there."""
    leaders = transactions.partition_leaders(cluster, [topic])
    if (topic, partition) not in leaders:
        raise Failure(f"{topic}-{partition} has no leader")
    found = transactions.read_open_transactions(cluster.requests, {(topic, partition): leaders[topic, partition]})
    chosen = next((each for each in found if each.start_offset == start_offset), None)
    if chosen is None:
        raise Failure(f"no open transaction of {topic}-{partition} begins at offset {start_offset}")
    with needs("Alter", CLUSTER):
        transactions.abort_transaction(cluster.requests, chosen)
