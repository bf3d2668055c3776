"""Brokers that a client cannot reach through its listener, and fenced ones, are left out of every answer."""

import pytest

from odradek.configuration.listeners import Endpoint
from odradek.controller.channel import LocalControllerChannel
from odradek.controller.decisions.topics import Assignment, NewTopic
from odradek.controller.requests import CreateTopics
from odradek.handlers.broker_endpoints import JAVA_CLIENT, LISTED_AFTER_FENCING_MS
from odradek.handlers.context import RequestContext
from odradek.handlers.leader_hints import add_leader_hints, add_produce_leader_hints
from odradek.metadata.entities import BrokerImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import fetch, produce
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.handlers.brokers import SimulatedBroker
from tests.replica.test_housekeeping import pass_time

HERE, WITHOUT_LISTENER, FENCED, REACHABLE = range(4)
CLIENT_ENDPOINT = {"PLAINTEXT": Endpoint("elsewhere", 9093)}


@pytest.fixture
def cluster(simulated: SimulatedBroker) -> SimulatedBroker:
    """Four brokers, and one topic with a partition that each of them leads. Its name makes it the groups' topic."""
    controller = simulated.services.controller
    assert isinstance(controller, LocalControllerChannel)

    async def prepare() -> None:
        await controller.register_broker(BrokerImage(WITHOUT_LISTENER, {"INTERNAL": Endpoint("hidden", 9094)}))
        await controller.register_broker(BrokerImage(FENCED, CLIENT_ENDPOINT))
        await controller.register_broker(BrokerImage(REACHABLE, CLIENT_ENDPOINT))
        assignments = [Assignment(index, (index,)) for index in range(4)]
        (result,) = await controller.ask(CreateTopics([NewTopic(name="__consumer_offsets", assignments=assignments)]))
        assert result.error is ErrorCode.NONE
        await controller.register_broker(BrokerImage(FENCED, CLIENT_ENDPOINT, is_fenced=True))

    simulated.run(prepare())
    return simulated


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND), (13, ErrorCode.LISTENER_NOT_FOUND)],
)
def test_metadata_has_no_leader_that_the_client_cannot_reach(
    cluster: SimulatedBroker, version: int, error: ErrorCode
) -> None:
    pass_time(cluster, LISTED_AFTER_FENCING_MS / 1000)
    response = cluster.call(MetadataRequest(topics=None), MetadataResponse, version)
    assert [(broker.node_id, broker.host) for broker in response.brokers] == [(HERE, "simulated"), (3, "elsewhere")]
    (topic,) = response.topics
    assert [(each.error_code, each.leader_id, each.offline_replicas) for each in topic.partitions] == [
        (ErrorCode.NONE, HERE, []),
        (error, -1, [WITHOUT_LISTENER]),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [FENCED]),
        (ErrorCode.NONE, REACHABLE, []),
    ]


def test_described_partitions_have_no_leader_that_the_client_cannot_reach(cluster: SimulatedBroker) -> None:
    response = cluster.call(DescribeTopicPartitionsRequest(), DescribeTopicPartitionsResponse)
    (topic,) = response.topics
    assert [(each.error_code, each.leader_id) for each in topic.partitions] == [
        (ErrorCode.NONE, HERE),
        (ErrorCode.LISTENER_NOT_FOUND, -1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
        (ErrorCode.NONE, REACHABLE),
    ]


def test_a_coordinator_that_the_client_cannot_reach_is_not_available(cluster: SimulatedBroker) -> None:
    groups = cluster.services.groups
    groups._runtime.partition_count = 4
    keys = {groups.topic.leader_of(f"group-{number}"): f"group-{number}" for number in range(50)}
    request = FindCoordinatorRequest(coordinator_keys=[keys[node_id] for node_id in range(4)])
    response = cluster.call(request, FindCoordinatorResponse)
    assert [(each.error_code, each.node_id, each.port) for each in response.coordinators] == [
        (ErrorCode.NONE, HERE, 9092),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1),
        (ErrorCode.NONE, REACHABLE, 9093),
    ]


def test_described_brokers_are_those_that_the_client_can_reach(cluster: SimulatedBroker) -> None:
    response = cluster.call(DescribeClusterRequest(), DescribeClusterResponse)
    assert [(each.broker_id, each.is_fenced) for each in response.brokers] == [(HERE, False), (REACHABLE, False)]
    request = DescribeClusterRequest(include_fenced_brokers=True)
    response = cluster.call(request, DescribeClusterResponse)
    assert [(each.broker_id, each.is_fenced) for each in response.brokers] == [
        (HERE, False),
        (FENCED, True),
        (REACHABLE, False),
    ]


def test_leader_hints_have_the_addresses_that_the_client_can_reach(cluster: SimulatedBroker) -> None:
    topic = cluster.services.image.topics["__consumer_offsets"]
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    fetched = fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=[fetch.PartitionData(partition_index=index, error_code=error) for index in range(4)],
            )
        ]
    )
    produced = produce.ProduceResponse(
        responses=[
            produce.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    produce.PartitionProduceResponse(index=index, error_code=error) for index in range(4)
                ],
            )
        ]
    )
    add_leader_hints(fetched, RequestContext(cluster.services, cluster.client, 17, None))
    add_produce_leader_hints(produced, RequestContext(cluster.services, cluster.client, 13, None))
    for response in (fetched, produced):
        assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [
            (REACHABLE, "elsewhere", 9093)
        ]


def test_a_broker_that_was_fenced_lately_is_listed_but_leads_nothing(cluster: SimulatedBroker) -> None:
    """librdkafka removes a broker that is not listed, and loses partitions that are assigned to it for a second."""
    response = cluster.call(MetadataRequest(topics=None), MetadataResponse, 13)
    assert FENCED in [broker.node_id for broker in response.brokers]
    assert FENCED not in [partition.leader_id for partition in response.topics[0].partitions]


def test_a_java_client_is_not_told_of_a_broker_that_was_fenced_lately(cluster: SimulatedBroker) -> None:
    cluster.client.software_name = JAVA_CLIENT
    response = cluster.call(MetadataRequest(topics=None), MetadataResponse, 13)
    assert [broker.node_id for broker in response.brokers] == [HERE, REACHABLE]


def test_a_java_client_is_not_told_of_a_broker_that_stops(cluster: SimulatedBroker) -> None:
    """Its process may end before the controller has fenced it."""
    controller = cluster.services.controller
    assert isinstance(controller, LocalControllerChannel)
    stopping = BrokerImage(REACHABLE, CLIENT_ENDPOINT, is_shutting_down=True)
    cluster.run(controller.register_broker(stopping))
    listed = [broker.node_id for broker in cluster.call(MetadataRequest(topics=None), MetadataResponse, 13).brokers]
    assert listed == [HERE, FENCED, REACHABLE]
    cluster.client.software_name = JAVA_CLIENT
    response = cluster.call(MetadataRequest(topics=None), MetadataResponse, 13)
    assert [broker.node_id for broker in response.brokers] == [HERE]
