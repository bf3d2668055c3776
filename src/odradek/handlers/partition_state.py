"""The leader and the offline replicas of a partition, as clients see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import PartitionImage, TopicImage


class PartitionState(NamedTuple):
    error: ErrorCode
    leader: int
    offline_replicas: list[int]


def partition_state(topic: TopicImage, partition: PartitionImage, context: RequestContext) -> PartitionState:
    """A partition of which this broker has the leader, with a log that cannot be used, is reported without leader."""
    services = context.services
    node_id = services.config.node_id
    offline_replicas = []
    if services.partitions.has_failures and services.partitions.has_failed(topic.name, partition.index):
        if partition.leader == node_id:
            return PartitionState(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, [node_id])
        offline_replicas = [node_id]
    error = ErrorCode.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else ErrorCode.NONE
    return PartitionState(error, partition.leader, offline_replicas)
