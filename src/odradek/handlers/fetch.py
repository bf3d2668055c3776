"""Fetch, versions 4 to 18: records of several partitions, from an offset on, as slices of the segment files.

Departures from Kafka: no followers yet, so a request from a replica is answered as by a broker that leads nothing;
throttling and preferred read replicas are not built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.replica.partition import UNKNOWN_EPOCH, FetchResult
from odradek.replica.waiting_requests import WaitingFetch
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchedPartition, FetchSession
    from odradek.replica.partition import Partition

READ_COMMITTED = 1
FIRST_VERSION_WITH_REPLICA_STATE = 15


class _Round:
    """One pass over a session's partitions: what each gave, and how many bytes that is."""

    __slots__ = ("has_news", "results", "size_bytes")

    def __init__(self) -> None:
        self.results: list[tuple[FetchedPartition, FetchResult]] = []
        self.size_bytes = 0
        self.has_news = False  # something the client must hear of now, however few bytes there are


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | Awaitable[FetchResponse]:
    session = context.services.fetch_sessions.begin(request, context.api_version)
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    round_ = _read(request, context, session)
    if round_.size_bytes >= request.min_bytes or round_.has_news or request.max_wait_ms <= 0 or not session.partitions:
        return _respond(request, session, round_)
    return _wait(request, context, session, request.min_bytes - round_.size_bytes)


async def _wait(
    request: FetchRequest, context: RequestContext, session: FetchSession, missing_bytes: int
) -> FetchResponse:
    """Long poll: read again when enough has been appended, or when the client's patience ends."""
    services = context.services
    partitions = [
        partition for wanted in session.partitions.values() if (partition := _find(context, wanted)) is not None
    ]
    await WaitingFetch(missing_bytes).wait(partitions, request.max_wait_ms, services.host.clock)
    return _respond(request, session, _read(request, context, session))


def _read(request: FetchRequest, context: RequestContext, session: FetchSession) -> _Round:
    round_ = _Round()
    remaining_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
    is_replica = _replica_id(request, context.api_version) >= 0
    for wanted in session.partitions.values():
        result = _read_one(context, session, wanted, remaining_bytes, round_.size_bytes == 0, is_replica)
        if result.records is not None:
            size = len(result.records)
            round_.size_bytes += size
            remaining_bytes = max(0, remaining_bytes - size)
        elif result.error is not ErrorCode.NONE or result.diverging_epoch != UNKNOWN_EPOCH:
            round_.has_news = True
        round_.results.append((wanted, result))
    return round_


def _read_one(
    context: RequestContext,
    session: FetchSession,
    wanted: FetchedPartition,
    remaining_bytes: int,
    whole_first_batch: bool,
    is_replica: bool,
) -> FetchResult:
    partition = _find(context, wanted)
    if partition is None:
        return FetchResult(
            ErrorCode.UNKNOWN_TOPIC_ID if session.uses_topic_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    if not context.allows_on_topic(Operation.READ, partition.topic):
        return FetchResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if is_replica:
        return FetchResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return partition.fetch(
        wanted.fetch_offset,
        min(wanted.max_bytes, remaining_bytes),
        current_leader_epoch=wanted.current_leader_epoch,
        last_fetched_epoch=wanted.last_fetched_epoch,
        whole_first_batch=whole_first_batch,
    )


def _find(context: RequestContext, wanted: FetchedPartition) -> Partition | None:
    topic, index = wanted.key
    partitions = context.services.partitions
    return partitions.find(topic, index) if isinstance(topic, str) else partitions.find_by_id(topic, index)


def _replica_id(request: FetchRequest, version: int) -> int:
    return request.replica_state.replica_id if version >= FIRST_VERSION_WITH_REPLICA_STATE else request.replica_id


def _respond(request: FetchRequest, session: FetchSession, round_: _Round) -> FetchResponse:
    topics: list[FetchableTopicResponse] = []
    last_topic: object = None
    is_committed_only = request.isolation_level == READ_COMMITTED
    for wanted, result in round_.results:
        if session.is_incremental and not wanted.is_news(result):
            continue
        wanted.told(result)
        topic, index = wanted.key
        if topic != last_topic:
            last_topic = topic
            topics.append(
                FetchableTopicResponse(topic=topic, partitions=[])
                if isinstance(topic, str)
                else FetchableTopicResponse(topic_id=topic, partitions=[])
            )
        topics[-1].partitions.append(_partition_data(index, result, is_committed_only))
        if result.records is not None:
            session.served(wanted.key)
    return FetchResponse(error_code=ErrorCode.NONE, session_id=session.session_id, responses=topics)


def _partition_data(index: int, result: FetchResult, is_committed_only: bool) -> PartitionData:
    data = PartitionData(
        partition_index=index,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.high_watermark,
        log_start_offset=result.log_start_offset,
        aborted_transactions=[] if is_committed_only else None,
        records=b"" if result.records is None else result.records,
    )
    if result.diverging_epoch != UNKNOWN_EPOCH:
        data.diverging_epoch = EpochEndOffset(epoch=result.diverging_epoch, end_offset=result.diverging_end_offset)
    return data
