"""What brokers ask the controller: in-sync sets (AlterPartition), to be unfenced and to shut down (BrokerHeartbeat)."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.client.broker_connection import BrokerUnavailable
from odradek.controller.broker_session import BrokerSession, StaleBrokerEpoch
from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.controller.decisions.topics import Assignment, NewTopic
from odradek.controller.requests import CreateTopics
from odradek.handlers.context import ClientConnection
from odradek.metadata.entities import TopicImage
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.schema import Request, Response
from tests.handlers.forwarding_cluster import BROKER_LISTENER, CLIENT_LISTENER, TwoBrokers

CONTROLLER, OTHER = 0, 1
EPOCH = 100  # of broker 0; that of broker 1 is the next


@pytest.fixture
def cluster() -> Iterator[TwoBrokers]:
    brokers = TwoBrokers()
    yield brokers
    brokers.close()


def session_of(cluster: TwoBrokers, node_id: int) -> BrokerSession:
    return BrokerSession(cluster.members[node_id].channel, node_id, lambda: EPOCH + node_id)


def create(cluster: TwoBrokers, *replicas: int) -> TopicImage:
    topic = NewTopic(name="t", assignments=[Assignment(0, replicas)])
    (result,) = cluster.run(cluster.members[CONTROLLER].channel.ask(CreateTopics([topic])))
    assert result.topic is not None
    cluster.run(cluster.settle())
    created: TopicImage = result.topic
    return created


@pytest.mark.parametrize("leader", [CONTROLLER, OTHER])
def test_a_leader_shrinks_and_grows_its_in_sync_set(cluster: TwoBrokers, leader: int) -> None:
    follower = 1 - leader
    topic = create(cluster, leader, follower)
    session = session_of(cluster, leader)
    alone = InSyncProposal(topic.topic_id, 0, 0, 0, ((leader, EPOCH + leader),))
    both = InSyncProposal(topic.topic_id, 0, 0, 1, ((leader, EPOCH + leader), (follower, EPOCH + follower)))
    assert cluster.run(session.propose([alone])) == [InSyncResult(ErrorCode.NONE, 0, 1, (leader,))]
    assert cluster.run(session.propose([both, alone])) == [
        InSyncResult(ErrorCode.NONE, 0, 2, (leader, follower)),
        InSyncResult(ErrorCode.INVALID_UPDATE_VERSION),
    ]
    cluster.run(cluster.settle())
    partition = cluster.members[follower].cache.image.topics["t"].partitions[0]
    assert set(partition.in_sync_replicas) == {leader, follower}


def test_proposals_that_reach_no_controller_raise(cluster: TwoBrokers) -> None:
    topic = create(cluster, OTHER, CONTROLLER)
    proposal = InSyncProposal(topic.topic_id, 0, 0, 0, ((OTHER, EPOCH + OTHER),))
    cluster.members[CONTROLLER].controller = None
    session = session_of(cluster, OTHER)
    assert cluster.run(session.propose([proposal])) == [InSyncResult(ErrorCode.NOT_CONTROLLER)]
    cluster.members[CONTROLLER].is_reachable = False
    with pytest.raises(BrokerUnavailable):
        cluster.run(session.propose([proposal]))


def test_proposals_that_cannot_be_written_are_answered(cluster: TwoBrokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception would close the connection, with the heartbeats that the broker has sent on it."""

    async def fail(*_: object, **__: object) -> Any:
        raise StoreError("ZooKeeper is away")

    topic = create(cluster, OTHER, CONTROLLER)
    proposal = InSyncProposal(topic.topic_id, 0, 0, 0, ((OTHER, EPOCH + OTHER),))
    session = session_of(cluster, OTHER)
    with monkeypatch.context() as away:
        away.setattr(cluster.members[CONTROLLER].controller_store, "commit", fail)
        assert cluster.run(session.propose([proposal])) == [InSyncResult(ErrorCode.NOT_CONTROLLER)]
    assert cluster.run(session.propose([proposal])) == [InSyncResult(ErrorCode.NONE, 0, 1, (OTHER,))]


@pytest.mark.parametrize("node_id", [CONTROLLER, OTHER])
def test_controlled_shutdown_moves_leaders_before_the_broker_may_stop(cluster: TwoBrokers, node_id: int) -> None:
    create(cluster, node_id, 1 - node_id)
    assert cluster.run(session_of(cluster, node_id).shut_down())
    cluster.run(cluster.settle())
    image = cluster.members[1 - node_id].cache.image
    assert image.topics["t"].partitions[0].leader == 1 - node_id
    assert image.brokers[node_id].is_shutting_down
    assert cluster.run(session_of(cluster, node_id).shut_down()), "it may be asked again"


def test_a_broker_that_was_taken_for_dead_is_unfenced_when_it_asks(cluster: TwoBrokers) -> None:
    create(cluster, OTHER)
    controller = cluster.members[CONTROLLER].controller
    assert controller is not None
    cluster.run(controller.cluster.fence_brokers({OTHER: EPOCH + OTHER}))
    cluster.run(controller.cluster.follow_live_brokers(cluster.live))
    assert controller.image.topics["t"].partitions[0].leader == -1
    assert controller.image.brokers[OTHER].is_fenced
    assert cluster.run(session_of(cluster, OTHER).unfence())
    assert controller.image.topics["t"].partitions[0].leader == OTHER
    assert controller.image.topics["t"].partitions[0].leader_epoch == 2


def test_a_broker_without_a_registration_is_not_unfenced(cluster: TwoBrokers) -> None:
    controller = cluster.members[CONTROLLER].controller
    assert controller is not None
    cluster.run(controller.cluster.follow_live_brokers({CONTROLLER: cluster.live[CONTROLLER]}))
    with pytest.raises(StaleBrokerEpoch):
        cluster.run(session_of(cluster, OTHER).unfence())
    assert controller.image.brokers[OTHER].is_fenced


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (
            AlterPartitionRequest(broker_id=OTHER, topics=[TopicData(partitions=[PartitionData()])]),
            AlterPartitionResponse,
        ),
        (BrokerHeartbeatRequest(broker_id=OTHER, want_shut_down=True), BrokerHeartbeatResponse),
        (AllocateProducerIdsRequest(broker_id=OTHER), AllocateProducerIdsResponse),
    ],
)
def test_clients_cannot_pretend_to_be_brokers(cluster: TwoBrokers, request_: Request, response: type[Response]) -> None:
    def ask(node_id: int, listener: str) -> Any:
        connection = ClientConnection(listener, "192.0.2.7")
        version = type(request_).versions[1]
        return cluster.run(cluster.members[node_id].ask(request_, response, connection, version)).error_code

    assert ask(CONTROLLER, CLIENT_LISTENER) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for broker_epoch in (-1, 0, 2**62):
        request_.broker_epoch = broker_epoch  # type: ignore[attr-defined]  # each of them has it
        assert ask(CONTROLLER, BROKER_LISTENER) == ErrorCode.STALE_BROKER_EPOCH
    assert not cluster.members[CONTROLLER].cache.image.brokers[OTHER].is_shutting_down


def test_proposals_of_version_2_have_no_broker_epochs(cluster: TwoBrokers) -> None:
    topic = create(cluster, OTHER, CONTROLLER)
    data = PartitionData(partition_index=0, leader_epoch=0, new_isr=[OTHER], partition_epoch=0)
    request = AlterPartitionRequest(
        broker_id=OTHER, broker_epoch=EPOCH + OTHER, topics=[TopicData(topic_id=topic.topic_id, partitions=[data])]
    )
    connection = ClientConnection(BROKER_LISTENER, "10.0.0.1")
    response = cluster.run(cluster.members[CONTROLLER].ask(request, AlterPartitionResponse, connection, 2))
    (altered,) = response.topics[0].partitions
    assert (altered.error_code, altered.isr, altered.partition_epoch) == (ErrorCode.NONE, [OTHER], 1)
