"""Transactions at the limits of their size: ten thousand partitions, and a transactional id of 32,000 bytes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.clients.error_names import error_name
from tests.clients.wire.transactions import (
    GROUP,
    Identity,
    add_offsets,
    await_coordinator,
    await_state,
    commit_offset,
    describe,
    end,
    init_producer,
    send,
)
from tests.waiting import eventually
from tests.wire import WireClient, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.conftest import Target

PARTITIONS_PER_TOPIC = 500
UNCOMMITTED, COMMITTED = 0, 1
LATEST = -1
LARGEST_ID_BYTES = 32_000
WRITTEN = (0, 7, PARTITIONS_PER_TOPIC - 1)  # of each topic


@pytest.fixture
def wire(target: Target) -> Iterator[WireClient]:
    with connect(target.bootstrap_servers) as connection:
        yield connection


@pytest.fixture(params=[1_000, pytest.param(10_000, marks=pytest.mark.soak)])
def topics(wire: WireClient, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """With this number of partitions together."""
    run = uuid.uuid4().hex[:8]
    names = [f"large-{run}-{number}" for number in range(request.param // PARTITIONS_PER_TOPIC)]
    for name in names:
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS_PER_TOPIC, replication_factor=1)
        answer = wire.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), CreateTopicsResponse, 5)
        assert error_name(answer.topics[0].error_code) == "NONE"
    yield names
    wire.call(DeleteTopicsRequest(topic_names=names, timeout_ms=60_000), DeleteTopicsResponse, 5)


def ends(wire: WireClient, topics: list[str], isolation_level: int) -> dict[str, list[tuple[str, int]]]:
    """The error and the end of each partition, as a consumer sees it."""
    partitions = [ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in range(PARTITIONS_PER_TOPIC)]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name in topics],
    )
    answer = wire.call(request, ListOffsetsResponse, 7)
    return {
        topic.name: [
            (error_name(each.error_code), each.offset)
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        ]
        for topic in answer.topics
    }


def add_all(wire: WireClient, name: str, producer: Identity, topics: list[str]) -> set[str]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=list(range(PARTITIONS_PER_TOPIC))) for topic in topics
        ],
    )
    answer = wire.call(request, AddPartitionsToTxnResponse, 3)
    return {
        error_name(each.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def everywhere(topics: list[str], written: int, others: int) -> dict[str, list[tuple[str, int]]]:
    offsets = [("NONE", written if each in WRITTEN else others) for each in range(PARTITIONS_PER_TOPIC)]
    return dict.fromkeys(topics, offsets)


@pytest.mark.more
@pytest.mark.timeout(900)
def test_a_transaction_of_ten_thousand_partitions(wire: WireClient, topics: list[str]) -> None:
    """Committed, and the next one aborted. In `make test` it has a thousand partitions."""
    name = f"large-{uuid.uuid4().hex[:8]}"
    await_coordinator(wire, name)
    eventually(lambda: ends(wire, topics, UNCOMMITTED) == everywhere(topics, 0, 0))
    producer = init_producer(wire, name, timeout_ms=900_000)
    written = others = 0
    for state in ("CompleteCommit", "CompleteAbort"):
        assert add_all(wire, name, producer, topics) == {"NONE"}
        for topic in topics:
            for partition in WRITTEN:
                assert send(wire, name, producer, topic, 0, partition, version=11) == ("NONE", written)
        assert describe(wire, name).partitions == len(topics) * PARTITIONS_PER_TOPIC
        assert ends(wire, topics, UNCOMMITTED) == everywhere(topics, written + 1, others)
        assert ends(wire, topics, COMMITTED) == everywhere(topics, written, others)
        ended = end(wire, name, producer, commits=state == "CompleteCommit")
        assert (ended.error, ended.epoch) == ("NONE", producer.epoch + 1)
        assert await_state(wire, name, state)[1:] == (state, ended.epoch, 0, True)
        written, others, producer = written + 2, others + 1, ended  # each partition has its marker
        assert ends(wire, topics, UNCOMMITTED) == everywhere(topics, written, others)
        assert ends(wire, topics, COMMITTED) == everywhere(topics, written, others)


def test_an_id_of_32000_bytes(wire: WireClient, topic: str) -> None:
    name = uuid.uuid4().hex.ljust(LARGEST_ID_BYTES, "x")
    group = f"g-{name[:32]}"
    await_coordinator(wire, name)
    await_coordinator(wire, group, GROUP)
    producer = init_producer(wire, name)
    assert producer.error == "NONE"
    assert send(wire, name, producer, topic, 0) == ("NONE", 0)
    assert add_offsets(wire, name, producer, group) == "NONE"
    assert commit_offset(wire, name, producer, group, topic, 5) == "NONE"
    assert describe(wire, name)[1:] == ("Ongoing", 0, 2, True)
    assert end(wire, name, producer, commits=True)[0::2] == ("NONE", 1)
    assert await_state(wire, name, "CompleteCommit")[1:] == ("CompleteCommit", 1, 0, True)
    assert init_producer(wire, name).epoch == 2
