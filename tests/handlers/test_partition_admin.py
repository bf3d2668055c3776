"""ElectLeaders, reassignments and UnregisterBroker on a cluster of one broker."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.handlers.brokers import AnyBroker
from tests.handlers.requests import create_topic, describe_topic

PREFERRED, UNCLEAN = 0, 1
Answers = dict[tuple[str, int], tuple[ErrorCode, str | None]]


def elect(
    broker: AnyBroker, kind: int, partitions: dict[str, list[int]] | None, version: int = 2
) -> tuple[ErrorCode, Answers]:
    named = None
    if partitions is not None:
        named = [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in partitions.items()]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=10_000)
    response = broker.call(request, ElectLeadersResponse, version)
    return ErrorCode(response.error_code), {
        (topic.topic, each.partition_id): (ErrorCode(each.error_code), each.error_message)
        for topic in response.replica_election_results
        for each in topic.partition_result
    }


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_a_partition_with_its_leader_needs_no_election(broker: AnyBroker, name: str, kind: int, version: int) -> None:
    create_topic(broker, name)
    kind = kind if version else PREFERRED
    error, results = elect(broker, kind, {name: [0]}, version)
    assert error is ErrorCode.NONE
    assert results == {(name, 0): (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")}


def test_elections_of_all_partitions_leave_out_those_that_need_none(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    error, results = elect(broker, PREFERRED, None)
    assert error is ErrorCode.NONE
    assert (name, 0) not in results


def test_elections_of_unknown_partitions_are_refused(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    missing = f"{name}-missing"
    _, results = elect(broker, PREFERRED, {name: [7], missing: [0]})
    assert results == {
        (name, 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-7"),
        (missing, 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {missing}"),
    }


def test_unknown_kinds_of_elections_are_refused(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    error, results = elect(broker, 5, {name: [0]})
    assert error is ErrorCode.INVALID_REQUEST
    assert results == {(name, 0): (ErrorCode.INVALID_REQUEST, "Unknown election type 5")}


def reassign(
    broker: AnyBroker, topic: str, index: int, replicas: list[int] | None, version: int = 1
) -> tuple[ErrorCode, str | None]:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[partition])])
    response = broker.call(request, AlterPartitionReassignmentsResponse, version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    (result,) = response.responses[0].partitions
    return ErrorCode(result.error_code), result.error_message


@pytest.mark.parametrize("version", range(2))
def test_a_reassignment_to_the_present_replicas_changes_nothing(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name)
    before = describe_topic(broker, name)
    replicas = before.partitions[0].replica_nodes
    assert reassign(broker, name, 0, replicas, version) == (ErrorCode.NONE, None)
    assert describe_topic(broker, name) == before


def test_impossible_reassignments_are_refused(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert reassign(broker, name, 0, [77]) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 77, but no such broker is registered.",
    )
    assert reassign(broker, name, 0, []) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    )
    assert reassign(broker, name, 0, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    assert reassign(broker, name, 7, None) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"Unable to find partition {name}:7.",
    )
    assert reassign(broker, f"{name}-missing", 0, None) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"Unable to find a topic named {name}-missing.",
    )


def test_partitions_without_a_reassignment_are_not_listed(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    named = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 7])]
    for topics in (None, named):
        request = ListPartitionReassignmentsRequest(topics=topics)
        response = broker.call(request, ListPartitionReassignmentsResponse)
        assert (response.error_code, response.error_message, response.topics) == (ErrorCode.NONE, None, [])


def test_unregistering_an_unknown_broker_is_refused(broker: AnyBroker) -> None:
    response = broker.call(UnregisterBrokerRequest(broker_id=77), UnregisterBrokerResponse)
    assert (response.error_code, response.error_message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 77 is not currently registered",
    )
