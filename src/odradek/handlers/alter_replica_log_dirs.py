"""AlterReplicaLogDirs, versions 1 to 2: move replicas of this broker to another of its log directories. The answer does
not wait for the moves; DescribeLogDirs shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def handle(request: AlterReplicaLogDirsRequest, context: RequestContext) -> AlterReplicaLogDirsResponse:
    is_allowed = context.allows_on_cluster(Operation.ALTER)
    moves = context.services.partitions.moves
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            result = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=[]))
            for index in topic.partitions:
                error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if is_allowed:
                    error = moves.request(topic.name, index, directory.path)
                result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error))
    return AlterReplicaLogDirsResponse(results=list(results.values()))
