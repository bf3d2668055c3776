"""The leader's side of replication throttles: followers that are not in sync get no records of throttled partitions
while the broker has sent more than its rate allows. `replica/replication_throttle` has the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_result import FetchResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchedPartition
    from odradek.handlers.replica_fetch import Replica
    from odradek.replica.partition import Partition
    from odradek.replica.replication_throttle import ReplicationThrottle


def exceeded_throttle(context: RequestContext) -> ReplicationThrottle | None:
    """The throttle of this leader, if more has passed than it allows. It is asked once for a round, which may run on
    a worker."""
    throttle = context.services.partitions.leader_throttle
    return throttle if throttle is not None and throttle.is_exceeded else None


def is_throttled(throttle: ReplicationThrottle, replica: Replica | None, partition: Partition) -> bool:
    followers = partition.followers
    if replica is None or followers is None or replica.node_id in followers.in_sync.confirmed:
        return False
    return throttle.covers(partition.topic, partition.index)


def throttled_result(partition: Partition) -> FetchResult:
    result = FetchResult(
        ErrorCode.NONE, partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset
    )
    result.is_throttled = True
    return result


def record_throttled(
    context: RequestContext, results: Sequence[tuple[FetchedPartition, Partition | None, FetchResult]]
) -> None:
    """Count what is sent of throttled partitions, to replicas in sync as well."""
    throttle = context.services.partitions.leader_throttle
    if throttle is None or not throttle.has_partitions:
        return
    for _, partition, result in results:
        if partition is not None and result.records is not None and throttle.covers(partition.topic, partition.index):
            throttle.record(len(result.records))
