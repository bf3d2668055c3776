"""Requests about transactions: listed, described, and aborted in partitions where no coordinator will end them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.admin.broker_requests import BrokerRequests, retry_while_loading
from odradek.admin.cluster import CONNECT_TIMEOUT_S
from odradek.admin.errors import NoAnswer, check
from odradek.admin.request_parts import PARTITIONS_PER_REQUEST, by_topic, in_parts
from odradek.admin.wire import call
from odradek.conventions.failures import Failure
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.admin.cluster import Cluster
    from odradek.admin.wire import SecuredAddress
    from odradek.protocol.messages.describe_transactions import TransactionState

REQUEST_TIMEOUT_S = 15.0
TRANSACTION_COORDINATOR = 1


class Broker(NamedTuple):
    broker_id: int
    address: SecuredAddress


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    transactional_id: str
    coordinator: Broker
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in a partition, as the partition's leader knows it."""

    topic: str
    partition: int
    leader: Broker
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


def read_brokers(cluster: Cluster, timeout_s: float = REQUEST_TIMEOUT_S) -> dict[int, Broker]:
    cluster.check_reachable(min(timeout_s, CONNECT_TIMEOUT_S))
    brokers = BrokerRequests(cluster, timeout_s).describe().brokers.values()
    return {
        each.broker_id: Broker(each.broker_id, cluster.address(*each.address)) for each in brokers if not each.is_fenced
    }


def list_transactions(
    brokers: Iterable[Broker],
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    open_for_ms: int = -1,
    pattern: str | None = None,
    missing: dict[int, str] | None = None,
) -> list[ListedTransaction]:
    """The transactions of all coordinators, in the order of their ids. Why a broker did not answer is added to
    `missing`, or raised without it."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=open_for_ms,
        transactional_id_pattern=pattern,
    )
    version = 2 if pattern is not None else 1 if open_for_ms >= 0 else 0  # the oldest that has what is asked
    found = []
    for broker in brokers:
        try:
            answer = retry_while_loading(
                lambda broker=broker: call(broker.address, request, ListTransactionsResponse, version),  # type: ignore[misc]  # mypy does not infer a lambda with a default
                lambda answer: answer.error_code,
            )
        except NoAnswer as failure:
            if missing is None:
                raise
            missing[broker.broker_id] = failure.message
            continue
        check(answer.error_code, None, f"transactions of broker {broker.broker_id}")
        found += [
            ListedTransaction(each.transactional_id, broker, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]
    return sorted(found, key=lambda each: each.transactional_id)


def find_coordinator(brokers: dict[int, Broker], transactional_id: str) -> Broker:
    """As the first broker knows it that answers."""
    request = FindCoordinatorRequest(coordinator_keys=[transactional_id], key_type=TRANSACTION_COORDINATOR)
    reason = Failure("the cluster has no brokers")
    for broker in brokers.values():
        try:
            answer = retry_while_loading(
                lambda broker=broker: call(broker.address, request, FindCoordinatorResponse, 4).coordinators[0],  # type: ignore[misc]  # mypy does not infer a lambda with a default
                lambda coordinator: coordinator.error_code,
            )
        except Failure as failure:
            reason = failure
            continue
        check(answer.error_code, None, f"coordinator of {transactional_id}")
        return Broker(answer.node_id, broker.address._replace(host=answer.host, port=answer.port))
    raise reason


def describe_transaction(brokers: dict[int, Broker], transactional_id: str) -> tuple[Broker, TransactionState]:
    """The coordinator of a transactional id and what it knows; Failure if there is no such id."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    coordinator = find_coordinator(brokers, transactional_id)
    state = retry_while_loading(
        lambda: call(coordinator.address, request, DescribeTransactionsResponse, 0).transaction_states[0],
        lambda state: state.error_code,
    )
    check(state.error_code, None, f"transaction {transactional_id}")
    return coordinator, state


def partition_leaders(
    cluster: Cluster, brokers: dict[int, Broker], topics: Iterable[str]
) -> dict[tuple[str, int], Broker]:
    """The leaders of the partitions of topics; partitions without a leader are left out."""
    return {
        (topic.name, partition.id): brokers[partition.leader.broker_id]
        for topic in cluster.describe_topics(topics)
        for partition in topic.partitions
        if partition.leader is not None and partition.leader.broker_id in brokers
    }


def read_open_transactions(leaders: dict[tuple[str, int], Broker]) -> list[OpenTransaction]:
    """The transactions that are open in partitions, by topic, partition and start offset."""
    by_broker: dict[Broker, list[tuple[str, int]]] = defaultdict(list)
    for partition, leader in leaders.items():
        by_broker[leader].append(partition)
    found = [
        each
        for broker, partitions in by_broker.items()
        for part in in_parts(sorted(partitions), PARTITIONS_PER_REQUEST)
        for each in _open_transactions_of(broker, part)
    ]
    return sorted(found, key=lambda each: (each.topic, each.partition, each.start_offset))


def _open_transactions_of(broker: Broker, partitions: Iterable[tuple[str, int]]) -> Iterator[OpenTransaction]:
    request = describe_producers_request(partitions)
    for described in call(broker.address, request, DescribeProducersResponse, 0).topics:
        for each in described.partitions:
            check(each.error_code, None, f"producers of {described.name}-{each.partition_index}")
            yield from open_transactions_in(described.name, each, broker)


def describe_producers_request(partitions: Iterable[tuple[str, int]]) -> DescribeProducersRequest:
    topics = by_topic(partitions)
    return DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()]
    )


def open_transactions_in(topic: str, partition: PartitionResponse, leader: Broker) -> Iterator[OpenTransaction]:
    for producer in partition.active_producers:
        if producer.current_txn_start_offset >= 0:
            yield _open_transaction(topic, partition.partition_index, leader, producer)


def _open_transaction(topic: str, partition: int, leader: Broker, producer: ProducerState) -> OpenTransaction:
    return OpenTransaction(
        topic,
        partition,
        leader,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
        producer.last_timestamp,
    )


def abort_transaction(found: OpenTransaction) -> None:
    """Write an abort marker to the partition, as kafka-transactions does; Failure if the leader refuses it."""
    marker = WritableTxnMarker(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=found.topic, partition_indexes=[found.partition])],
        coordinator_epoch=max(found.coordinator_epoch, 0),  # −1 if the producer has ended no transaction here
    )
    answer = call(found.leader.address, WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, 1)
    error_code = answer.markers[0].topics[0].partitions[0].error_code
    check(error_code, None, f"transaction of producer {found.producer_id} in {found.topic}-{found.partition}")


def without_known(brokers: dict[int, Broker], found: list[OpenTransaction]) -> list[OpenTransaction]:
    """The transactions whose producer id has no transactional id, or whose partition its transaction does not have."""
    if not found:
        return []
    listed = list_transactions(brokers.values(), producer_ids={each.producer_id for each in found})
    known = set()
    for transaction in listed:
        _coordinator, state = describe_transaction(brokers, transaction.transactional_id)
        known |= {
            (state.producer_id, topic.topic, partition) for topic in state.topics for partition in topic.partitions
        }
    return [each for each in found if (each.producer_id, each.topic, each.partition) not in known]


def transaction_object(coordinator: Broker, state: TransactionState, now_ms: int) -> dict[str, Any]:
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
