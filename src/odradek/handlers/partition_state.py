"""The leader and the offline replicas of a partition, as clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.handlers.broker_endpoints import find_endpoint
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import PartitionImage, TopicImage


class PartitionState(NamedTuple):
    error: ErrorCode
    leader: int
    offline_replicas: list[int]


def partition_state(
    topic: TopicImage, partition: PartitionImage, context: RequestContext, *, knows_listener_errors: bool = True
) -> PartitionState:
    """A leader that the client cannot reach is reported as no leader; so is this broker with a log that it cannot use.
    `knows_listener_errors`: the client knows LISTENER_NOT_FOUND."""
    services = context.services
    node_id = services.config.node_id
    leader = partition.leader
    offline_replicas = [
        replica for replica in partition.replicas if replica != node_id and find_endpoint(replica, context) is None
    ]
    if services.partitions.has_failures and services.partitions.has_failed(topic.name, partition.index):
        offline_replicas.append(node_id)
    if leader == NO_LEADER:
        return PartitionState(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline_replicas)
    if leader in offline_replicas:
        broker = None if leader == node_id else services.image.brokers.get(leader)
        has_other_listeners = broker is not None and not broker.is_fenced
        is_known = has_other_listeners and knows_listener_errors
        error = ErrorCode.LISTENER_NOT_FOUND if is_known else ErrorCode.LEADER_NOT_AVAILABLE
        return PartitionState(error, NO_LEADER, offline_replicas)
    return PartitionState(ErrorCode.NONE, leader, offline_replicas)
