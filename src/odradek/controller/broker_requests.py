"""The requests of a broker to the controller in Kafka's messages, and the results of their responses. Pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from odradek.controller.in_sync_decisions import InSyncResult
from odradek.controller.offline_replicas import OfflineReplica
from odradek.controller.results import TopicResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, OfflineTopic
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from odradek.controller.in_sync_decisions import InSyncProposal
    from odradek.controller.topic_decisions import NewTopic
    from odradek.protocol.messages.alter_partition import AlterPartitionResponse
    from odradek.protocol.messages.create_topics import CreateTopicsResponse


def offline_replicas_request(
    node_id: int, broker_epoch: int, replicas: Sequence[OfflineReplica]
) -> BrokerHeartbeatRequest:
    topics: dict[uuid.UUID, OfflineTopic] = {}
    for topic_id, index in replicas:
        topic = topics.setdefault(topic_id, OfflineTopic(topic_id=topic_id, partition_indexes=[]))
        topic.partition_indexes.append(index)
    return BrokerHeartbeatRequest(broker_id=node_id, broker_epoch=broker_epoch, offline_replicas=list(topics.values()))


def offline_replicas_of(request: BrokerHeartbeatRequest) -> list[OfflineReplica]:
    return [
        OfflineReplica(topic.topic_id, index) for topic in request.offline_replicas for index in topic.partition_indexes
    ]


def alter_partition_request(
    node_id: int, broker_epoch: int, proposals: Sequence[InSyncProposal]
) -> AlterPartitionRequest:
    topics: dict[uuid.UUID, TopicData] = {}
    for proposal in proposals:
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
    return AlterPartitionRequest(broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def alter_partition_results(
    response: AlterPartitionResponse, proposals: Sequence[InSyncProposal]
) -> list[InSyncResult]:
    """In the order of the proposals. A partition that the response lacks was not attempted."""
    if response.error_code != ErrorCode.NONE:
        return [InSyncResult(ErrorCode(response.error_code))] * len(proposals)
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
    keys = [(proposal.topic_id, proposal.partition_index) for proposal in proposals]
    return [found[key].popleft() if found.get(key) else missing for key in keys]


def create_topics_request(requests: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=request.name,
                num_partitions=request.partition_count,
                replication_factor=request.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=each.partition_index, broker_ids=list(each.broker_ids))
                    for each in request.assignments
                ],
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in request.configs.items()],
            )
            for request in requests
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def create_topics_results(response: CreateTopicsResponse) -> list[TopicResult]:
    """Without the partitions and settings of the topics: the metadata has them."""
    return [
        TopicResult(
            name=topic.name,
            error=ErrorCode(topic.error_code),
            message=topic.error_message,
            topic_id=topic.topic_id if topic.error_code == ErrorCode.NONE else None,
        )
        for topic in response.topics
    ]
