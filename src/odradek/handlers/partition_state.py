"""What clients are told about a partition's leader and replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.metadata.image import PartitionImage, TopicImage


class PartitionState(NamedTuple):
    error: ErrorCode
    leader: int
    offline_replicas: list[int]


def partition_state(topic: TopicImage, partition: PartitionImage, context: RequestContext) -> PartitionState:
    """A partition whose log directory failed here has no leader, until a restart."""
    services = context.services
    if services.partitions.has_failures and services.partitions.has_failed(topic.name, partition.index):
        return PartitionState(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, [services.config.node_id])
    error = ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
    return PartitionState(error, partition.leader, [])
