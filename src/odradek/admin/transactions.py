"""Requests about transactions: listed, described, and aborted in partitions where no coordinator will end them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.admin.broker_requests import TRANSACTION, ask_each, ask_loaded, by_topic, in_parts, live
from odradek.admin.errors import broker_failure, check
from odradek.conventions.failures import Failure
from odradek.protocol.messages import describe_producers, write_txn_markers
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster import Cluster
    from odradek.admin.offsets import Key
    from odradek.protocol.messages.describe_producers import PartitionResponse
    from odradek.protocol.messages.describe_transactions import TransactionState


class ListedTransaction(NamedTuple):
    transactional_id: str
    coordinator: KnownBroker
    producer_id: int
    state: str


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition, as the partition's leader knows it."""

    topic: str
    partition: int
    leader: KnownBroker
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


def list_transactions(
    requests: BrokerRequests, *, states: Iterable[str] = (), producer_ids: Iterable[int] = (), open_for_ms: int = -1,
    pattern: str | None = None, missing: dict[int, str] | None = None,
) -> list[ListedTransaction]:  # fmt: skip
    """Those of all coordinators, by id. Why a broker did not answer is added to `missing`, or raised without it."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=open_for_ms,
        transactional_id_pattern=pattern,
    )
    version = 2 if pattern is not None else 1 if open_for_ms >= 0 else 0  # the oldest that has what is asked

    def ask(broker: KnownBroker) -> list[ListedTransaction]:
        answer = ask_loaded(requests, broker, request, ListTransactionsResponse, version, "transactions")
        return [
            ListedTransaction(each.transactional_id, broker, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]

    found = ask_each(live(requests.describe().brokers), ask, missing)
    return sorted((each for listed in found for each in listed), key=lambda each: each.transactional_id)


def describe_transaction(requests: BrokerRequests, transactional_id: str) -> tuple[KnownBroker, TransactionState]:
    """The coordinator of a transactional id and what it knows; Failure if there is no such id."""

    def ask(coordinator: KnownBroker, names: list[str]) -> dict[str, tuple[KnownBroker, TransactionState] | int]:
        request = DescribeTransactionsRequest(transactional_ids=names)
        answer = requests.ask(coordinator, request, DescribeTransactionsResponse, 0)
        return {each.transactional_id: each.error_code or (coordinator, each) for each in answer.transaction_states}

    found = requests.ask_coordinators([transactional_id], ask, kind=TRANSACTION)[transactional_id]
    if isinstance(found, int):
        raise broker_failure(found, None, f"transaction {transactional_id}", "Describe")
    return found


def partition_leaders(cluster: Cluster, topics: Iterable[str]) -> dict[Key, KnownBroker]:
    """The leaders of the partitions of topics; partitions without a leader are left out."""
    return {
        (topic.name, partition.id): partition.leader
        for topic in cluster.describe_topics(topics)
        for partition in topic.partitions
        if partition.leader is not None
    }


def read_open_transactions(requests: BrokerRequests, leaders: Mapping[Key, KnownBroker]) -> list[OpenTransaction]:
    """The transactions that are open in partitions, by topic, partition and start offset."""
    by_broker: dict[KnownBroker, list[Key]] = defaultdict(list)
    for partition, leader in leaders.items():
        by_broker[leader].append(partition)
    found: list[OpenTransaction] = []
    for broker, partitions in by_broker.items():
        for part in in_parts(sorted(partitions)):
            for topic, described in read_producers(requests, broker, part):
                check(described.error_code, None, f"producers of {topic}-{described.partition_index}", "Read")
                found += open_transactions_in(topic, described, broker)
    return sorted(found, key=lambda each: (each.topic, each.partition, each.start_offset))


def read_producers(
    requests: BrokerRequests, leader: KnownBroker, partitions: Iterable[Key]
) -> Iterator[tuple[str, PartitionResponse]]:
    """What a leader returns for each of its partitions, with the topic."""
    new, by_name = describe_producers.TopicRequest, by_topic(partitions)
    topics = [new(name=name, partition_indexes=indexes) for name, indexes in by_name.items()]
    request = describe_producers.DescribeProducersRequest(topics=topics)
    for topic in requests.ask(leader, request, describe_producers.DescribeProducersResponse, 0).topics:
        yield from ((topic.name, each) for each in topic.partitions)


def open_transactions_in(topic: str, partition: PartitionResponse, leader: KnownBroker) -> Iterator[OpenTransaction]:
    for producer in partition.active_producers:
        if producer.current_txn_start_offset >= 0:
            identity = producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
            place = producer.current_txn_start_offset, producer.last_timestamp
            yield OpenTransaction(topic, partition.partition_index, leader, *identity, *place)


def find_open_transaction(cluster: Cluster, topic: str, partition: int, start_offset: int) -> OpenTransaction:
    """The transaction of a partition that begins at this offset."""
    leaders = partition_leaders(cluster, [topic])
    cluster.choose_partitions(topic, [partition])
    if (topic, partition) not in leaders:
        raise Failure(f"{topic}-{partition} has no leader")
    found = read_open_transactions(cluster.requests, {(topic, partition): leaders[topic, partition]})
    for each in found:
        if each.start_offset == start_offset:
            return each
    offsets = ", ".join(str(each.start_offset) for each in found)
    has = f"transactions are open from offset {offsets}" if found else "no transaction is open there"
    raise Failure(f"no transaction of {topic}-{partition} begins at offset {start_offset}; {has}")


def abort_transaction(requests: BrokerRequests, found: OpenTransaction) -> None:
    """Write an abort marker to the partition, as kafka-transactions does; Failure if the leader refuses it."""
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        transaction_result=False,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name=found.topic, partition_indexes=[found.partition])],
        coordinator_epoch=max(found.coordinator_epoch, 0),  # −1 if the producer has ended no transaction here
    )
    request = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    answer = requests.ask(found.leader, request, write_txn_markers.WriteTxnMarkersResponse, 1)
    error_code = answer.markers[0].topics[0].partitions[0].error_code
    check(error_code, None, f"transaction of producer {found.producer_id} in {found.topic}-{found.partition}", "Alter")


def without_known(requests: BrokerRequests, found: list[OpenTransaction]) -> list[OpenTransaction]:
    """The transactions whose producer id has no transactional id, or whose partition its transaction does not have."""
    if not found:
        return []
    listed = list_transactions(requests, producer_ids={each.producer_id for each in found})
    known = set()
    for transaction in listed:
        _coordinator, state = describe_transaction(requests, transaction.transactional_id)
        keys = {(topic.topic, partition) for topic in state.topics for partition in topic.partitions}
        known |= {(state.producer_id, *key) for key in keys}
    return [each for each in found if (each.producer_id, each.topic, each.partition) not in known]


def transaction_object(coordinator: KnownBroker, state: TransactionState, now_ms: int) -> dict[str, Any]:
    """`start_ms` and `duration_ms` are None if no transaction has begun."""
    start_ms = state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None
    partitions = sorted((topic.topic, partition) for topic in state.topics for partition in topic.partitions)
    return {
        "transactional_id": state.transactional_id,
        "coordinator": coordinator.broker_id,
        "state": state.transaction_state,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "timeout_ms": state.transaction_timeout_ms,
        "start_ms": start_ms,
        "duration_ms": None if start_ms is None else max(now_ms - start_ms, 0),
        "partitions": [{"topic": topic, "partition": partition} for topic, partition in partitions],
    }
