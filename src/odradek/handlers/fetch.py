"""Fetch, versions 4 to 18: records of several partitions, from an offset on, as slices of the segment files.

Departures from Kafka: no followers yet, so a request from a replica is answered as by a broker that leads nothing;
throttling and preferred read replicas are not built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.leader_hints import add_leader_hints
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.partition import FetchResult, Role
from odradek.replica.waiting_requests import WaitingFetch
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchedPartition, FetchSession
    from odradek.replica.partition import Partition

log = get_logger(__name__)

# An attribute of an enum takes long to look up.
_NONE = ErrorCode.NONE
_LEADER = Role.LEADER

READ_COMMITTED = 1
FIRST_VERSION_WITH_REPLICA_STATE = 15
BULK_BYTES = 16 << 10  # a little may wait for the disk: to ask first would cost every read at the end of a log


class _Round:
    """One pass over a session's partitions: what each gave, and how many bytes that is."""

    __slots__ = ("has_news", "needs_disk", "results", "size_bytes")

    def __init__(self) -> None:
        self.results: list[tuple[FetchedPartition, Partition | None, FetchResult]] = []
        self.size_bytes = 0
        self.needs_disk = False  # it was given up: a worker must do it
        self.has_news = False  # something the client must hear of now, however few bytes there are


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | Awaitable[FetchResponse]:
    session = context.services.fetch_sessions.begin(request, context.api_version)
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
    round_ = _read(request, context, session, max_bytes, False)
    if round_.needs_disk:
        return _read_on_worker(request, context, session, max_bytes)
    return _respond_or_wait(request, context, session, round_, max_bytes)


async def _read_on_worker(
    request: FetchRequest, context: RequestContext, session: FetchSession, max_bytes: int
) -> FetchResponse:
    round_ = await context.services.host.workers.run(_read, request, context, session, max_bytes, True)
    response = _respond_or_wait(request, context, session, round_, max_bytes)
    return response if isinstance(response, FetchResponse) else await response


def _respond_or_wait(
    request: FetchRequest, context: RequestContext, session: FetchSession, round_: _Round, max_bytes: int
) -> FetchResponse | Awaitable[FetchResponse]:
    missing_bytes = min(request.min_bytes, max_bytes) - round_.size_bytes
    if missing_bytes <= 0 or round_.has_news or request.max_wait_ms <= 0 or not session.partitions:
        return _respond(request, context, session, round_)
    partitions = _partitions_to_wait_for(context, round_)
    if not partitions:
        return _respond(request, context, session, round_)
    waiting = WaitingFetch(partitions, missing_bytes, request.max_wait_ms, context.services.host.clock)
    return _wait(request, context, session, waiting)


def _partitions_to_wait_for(context: RequestContext, round_: _Round) -> list[Partition]:
    """Nobody when there is more already: a read ends with its segment, or where an old stretch was checked to, and what
    follows is there to be asked for; and while a worker looked, something may have been appended, or the broker told
    to stop."""
    partitions: list[Partition] = []
    if context.services.partitions.is_ending:
        return partitions
    for wanted, partition, result in round_.results:
        if partition is None or partition.role is not _LEADER:  # unknown, or gone while a worker looked
            continue
        if result.records is not None and partition.needs_disk(wanted.fetch_offset):
            return []
        if result.high_watermark != partition.high_watermark:
            return []
        partitions.append(partition)
    return partitions


async def _wait(
    request: FetchRequest, context: RequestContext, session: FetchSession, waiting: WaitingFetch
) -> FetchResponse:
    """Long poll: read again when enough has been appended, or when the client's patience ends."""
    await waiting.wait()
    max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
    round_ = _read(request, context, session, max_bytes, False)
    if round_.needs_disk:
        round_ = await context.services.host.workers.run(_read, request, context, session, max_bytes, True)
    return _respond(request, context, session, round_)


def _read(
    request: FetchRequest, context: RequestContext, session: FetchSession, remaining_bytes: int, may_block: bool
) -> _Round:
    """On the event loop it may not block: it stops at the first place that must be looked up in files, because who
    reads last month must not delay who reads the tail."""
    round_ = _Round()
    results = round_.results
    is_replica = _replica_id(request, context.api_version) >= 0
    topic: str | UUID | None = None
    partitions: Sequence[Partition] = ()
    is_allowed = False
    for wanted in tuple(session.partitions.values()):
        partition = None
        wanted_topic, index = wanted.key
        if wanted_topic is not topic:  # partitions of a topic mostly come together
            topic = wanted_topic
            partitions = _find_topic(context, topic)
            name = topic if isinstance(topic, str) else partitions[0].topic if partitions else None
            # An unknown topic id reveals nothing, so it is answered as unknown.
            is_allowed = name is None or context.allows_on_topic(Operation.READ, name)
        if 0 <= index < len(partitions):
            partition = partitions[index]
        if not is_allowed:
            result = FetchResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif partition is None:
            result = FetchResult(_unknown(topic, partitions))
        elif is_replica:
            result = FetchResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not may_block and partition.needs_disk(wanted.fetch_offset):
            round_.needs_disk = True
            break
        else:
            result = _read_one(wanted, partition, remaining_bytes, round_.size_bytes == 0, may_block)
        if result.records is not None:
            size = len(result.records)
            if not may_block and size >= BULK_BYTES and not result.records.is_in_memory():
                round_.needs_disk = True
                break
            round_.size_bytes += size
            remaining_bytes = max(0, remaining_bytes - size)
        elif result.error is not _NONE or result.diverging_epoch != NO_EPOCH:
            round_.has_news = True
        results.append((wanted, partition, result))
    return round_


def _read_one(
    wanted: FetchedPartition, partition: Partition, remaining_bytes: int, whole_first_batch: bool, may_block: bool
) -> FetchResult:
    try:
        result = partition.fetch(
            wanted.fetch_offset,
            min(wanted.max_bytes, remaining_bytes),
            current_leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
            whole_first_batch=whole_first_batch,
        )
        records = result.records
        if (
            may_block
            and records is not None
            and (len(records) >= BULK_BYTES or partition.needs_disk(wanted.fetch_offset))
        ):
            records.bring_into_memory()  # or the event loop would wait for the disk when it sends them
        return result
    except OSError as problem:
        if partition.role is not _LEADER:  # its files went while a worker looked
            return FetchResult(partition.check_epoch(NO_EPOCH))
        log.error("read failed", topic=partition.topic, partition=partition.index, reason=str(problem))
        return FetchResult(ErrorCode.KAFKA_STORAGE_ERROR)


def _find_topic(context: RequestContext, topic: str | UUID) -> Sequence[Partition]:
    table = context.services.partitions
    return (table.topic(topic) if isinstance(topic, str) else table.topic_by_id(topic)) or ()


def _unknown(topic: str | UUID, partitions: Sequence[Partition]) -> ErrorCode:
    is_known = isinstance(topic, str) or partitions
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_known else ErrorCode.UNKNOWN_TOPIC_ID


def _replica_id(request: FetchRequest, version: int) -> int:
    return request.replica_state.replica_id if version >= FIRST_VERSION_WITH_REPLICA_STATE else request.replica_id


def _respond(request: FetchRequest, context: RequestContext, session: FetchSession, round_: _Round) -> FetchResponse:
    topics: list[FetchableTopicResponse] = []
    last_topic: object = None
    is_committed_only = request.isolation_level == READ_COMMITTED
    is_incremental = session.is_incremental
    for wanted, _, result in round_.results:
        if is_incremental and not wanted.is_news(result):
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
    response = FetchResponse(error_code=ErrorCode.NONE, session_id=session.session_id, responses=topics)
    if round_.has_news:
        add_leader_hints(response, context)
    return response


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
    if result.diverging_epoch != NO_EPOCH:
        data.diverging_epoch = EpochEndOffset(epoch=result.diverging_epoch, end_offset=result.diverging_end_offset)
    return data
