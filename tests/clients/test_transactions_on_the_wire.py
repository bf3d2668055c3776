"""Transactions request by request: the answers to right and wrong epochs, states, ids and partitions.

The requests and their answers are data; Apache Kafka is asked the same (`make oracle`).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.clients.error_names import error_name
from tests.clients.wire.transactions import (
    GROUP,
    Identity,
    add_offsets,
    add_partitions,
    await_coordinator,
    await_state,
    commit_offset,
    describe,
    end,
    init_producer,
    send,
)
from tests.wire import WireClient, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.conftest import Target

FENCED = ("INVALID_PRODUCER_EPOCH", -1)
ABORTABLE = ("TRANSACTION_ABORTABLE", -1)
BEFORE_VERSION_2 = 11  # of Produce: partitions are added by AddPartitionsToTxn


@pytest.fixture
def wire(target: Target) -> Iterator[WireClient]:
    with connect(target.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def name(wire: WireClient) -> str:
    """A transactional id that the broker coordinates."""
    transactional_id = f"t{uuid.uuid4().hex[:10]}"
    await_coordinator(wire, transactional_id)
    assert init_producer(wire, transactional_id).error == "NONE"
    return transactional_id


def ended(wire: WireClient, name: str, identity: Identity, **how: Any) -> tuple[str, int]:
    answer = end(wire, name, identity, **how)
    if answer.error == "NONE":
        await_state(wire, name, "CompleteCommit", "CompleteAbort")
    return answer.error, answer.epoch


def test_every_start_raises_the_epoch(wire: WireClient, name: str) -> None:
    first = init_producer(wire, name)
    assert first.epoch == 1
    assert describe(wire, name)[1:] == ("Empty", 1, 0, False)
    second = init_producer(wire, name, identity=first)
    assert (second.error, second.producer_id, second.epoch) == ("NONE", first.producer_id, 2)
    again = init_producer(wire, name, identity=first)  # a retry: the answer was lost
    assert (again.error, again.epoch) == ("NONE", 2)
    assert init_producer(wire, name).epoch == 3
    assert init_producer(wire, name, identity=first).error == "PRODUCER_FENCED"


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "identity", "error"),
    [
        ("", 1000, Identity(""), "INVALID_REQUEST"),
        ("t", 0, Identity(""), "INVALID_TRANSACTION_TIMEOUT"),
        ("t", 900_001, Identity(""), "INVALID_TRANSACTION_TIMEOUT"),
        ("t", 1000, Identity("", 5, -1), "INVALID_REQUEST"),
        ("x" * 32_000, 1000, Identity(""), "NONE"),
        ("unknown-with-identity", 1000, Identity("", 5, 5), "NONE"),
    ],
)
def test_a_start_is_checked(
    wire: WireClient, name: str, transactional_id: str, timeout_ms: int, identity: Identity, error: str
) -> None:
    await_coordinator(wire, transactional_id or name)
    assert init_producer(wire, transactional_id, timeout_ms, identity).error == error


def test_another_producer_is_refused(wire: WireClient, name: str, topic: str) -> None:
    producer = init_producer(wire, name)
    assert send(wire, name, producer, topic, 0) == ("NONE", 0)
    assert send(wire, name, producer, topic, 1, is_transactional=False) == ("INVALID_TXN_STATE", -1)
    assert send(wire, None, producer, topic, 1) == ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", -1)
    newer, older = producer._replace(epoch=producer.epoch + 1), producer._replace(epoch=producer.epoch - 1)
    assert send(wire, name, newer, topic, 0) == FENCED
    assert ended(wire, name, newer, commits=True) == ("PRODUCER_FENCED", -1)
    assert ended(wire, name, older, commits=True) == ("PRODUCER_FENCED", -1)
    stranger = producer._replace(producer_id=99_999)
    assert ended(wire, name, stranger, commits=True) == ("INVALID_PRODUCER_ID_MAPPING", -1)
    assert ended(wire, f"{name}-unknown", producer, commits=True) == ("INVALID_PRODUCER_ID_MAPPING", -1)
    assert ended(wire, "", producer, commits=True) == ("INVALID_REQUEST", -1)
    assert add_partitions(wire, name, stranger, topic, [1]) == ["INVALID_PRODUCER_ID_MAPPING"]
    assert add_partitions(wire, name, newer, topic, [1]) == ["PRODUCER_FENCED"]
    assert describe(wire, name)[1:] == ("Ongoing", 1, 1, True)


def test_before_version_2_partitions_are_added_and_the_epoch_stays(wire: WireClient, name: str, topic: str) -> None:
    producer = init_producer(wire, name)
    assert send(wire, name, producer, topic, 0, version=BEFORE_VERSION_2) == ABORTABLE
    assert send(wire, name, producer, topic, 0, version=10) == ("INVALID_TXN_STATE", -1)
    assert add_partitions(wire, name, producer, topic, [0]) == ["NONE"]
    assert add_partitions(wire, name, producer, topic, [0]) == ["NONE"]
    assert add_partitions(wire, name, producer, topic, [1, 77]) == [
        "OPERATION_NOT_ATTEMPTED",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert describe(wire, name)[1:] == ("Ongoing", 1, 1, True)
    assert send(wire, name, producer, topic, 0, version=BEFORE_VERSION_2) == ("NONE", 0)
    assert send(wire, name, producer, topic, 0, partition=1, version=BEFORE_VERSION_2) == ABORTABLE
    assert ended(wire, name, producer, commits=True, version=4) == ("NONE", -1)
    assert await_state(wire, name, "CompleteCommit")[1:] == ("CompleteCommit", 1, 0, True)
    assert ended(wire, name, producer, commits=True, version=4) == ("NONE", -1)  # a retry
    assert ended(wire, name, producer, commits=False, version=4) == ("INVALID_TXN_STATE", -1)
    assert add_partitions(wire, name, producer, topic, [0]) == ["NONE"]
    assert send(wire, name, producer, topic, 1, version=BEFORE_VERSION_2) == ("NONE", 2)
    assert ended(wire, name, producer, commits=False, version=4) == ("NONE", -1)
    assert await_state(wire, name, "CompleteAbort")[1:] == ("CompleteAbort", 1, 0, True)
    assert send(wire, name, producer, topic, 2, version=BEFORE_VERSION_2) == ABORTABLE


def test_a_start_aborts_an_open_transaction(wire: WireClient, name: str, topic: str) -> None:
    producer = init_producer(wire, name)
    assert send(wire, name, producer, topic, 0) == ("NONE", 0)
    assert init_producer(wire, name).error == "CONCURRENT_TRANSACTIONS"
    assert await_state(wire, name, "CompleteAbort")[1:] == ("CompleteAbort", 2, 0, True)
    assert send(wire, name, producer, topic, 1) == FENCED
    assert ended(wire, name, producer, commits=True) == ("INVALID_TXN_STATE", -1)
    assert init_producer(wire, name).epoch == 3


def test_a_transaction_that_takes_too_long_is_aborted(wire: WireClient, name: str, topic: str) -> None:
    producer = init_producer(wire, name, timeout_ms=500)
    assert send(wire, name, producer, topic, 0) == ("NONE", 0)
    assert await_state(wire, name, "CompleteAbort")[1:] == ("CompleteAbort", 2, 0, True)
    assert send(wire, name, producer, topic, 1) == FENCED
    assert ended(wire, name, producer, commits=True) == ("INVALID_TXN_STATE", -1)
    assert ended(wire, name, producer, commits=False) == ("NONE", 2)
    assert init_producer(wire, name, identity=producer)[0::2] == ("NONE", 2)


def test_offsets_join_a_transaction(wire: WireClient, name: str, topic: str) -> None:
    group = f"g-{name}"
    await_coordinator(wire, group, GROUP)
    producer = init_producer(wire, name)
    assert commit_offset(wire, name, producer, group, topic, 5, version=4) == "TRANSACTION_ABORTABLE"
    assert add_offsets(wire, name, producer, group) == "NONE"
    assert commit_offset(wire, name, producer, group, topic, 5, version=4) == "NONE"
    assert describe(wire, name)[1:] == ("Ongoing", 1, 1, True)
    assert commit_offset(wire, name, producer, group, topic, 6) == "NONE"
    assert commit_offset(wire, name, producer, group, topic, 7, member=("m", 3)) == "UNKNOWN_MEMBER_ID"
    assert commit_offset(wire, name, producer, f"{group}-x", topic, 7, member=("m", 3)) == "ILLEGAL_GENERATION"
    assert commit_offset(wire, name, producer._replace(epoch=9), group, topic, 7) == "INVALID_PRODUCER_EPOCH"
    assert commit_offset(wire, name, producer, group, "unknown-topic", 7) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert ended(wire, name, producer, commits=True) == ("NONE", 2)


def test_markers_of_an_administrator(wire: WireClient, name: str, topic: str) -> None:
    producer = init_producer(wire, name)
    assert send(wire, name, producer, topic, 0) == ("NONE", 0)
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 9])],
        coordinator_epoch=0,
    )
    answer = wire.call(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, 1)
    results = {each.partition_index: error_name(each.error_code) for each in answer.markers[0].topics[0].partitions}
    assert results == {0: "NONE", 9: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert ended(wire, name, producer, commits=True) == ("NONE", 2)
