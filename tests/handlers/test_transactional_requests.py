"""Requests of transactional producers that cannot be served: the error decides what the client does next."""

from dataclasses import replace

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import create_topic

TRANSACTIONAL_ID, GROUP, TOPIC = "id", "group", "topic"
GROUPS, TRANSACTIONS = 0, 1  # the kinds of coordinators


def start_producer(broker: SimulatedBroker) -> tuple[int, int]:
    """A topic and both coordinators exist. Producer id and epoch."""
    create_topic(broker, TOPIC)
    for kind in (GROUPS, TRANSACTIONS):
        broker.call(FindCoordinatorRequest(coordinator_keys=["any"], key_type=kind), FindCoordinatorResponse)
    return init_producer(broker)


def init_producer(broker: SimulatedBroker) -> tuple[int, int]:
    request = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
    answer = broker.call(request, InitProducerIdResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer.producer_id, answer.producer_epoch


def commit_offset(broker: SimulatedBroker, producer: tuple[int, int], version: int) -> ErrorCode:
    offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID,
        group_id=GROUP,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[offset])],
    )
    answer = broker.call(request, TxnOffsetCommitResponse, version)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def depose(partition: Partition) -> None:
    """Another broker leads, and this one follows."""
    image = partition.image
    assert image is not None
    deposed = replace(image, leader=9, leader_epoch=image.leader_epoch + 1, partition_epoch=image.partition_epoch + 1)
    assert partition.become_follower(deposed) is ErrorCode.NONE


class TestTxnOffsetCommit:
    @pytest.mark.parametrize("version", [3, 5])
    @pytest.mark.parametrize("is_failed", [False, True])
    def test_a_broker_that_does_not_lead_the_groups_partition_is_not_its_coordinator(
        self, simulated: SimulatedBroker, version: int, is_failed: bool
    ) -> None:
        """Java's producer looks for the coordinator again after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and
        REQUEST_TIMED_OUT only; after NOT_LEADER_OR_FOLLOWER it asks the same broker again."""
        producer = start_producer(simulated)
        partition = simulated.partition(*simulated.services.groups.partition_of(GROUP))
        if is_failed:
            partition.fail()
        else:
            depose(partition)
        assert commit_offset(simulated, producer, version) is ErrorCode.NOT_COORDINATOR


class TestAddPartitionsToTxn:
    @pytest.mark.parametrize("verify_only", [False, True])
    def test_a_broker_repeats_all_partitions_if_the_coordinator_does_not_know_one(
        self, simulated: SimulatedBroker, verify_only: bool
    ) -> None:
        """Their leader knows a topic that the coordinator will know soon. Producers do not retry on
        OPERATION_NOT_ATTEMPTED, and their transaction would have to be aborted."""
        producer_id, producer_epoch = start_producer(simulated)
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=TRANSACTIONAL_ID,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=TOPIC, partitions=[0]),
                AddPartitionsToTxnTopic(name="new", partitions=[0]),
            ],
        )
        answer = simulated.call(AddPartitionsToTxnRequest(transactions=[transaction]), AddPartitionsToTxnResponse, 5)
        errors = {
            topic.name: topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_transaction[0].topic_results
        }
        assert errors == dict.fromkeys((TOPIC, "new"), ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def test_a_client_gets_the_error_of_the_partition_that_is_unknown(self, simulated: SimulatedBroker) -> None:
        producer_id, producer_epoch = start_producer(simulated)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTIONAL_ID,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=TOPIC, partitions=[0]),
                AddPartitionsToTxnTopic(name="unknown", partitions=[0]),
            ],
        )
        answer = simulated.call(request, AddPartitionsToTxnResponse, 3)
        errors = [each.results_by_partition[0].partition_error_code for each in answer.results_by_topic_v3_and_below]
        assert errors == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


class TestAddOffsetsToTxn:
    def test_nothing_joins_while_the_topic_of_offsets_cannot_be_created(
        self, simulated: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without the number of its partitions, the partition of the group is not known."""
        create_topic(simulated, TOPIC)
        find = FindCoordinatorRequest(coordinator_keys=["any"], key_type=TRANSACTIONS)
        simulated.call(find, FindCoordinatorResponse)
        producer_id, producer_epoch = init_producer(simulated)
        request = AddOffsetsToTxnRequest(
            transactional_id=TRANSACTIONAL_ID, producer_id=producer_id, producer_epoch=producer_epoch, group_id=GROUP
        )

        async def refuse() -> None: ...  # too few brokers: it is logged

        with monkeypatch.context() as patch:
            patch.setattr(simulated.services.groups.topic, "ensure", refuse)
            answer = simulated.call(request, AddOffsetsToTxnResponse)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert simulated.call(request, AddOffsetsToTxnResponse).error_code == ErrorCode.NONE
        shard = simulated.services.transactions.find(TRANSACTIONAL_ID)
        assert not isinstance(shard, ErrorCode)
        partition = simulated.services.groups.partition_of(GROUP)
        assert shard.transactions[TRANSACTIONAL_ID].partitions == {partition}
