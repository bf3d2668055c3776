"""DescribeLogDirs, versions 1 to 5: the size of each partition, by log directory; and copies of partitions that are
being moved, with their lag.

Departure from Kafka: a disk that does not answer for 5 s is described without its space."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.replica.partition import OngoingMove, Partition

log = get_logger(__name__)

SPACE_TIMEOUT_S = 5.0


async def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    if not context.allows_on_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    table, host = context.services.partitions, context.services.host
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    partitions = [each for each in table if wanted is None or (each.topic, each.index) in wanted]
    moves = [(each, each.move) for each in partitions if each.move is not None]
    # For all directories at the same moment: a partition that moves is in one of them.
    topics = {
        directory: _topics(
            [each for each in partitions if each.directory is directory],
            [each for each in moves if each[1].target is directory],
        )
        for directory in table.directories
    }
    results = await asyncio.gather(*(_describe(directory, topics[directory], host) for directory in table.directories))
    return DescribeLogDirsResponse(results=results)


async def _describe(directory: LogDirectory, topics: list[DescribeLogDirsTopic], host: Host) -> DescribeLogDirsResult:
    if directory.failure is not None:
        return DescribeLogDirsResult(log_dir=directory.path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    described = DescribeLogDirsResult(log_dir=directory.path, topics=topics)
    try:
        async with asyncio.timeout(SPACE_TIMEOUT_S):
            described.total_bytes, described.usable_bytes = await host.workers.for_directory(directory.path).files.run(
                host.disk.space, directory.path
            )
    except TimeoutError:
        log.warning("the space of a log directory could not be read in time", path=directory.path)
    except OSError as problem:
        log.warning("the space of a log directory could not be read", path=directory.path, reason=problem)
        return DescribeLogDirsResult(log_dir=directory.path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    return described


def _topics(partitions: list[Partition], moves: list[tuple[Partition, OngoingMove]]) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size_bytes)
        )
    for partition, move in moves:
        topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic, partitions=[]))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=move.size_bytes,
                offset_lag=max(0, move.lag),
                is_future_key=True,
            )
        )
    return list(topics.values())
