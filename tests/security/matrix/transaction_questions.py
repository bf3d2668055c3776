"""Requests about transactions and producers."""

from collections.abc import Iterator
from typing import Any

from odradek.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    produce,
    txn_offset_commit,
    write_txn_markers,
)
from tests.security.matrix.question import UNKNOWN_PRODUCER_ID, Question, produce_request
from tests.security.matrix.rights import Names


def transaction_questions(names: Names) -> Iterator[Question]:
    transactional_id, both = names.transactional_id, (names.topic, names.missing_topic)
    identity: dict[str, Any] = {"producer_id": UNKNOWN_PRODUCER_ID, "producer_epoch": 0}
    yield Question(
        "InitProducerId without transactions",
        init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        init_producer_id.InitProducerIdResponse,
    )
    yield Question(
        "InitProducerId",
        init_producer_id.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        ),
        init_producer_id.InitProducerIdResponse,
    )
    added = [add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in both]
    for label, topics in (("AddPartitionsToTxn", added[:1]), ("AddPartitionsToTxn of a missing topic", added)):
        yield Question(
            label,
            add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=UNKNOWN_PRODUCER_ID,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=topics,
            ),
            add_partitions_to_txn.AddPartitionsToTxnResponse,
            3,
        )
    of_broker = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id, verify_only=True, topics=added[:1], **identity
    )
    yield Question(
        "AddPartitionsToTxn of brokers",
        add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[of_broker]),
        add_partitions_to_txn.AddPartitionsToTxnResponse,
    )
    yield Question(
        "AddOffsetsToTxn",
        add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id=transactional_id, group_id=names.group, **identity),
        add_offsets_to_txn.AddOffsetsToTxnResponse,
    )
    yield Question("Produce in a transaction", produce_request(both, transactional_id), produce.ProduceResponse, 11)
    hidden = produce_request((names.topic,), transactional_id)
    hidden.transactional_id = None
    yield Question("Produce in a hidden transaction", hidden, produce.ProduceResponse, 11)
    committed = [
        txn_offset_commit.TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
        )
        for name in both
    ]
    yield Question(
        "TxnOffsetCommit",
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=transactional_id, group_id=names.group, topics=committed, **identity
        ),
        txn_offset_commit.TxnOffsetCommitResponse,
        4,
    )
    yield Question(
        "EndTxn",
        end_txn.EndTxnRequest(transactional_id=transactional_id, committed=True, **identity),
        end_txn.EndTxnResponse,
        4,
    )
    yield Question(
        "DescribeTransactions",
        describe_transactions.DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        describe_transactions.DescribeTransactionsResponse,
    )
    yield Question(
        "ListTransactions", list_transactions.ListTransactionsRequest(), list_transactions.ListTransactionsResponse
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=UNKNOWN_PRODUCER_ID + 1,
        producer_epoch=0,
        transaction_result=False,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name=names.topic, partition_indexes=[0])],
        coordinator_epoch=0,
    )
    yield Question(
        "WriteTxnMarkers",
        write_txn_markers.WriteTxnMarkersRequest(markers=[marker]),
        write_txn_markers.WriteTxnMarkersResponse,
        1,
    )
