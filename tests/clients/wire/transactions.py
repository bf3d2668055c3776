"""Requests of transactions, one function each; answers are names of errors, and values where a test compares them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.clients.error_names import error_name
from tests.clients.wire.batches import Batch
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.wire import WireClient

TRANSACTIONAL = 0x10
GROUP, TRANSACTION = 0, 1  # types of coordinators
FIRST_IMPLICIT_PRODUCE = 12  # from this version on, a Produce adds its partitions to the transaction (KIP-890)
PATIENCE_SECONDS = 60.0
RETRIED = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}


class Identity(NamedTuple):
    error: str
    producer_id: int = -1
    epoch: int = -1


NOBODY = Identity("NONE")


def await_coordinator(connection: WireClient, key: str, key_type: int = TRANSACTION) -> None:
    """Wait until the broker coordinates the id: Kafka creates the topic after its first answer."""
    request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    eventually(
        lambda: not connection.call(request, FindCoordinatorResponse, 4).coordinators[0].error_code,
        f"a coordinator for {key}",
        seconds=PATIENCE_SECONDS,
    )


def init_producer(
    connection: WireClient,
    transactional_id: str | None,
    timeout_ms: int = 60_000,
    identity: Identity = NOBODY,
    version: int = 5,
) -> Identity:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = connection.call(request, InitProducerIdResponse, version)
        error = error_name(answer.error_code)
        if error not in RETRIED or time.monotonic() > deadline:
            return Identity(error, answer.producer_id, answer.producer_epoch)
        time.sleep(0.05)  # a poll's pause


def add_partitions(
    connection: WireClient,
    transactional_id: str,
    identity: Identity,
    topic: str,
    partitions: list[int],
    version: int = 3,
) -> list[str]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
    )
    answer = connection.call(request, AddPartitionsToTxnResponse, version)
    results = {
        (found.name, each.partition_index): error_name(each.partition_error_code)
        for found in answer.results_by_topic_v3_and_below
        for each in found.results_by_partition
    }
    return [results[topic, index] for index in partitions]


def add_offsets(connection: WireClient, transactional_id: str, identity: Identity, group: str) -> str:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group,
    )
    return error_name(connection.call(request, AddOffsetsToTxnResponse, 4).error_code)


def commit_offset(
    connection: WireClient,
    transactional_id: str,
    identity: Identity,
    group: str,
    topic: str,
    offset: int,
    version: int = 5,
    member: tuple[str, int] = ("", -1),
) -> str:
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        member_id=member[0],
        generation_id=member[1],
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
                ],
            )
        ],
    )
    answer = connection.call(request, TxnOffsetCommitResponse, version)
    return error_name(answer.topics[0].partitions[0].error_code)


def end(
    connection: WireClient, transactional_id: str, identity: Identity, *, commits: bool, version: int = 5
) -> Identity:
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        committed=commits,
    )
    answer = connection.call(request, EndTxnResponse, version)
    return Identity(error_name(answer.error_code), answer.producer_id, answer.producer_epoch)


def send(
    connection: WireClient,
    transactional_id: str | None,
    identity: Identity,
    topic: str,
    sequence: int,
    partition: int = 0,
    version: int = FIRST_IMPLICIT_PRODUCE,
    *,
    is_transactional: bool = True,
    timestamp_ms: int | None = None,
) -> tuple[str, int]:
    """The error and base offset of a batch of one record."""
    batch = Batch(
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        base_sequence=sequence,
        timestamp_ms=time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms,
        attributes=TRANSACTIONAL if is_transactional else 0,
    )
    data = PartitionProduceData(index=partition, records=memoryview(batch.encode()))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    answer = connection.call(request, ProduceResponse, version).responses[0].partition_responses[0]
    return error_name(answer.error_code), answer.base_offset


class Described(NamedTuple):
    error: str
    state: str
    epoch: int
    partitions: int
    has_start: bool


def describe(connection: WireClient, transactional_id: str) -> Described:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = connection.call(request, DescribeTransactionsResponse, 0).transaction_states
    return Described(
        error_name(found.error_code),
        found.transaction_state,
        found.producer_epoch,
        sum(len(each.partitions) for each in found.topics),
        found.transaction_start_time_ms > 0,
    )


def await_state(connection: WireClient, transactional_id: str, *states: str) -> Described:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := describe(connection, transactional_id)).state not in states and time.monotonic() < deadline:
        time.sleep(0.02)  # a poll's pause
    return found
