"""Fetches of followers: who may send them, and what the leader learns from them.

A follower reads to the log end, uncommitted records included, and its fetch offset moves the high watermark. So a
client must not pretend to be one: the request needs ClusterAction on the listener of brokers, and the sender must be a
replica of the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.handlers.broker_access import is_broker_request, is_on_broker_listener
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_BROKER_EPOCH, NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchedPartition, FetchSession
    from odradek.protocol.messages.fetch import FetchRequest
    from odradek.replica.fetch_result import FetchResult
    from odradek.replica.partition import Partition

FIRST_VERSION_WITH_REPLICA_STATE = 15
FIRST_VERSION_WITH_REQUEST_ERROR = 7
NO_SESSION_ID = 0

_NONE = ErrorCode.NONE


class Replica(NamedTuple):
    """The follower that sent a request. `is_allowed` is False for a client that may not be one."""

    node_id: int
    broker_epoch: int
    is_allowed: bool


def replica_of(request: FetchRequest, context: RequestContext) -> Replica | None:
    """The follower that sent this request; None for a consumer."""
    if context.api_version >= FIRST_VERSION_WITH_REPLICA_STATE:
        node_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    else:
        node_id, broker_epoch = request.replica_id, NO_BROKER_EPOCH
    if node_id < 0:
        return None
    return Replica(node_id, broker_epoch, is_broker_request(context))


def is_from_client_listener(context: RequestContext) -> bool:
    """Whether a follower's request came through a listener of clients; older versions have an error for each partition
    only."""
    return context.api_version >= FIRST_VERSION_WITH_REQUEST_ERROR and not is_on_broker_listener(context)


def check_replica(replica: Replica, wanted: FetchedPartition, partition: Partition) -> ErrorCode:
    """Whether this follower may fetch the partition. It must name the leader epoch that it follows: what it has is
    only known to be a prefix of this log if both are in the same epoch."""
    error = partition.check_epoch(wanted.current_leader_epoch)
    if error is not _NONE:
        return error
    followers = partition.followers
    if followers is None or replica.node_id not in followers.in_sync.followers:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.UNKNOWN_LEADER_EPOCH if wanted.current_leader_epoch == NO_EPOCH else _NONE


def record_progress(replica: Replica, wanted: FetchedPartition, partition: Partition) -> ErrorCode:
    """On the event loop, after a read that found neither an error nor a divergence. The leader epoch is checked again,
    because it may have changed while a worker read."""
    error = check_replica(replica, wanted, partition)
    if error is not _NONE or partition.followers is None:
        return error
    return partition.followers.record_fetch(
        replica.node_id, wanted.fetch_offset, wanted.log_start_offset, replica.broker_epoch
    )


def end_visits(
    session: FetchSession,
    replica: Replica,
    results: Sequence[tuple[FetchedPartition, Partition | None, FetchResult]],
) -> None:
    """Leave the partitions of which the follower knows everything, and the leader its progress, out of its next fetch,
    until they change. All others are visited again: those with more records, those with an error, and those from whose
    in-sync set the follower was removed while the fetch waited, because it joins again only by a later fetch."""
    watch = session.watch
    assert watch is not None
    for wanted, partition, result in results:
        if result.records is not None:
            watch.changed.pop(wanted.key, None)  # to the end, so that a small limit starves no partition
            watch.changed[wanted.key] = None
        elif (
            partition is not None
            and result.error is _NONE
            and result.diverging_epoch == NO_EPOCH
            and wanted.fetch_offset == partition.log.log_end_offset
            and wanted.reported_high_watermark == partition.high_watermark
            and wanted.reported_log_start_offset == partition.log.log_start_offset
            and _is_progress_known(replica, wanted, partition)
        ):
            watch.changed.pop(wanted.key, None)
    if session.session_id == NO_SESSION_ID:
        session.close()


def _is_progress_known(replica: Replica, wanted: FetchedPartition, partition: Partition) -> bool:
    followers = partition.followers
    progress = None if followers is None else followers.in_sync.followers.get(replica.node_id)
    return (
        progress is not None
        and progress.fetch_offset == wanted.fetch_offset
        and progress.broker_epoch == replica.broker_epoch
    )
