"""A request with many elements is answered as smaller requests with the same elements are, and requests of others are
answered before it is."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from odradek.handlers.cooperative_scheduling import ELEMENTS_PER_TURN
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from odradek.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.schema import Request, Response
from odradek.testing import RunningBroker
from tests.server.broker_in_this_process import BrokerInThisProcess
from tests.server.conftest import watched_broker
from tests.server.requests import create_topic
from tests.wire import WireClient, encode_request

COUNT = 2 * ELEMENTS_PER_TURN + 7
NAMES = [f"t-{number}" for number in range(COUNT)]
_TOPIC, _TRANSACTION = 2, 1


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with watched_broker({"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}) as running:
        with WireClient(running.port) as client:
            for name in (NAMES[3], NAMES[ELEMENTS_PER_TURN], NAMES[-1]):
                create_topic(client, name)
            key = [NAMES[0]]
            for kind in (0, _TRANSACTION):  # so that the topics of the coordinators exist
                client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=key), FindCoordinatorResponse)
        yield running


@pytest.fixture(scope="module")
def broker_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInThisProcess]:
    running = BrokerInThisProcess(tmp_path_factory.mktemp("broker"), offsets_topic_num_partitions="1")
    with closing(running), WireClient(running.port) as client:
        create_topic(client, NAMES[3])
        client.call(FindCoordinatorRequest(coordinator_keys=[NAMES[0]]), FindCoordinatorResponse)
        yield running


def metadata(names: list[str]) -> Request:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def epochs(names: list[str]) -> Request:
    partitions = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    return OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=each, partitions=partitions) for each in names]
    )


CASES: list[tuple[Callable[[list[str]], Request], type[Response], str]] = [
    (metadata, MetadataResponse, "topics"),
    (epochs, OffsetForLeaderEpochResponse, "topics"),
    (lambda names: FindCoordinatorRequest(coordinator_keys=names), FindCoordinatorResponse, "coordinators"),
    (lambda names: DescribeGroupsRequest(groups=names), DescribeGroupsResponse, "groups"),
    (lambda names: DeleteGroupsRequest(groups_names=names), DeleteGroupsResponse, "results"),
    (lambda names: ConsumerGroupDescribeRequest(group_ids=names), ConsumerGroupDescribeResponse, "groups"),
    (
        lambda names: OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in names]
        ),
        OffsetFetchResponse,
        "groups",
    ),
    (
        lambda names: DescribeTransactionsRequest(transactional_ids=names),
        DescribeTransactionsResponse,
        "transaction_states",
    ),
    (
        lambda names: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=_TOPIC, resource_name=each, configuration_keys=["retention.ms"])
                for each in names
            ]
        ),
        DescribeConfigsResponse,
        "results",
    ),
    (
        lambda names: DescribeProducersRequest(
            topics=[ProducersTopic(name=each, partition_indexes=[0]) for each in names]
        ),
        DescribeProducersResponse,
        "topics",
    ),
]


@pytest.mark.parametrize(("make", "response", "field"), CASES, ids=[case[1].__name__ for case in CASES])
def test_a_request_with_many_elements_is_answered_as_smaller_ones_are(
    broker: RunningBroker, make: Callable[[list[str]], Request], response: type[Response], field: str
) -> None:
    parts: list[Any] = []
    with WireClient(broker.port) as client:
        whole = client.call(make(NAMES), response)
        for start in range(0, COUNT, ELEMENTS_PER_TURN // 2):
            parts += getattr(client.call(make(NAMES[start : start + ELEMENTS_PER_TURN // 2]), response), field)
    assert len(parts) == COUNT
    assert getattr(whole, field) == parts


def offsets_of(indexes: list[int]) -> Request:
    topics = [OffsetFetchRequestTopics(name=NAMES[3], partition_indexes=indexes)]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])


def epochs_of(indexes: list[int]) -> Request:
    partitions = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in indexes]
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=NAMES[3], partitions=partitions)])


def producers_of(indexes: list[int]) -> Request:
    return DescribeProducersRequest(topics=[ProducersTopic(name=NAMES[3], partition_indexes=indexes)])


PARTITION_CASES: list[tuple[Callable[[list[int]], Request], type[Response], int, Callable[[Any], list[Any]]]] = [
    (offsets_of, OffsetFetchResponse, 8, lambda response: response.groups[0].topics),
    (epochs_of, OffsetForLeaderEpochResponse, 4, lambda response: response.topics),
    (producers_of, DescribeProducersResponse, 0, lambda response: response.topics),
]


@pytest.mark.parametrize(
    ("make", "response", "version", "topics_of"), PARTITION_CASES, ids=[case[1].__name__ for case in PARTITION_CASES]
)
def test_a_request_with_many_partitions_of_a_topic_is_answered_as_smaller_ones_are(
    broker: RunningBroker,
    make: Callable[[list[int]], Request],
    response: type[Response],
    version: int,
    topics_of: Callable[[Any], list[Any]],
) -> None:
    parts: list[Any] = []
    with WireClient(broker.port) as client:
        (whole,) = topics_of(client.call(make(list(range(COUNT))), response, version))
        for start in range(0, COUNT, ELEMENTS_PER_TURN // 2):
            some = list(range(start, min(start + ELEMENTS_PER_TURN // 2, COUNT)))
            parts += topics_of(client.call(make(some), response, version))[0].partitions
    assert len(parts) == COUNT
    assert whole.partitions == parts


@pytest.mark.parametrize(
    ("make", "version"),
    [(case[0], case[2]) for case in PARTITION_CASES],
    ids=[case[0].__name__ for case in PARTITION_CASES],
)
def test_others_are_answered_before_a_request_with_many_partitions_of_a_topic_is(
    broker_here: BrokerInThisProcess, make: Callable[[list[int]], Request], version: int
) -> None:
    check_that_others_are_answered_first(broker_here, encode_request(make(list(range(31_000))), version))


def test_others_are_answered_before_a_request_with_many_elements_is(broker_here: BrokerInThisProcess) -> None:
    names = [f"none-{number}" for number in range(20 * ELEMENTS_PER_TURN)]
    check_that_others_are_answered_first(broker_here, encode_request(metadata(names), 12))


def test_others_are_answered_before_groups_with_many_offsets_are_deleted(broker_here: BrokerInThisProcess) -> None:
    groups = [f"group-{number}" for number in range(ELEMENTS_PER_TURN // 2)]
    indexes = range(20)
    partitions = [OffsetCommitRequestPartition(partition_index=index) for index in indexes]
    with WireClient(broker_here.port) as client:
        create_topic(client, "many", len(indexes))
        for group in groups:
            topics = [OffsetCommitRequestTopic(name="many", partitions=partitions)]
            commit = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
            committed = client.call(commit, OffsetCommitResponse, 8).topics[0].partitions
            assert {each.error_code for each in committed} == {0}
        check_that_others_are_answered_first(broker_here, encode_request(DeleteGroupsRequest(groups_names=groups), 2))
        left = client.call(DeleteGroupsRequest(groups_names=groups), DeleteGroupsResponse).results
    assert {each.error_code for each in left} == {ErrorCode.GROUP_ID_NOT_FOUND}


def check_that_others_are_answered_first(broker: BrokerInThisProcess, request: bytes) -> None:
    assert broker.run(answers_before(broker.port, request)) > 2


async def answers_before(port: int, request: bytes) -> int:
    """How many requests of another connection are answered before this one is.

    Runs on the broker's event loop, where it has its turn when the broker's other connections have theirs, however busy
    the machine is.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    with closing(writer), closing(other_writer):
        writer.write(request)
        first = asyncio.ensure_future(reader.readexactly(1))
        answered = 0
        while not first.done():
            other_writer.write(encode_request(ApiVersionsRequest(), 0))
            await other_reader.readexactly(int.from_bytes(await other_reader.readexactly(4)))
            answered += 1
        assert await first
    return answered
