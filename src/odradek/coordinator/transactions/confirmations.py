"""Whether a transaction has begun in a partition, or may begin: the coordinator of the transaction decides. The leader
of the partition asks it, in this process or on another broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from odradek.coordinator.runtime.waiting_response import WaitingResponse, map_answer
from odradek.coordinator.transactions.outbox import Outbox
from odradek.coordinator.transactions.peers import CONFIRMATIONS
from odradek.coordinator.transactions.transaction import TransactionVersion
from odradek.coordinator.transactions.transaction_records import by_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Sequence

    from odradek.client.broker_address import BrokerAddress
    from odradek.coordinator.runtime.internal_topic import InternalTopic
    from odradek.coordinator.transactions.peers import Peers
    from odradek.coordinator.transactions.transaction import ProducerIdentity
    from odradek.host.clock import Clock
    from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult
    from odradek.protocol.topic_partition import TopicPartition

TIMEOUT_MS = 5_000.0  # the producer repeats its request, also to wait for another coordinator
CONFIRMATIONS_PER_REQUEST = 500


class Coordinator(Protocol):
    """The part of this process's coordinator that is used here."""

    topic: InternalTopic

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        version: TransactionVersion,
    ) -> ErrorCode | WaitingResponse: ...

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode] | WaitingResponse: ...


class ConfirmationRequest(NamedTuple):
    transactional_id: str
    producer: ProducerIdentity
    partitions: Collection[TopicPartition]
    joins: bool
    """The partitions join the transaction; otherwise they must have joined it."""


class _Sent(NamedTuple):
    wanted: ConfirmationRequest
    answer: WaitingResponse


class LocalConfirmations:
    """Asks the coordinator in this process."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def confirm(self, wanted: ConfirmationRequest) -> dict[TopicPartition, ErrorCode] | WaitingResponse:
        """The coordinator's answer for each partition."""
        transactional_id, producer, partitions, joins = wanted
        if joins:
            outcome = self._coordinator.add_partitions(transactional_id, producer, partitions, TransactionVersion.V2)
            return map_answer(outcome, lambda error: dict.fromkeys(partitions, error))
        return self._coordinator.verify_partitions(transactional_id, producer, partitions)


class ClusterConfirmations:
    """Asks the coordinators of a cluster. One that cannot be reached counts as not available."""

    def __init__(
        self, coordinator: Coordinator, peers: Peers, clock: Clock, run: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._coordinator = coordinator
        self._local = LocalConfirmations(coordinator)
        self._peers = peers
        self._outbox: Outbox[_Sent] = Outbox(self, run, clock, most_items=CONFIRMATIONS_PER_REQUEST)

    def confirm(self, wanted: ConfirmationRequest) -> dict[TopicPartition, ErrorCode] | WaitingResponse:
        leader = self._coordinator.topic.leader_of(wanted.transactional_id)
        if leader is None:
            return dict.fromkeys(wanted.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._peers.is_own(leader):
            return self._local.confirm(wanted)
        address = self._peers.address(leader)
        if address is None:
            return dict.fromkeys(wanted.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answer = WaitingResponse(lambda error: dict.fromkeys(wanted.partitions, error))
        self._outbox.add(address, _Sent(wanted, answer))
        return answer

    # BatchSender

    async def send(self, address: BrokerAddress, items: Sequence[_Sent], lane: int) -> None:
        assert lane == 0
        request = AddPartitionsToTxnRequest(transactions=[_encode(item.wanted) for item in items])
        client = self._peers.client(address, CONFIRMATIONS)
        response = await client.call(request, AddPartitionsToTxnResponse, timeout_ms=TIMEOUT_MS)
        for item, result in zip(items, response.results_by_transaction, strict=False):
            found = _errors(result)
            item.answer({each: found.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in item.wanted.partitions})
        error = ErrorCode(response.error_code)
        for item in items[len(response.results_by_transaction) :]:
            item.answer.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE if error is ErrorCode.NONE else error)

    def give_up(self, items: Sequence[_Sent]) -> None:
        for item in items:
            item.answer.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _encode(wanted: ConfirmationRequest) -> AddPartitionsToTxnTransaction:
    topics = by_topic(wanted.partitions)
    return AddPartitionsToTxnTransaction(
        transactional_id=wanted.transactional_id,
        producer_id=wanted.producer.producer_id,
        producer_epoch=wanted.producer.epoch,
        verify_only=not wanted.joins,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()],
    )


def _errors(result: AddPartitionsToTxnResult) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
