"""The requests of a broker to the controller as Kafka's messages, and the results in their responses. Pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.controller.decisions.in_sync_sets import InSyncResult
from odradek.controller.decisions.offline_replicas import OfflineReplica
from odradek.controller.decisions.request_results import TopicResult
from odradek.controller.requests import (
    AllocateProducerIds,
    AlterPartitions,
    BrokerStatus,
    CreateTopics,
    ReportOfflineReplicas,
    ShutDownBroker,
    UnfenceBroker,
)
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from odradek.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    OfflineTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable, Mapping

    from odradek.controller.requests import Ask, BrokerStateChange
    from odradek.protocol.schema import Request


class Sender(NamedTuple):
    """The broker that sends a request, under its registration."""

    node_id: int
    broker_epoch: int


class NotController(Exception):
    """The broker that received the request is not the controller any more."""


def _heartbeat(request: BrokerStateChange, _sender: Sender) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=request.node_id,
        broker_epoch=request.broker_epoch,
        want_shut_down=isinstance(request, ShutDownBroker),
    )


def _broker_status(response: BrokerHeartbeatResponse, _request: object = None) -> BrokerStatus:
    if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
        return BrokerStatus(ErrorCode.STALE_BROKER_EPOCH)
    _check(response.error_code)
    return BrokerStatus(ErrorCode.NONE, is_fenced=response.is_fenced, may_stop=response.should_shut_down)


def _offline_replicas(request: ReportOfflineReplicas, _sender: Sender) -> BrokerHeartbeatRequest:
    topics: dict[uuid.UUID, OfflineTopic] = {}
    for topic_id, index in request.replicas:
        topic = topics.setdefault(topic_id, OfflineTopic(topic_id=topic_id, partition_indexes=[]))
        topic.partition_indexes.append(index)
    return BrokerHeartbeatRequest(
        broker_id=request.node_id, broker_epoch=request.broker_epoch, offline_replicas=list(topics.values())
    )


def offline_replicas_of(request: BrokerHeartbeatRequest) -> list[OfflineReplica]:
    return [
        OfflineReplica(topic.topic_id, index) for topic in request.offline_replicas for index in topic.partition_indexes
    ]


def _allocation(_request: AllocateProducerIds, sender: Sender) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=sender.node_id, broker_epoch=sender.broker_epoch)


def _first_producer_id(response: AllocateProducerIdsResponse, request: AllocateProducerIds) -> int:
    _check(response.error_code)
    if response.producer_id_len < request.count:
        raise StoreError(f"the controller allocated {response.producer_id_len} producer ids, not {request.count}")
    return response.producer_id_start


def _in_sync_proposals(request: AlterPartitions, _sender: Sender) -> AlterPartitionRequest:
    topics: dict[uuid.UUID, TopicData] = {}
    for proposal in request.proposals:
        topic = topics.setdefault(proposal.topic_id, TopicData(topic_id=proposal.topic_id, partitions=[]))
        topic.partitions.append(
            PartitionData(
                partition_index=proposal.partition_index,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in proposal.in_sync_replicas
                ],
                partition_epoch=proposal.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=request.node_id, broker_epoch=request.broker_epoch, topics=list(topics.values())
    )


def _in_sync_results(response: AlterPartitionResponse, request: AlterPartitions) -> list[InSyncResult]:
    """Returns the results in the order of the proposals. A partition that the response lacks was not attempted."""
    if response.error_code != ErrorCode.NONE:
        return [InSyncResult(ErrorCode(response.error_code))] * len(request.proposals)
    found: dict[tuple[uuid.UUID, int], deque[InSyncResult]] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            result = InSyncResult(
                ErrorCode(partition.error_code), partition.leader_epoch, partition.partition_epoch, tuple(partition.isr)
            )
            if result.error is not ErrorCode.NONE:
                result = InSyncResult(result.error)
            found.setdefault((topic.topic_id, partition.partition_index), deque()).append(result)
    missing = InSyncResult(ErrorCode.OPERATION_NOT_ATTEMPTED)
    keys = [(proposal.topic_id, proposal.partition_index) for proposal in request.proposals]
    return [found[key].popleft() if found.get(key) else missing for key in keys]


def _creation(request: CreateTopics, _sender: Sender) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partition_count,
                replication_factor=topic.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=each.partition_index, broker_ids=list(each.broker_ids))
                    for each in topic.assignments
                ],
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in request.topics
        ],
        timeout_ms=int(request.timeout_ms),
        validate_only=request.validate_only,
    )


def _topic_results(response: CreateTopicsResponse, _request: CreateTopics) -> list[TopicResult]:
    """The results lack the partitions and settings of the topics, which the metadata has."""
    results = [
        TopicResult(
            name=topic.name,
            error=ErrorCode(topic.error_code),
            message=topic.error_message,
            topic_id=topic.topic_id if topic.error_code == ErrorCode.NONE else None,
        )
        for topic in response.topics
    ]
    check_topics(results)
    return results


def check_topics(results: Iterable[TopicResult]) -> None:
    if any(result.error is ErrorCode.NOT_CONTROLLER for result in results):
        raise NotController("the controller was replaced while it decided")


def _check(error_code: int) -> None:
    error = ErrorCode(error_code)
    if error is ErrorCode.NOT_CONTROLLER:
        raise NotController("the broker that received the request is not the controller")
    if error is not ErrorCode.NONE:
        raise StoreError(f"the controller refused: {error.name}")


# A broker handles the requests of a connection one after another. The creation of many topics is answered when the
# controller's broker has opened their logs: in-sync sets must not wait for it.
PURPOSE = "controller"
CREATION_PURPOSE = "topic creation"


class WireRequest(NamedTuple):
    encode: Callable[[Any, Sender], Request]
    response: type[Any]
    version: int
    decode: Callable[[Any, Any], Any]
    is_retried: bool = True
    purpose: str = PURPOSE


WIRE_REQUESTS: Mapping[type[Ask[Any]], WireRequest] = {
    CreateTopics: WireRequest(_creation, CreateTopicsResponse, 7, _topic_results, purpose=CREATION_PURPOSE),
    AllocateProducerIds: WireRequest(_allocation, AllocateProducerIdsResponse, 0, _first_producer_id),
    UnfenceBroker: WireRequest(_heartbeat, BrokerHeartbeatResponse, 1, _broker_status),
    ShutDownBroker: WireRequest(_heartbeat, BrokerHeartbeatResponse, 1, _broker_status),
    ReportOfflineReplicas: WireRequest(
        _offline_replicas, BrokerHeartbeatResponse, 1, lambda response, _: _broker_status(response).error
    ),
    # By the next attempt, the leader may know more about its followers.
    AlterPartitions: WireRequest(_in_sync_proposals, AlterPartitionResponse, 3, _in_sync_results, is_retried=False),
}
"""The requests of brokers. Those of clients are forwarded as bytes."""
