"""Fetch, versions 4 to 18: records of several partitions, from an offset on, as slices of the segment files.

Departures from Kafka: a follower must name its leader epoch, which Kafka's followers do from version 9. Quotas count
the bytes of the records and an estimate of the rest of the response.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from odradek.handlers.closest_replica import accepts_followers, client_rack, names_no_rack, preferred_replica
from odradek.handlers.fetch_quota import charge_consumer
from odradek.handlers.fetch_sessions import NO_SESSION_ID
from odradek.handlers.fetch_traffic import count_fetched
from odradek.handlers.fetched_data import partition_data
from odradek.handlers.leader_hints import add_leader_hints
from odradek.handlers.replica_fetch import (
    Replica,
    check_replica,
    end_visits,
    is_from_client_listener,
    record_progress,
    replica_of,
)
from odradek.handlers.replica_throttle import exceeded_throttle, is_throttled, record_throttled, throttled_result
from odradek.handlers.request_record import LOG
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.fetch_result import READ_COMMITTED, FetchIsolation, FetchResult, client_isolation
from odradek.replica.follower_reads import fetch_from_follower, is_readable_follower
from odradek.replica.partition_fetch import fetch_from, needs_disk
from odradek.replica.waiting_requests import WaitingFetch
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchedPartition, FetchSession
    from odradek.host.workers import DirectoryWorkers
    from odradek.replica.partition import Partition

log = get_logger(__name__)

_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes long
_READ = Operation.READ

BULK_BYTES = 16 << 10  # fewer bytes may wait for the disk: asking first would slow down every read at a log's end


class _Round:
    """One pass over the partitions of a session: the result of each, and the bytes of all."""

    __slots__ = (
        "accepts_followers",
        "has_changed",
        "isolation",
        "limit_bytes",
        "needs_disk",
        "needs_epoch",
        "rack",
        "remaining_bytes",
        "replica",
        "results",
        "size_bytes",
        "throttle",
    )

    def __init__(self, request: FetchRequest, context: RequestContext, replica: Replica | None) -> None:
        self.results: list[tuple[FetchedPartition, Partition | None, FetchResult]] = []
        self.size_bytes = 0
        self.remaining_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
        if replica is None and context.meter is not None:
            self.remaining_bytes = min(self.remaining_bytes, context.meter.largest_fetch_bytes)
        self.limit_bytes = self.remaining_bytes
        self.replica = replica
        self.isolation = client_isolation(request.isolation_level) if replica is None else FetchIsolation.LOG_END
        self.accepts_followers = replica is None and accepts_followers(request, context)
        self.needs_epoch = self.accepts_followers and names_no_rack(request, context)
        self.rack = client_rack(request, context) if replica is None else ""
        self.throttle = None if replica is None else exceeded_throttle(context)
        self.needs_disk = False  # the round has stopped: it must run on workers
        self.has_changed = False  # there is an error or a divergence, which is answered at once

    def reads_from_follower(self, wanted: FetchedPartition, partition: Partition) -> bool:
        """Whether this broker answers a consumer as a replica that does not lead (KIP-392)."""
        if partition.is_leader or not self.accepts_followers:
            return False
        return not self.needs_epoch or wanted.current_leader_epoch != NO_EPOCH

    def refusal(self, wanted: FetchedPartition, partition: Partition, context: RequestContext) -> FetchResult | None:
        """The result without a read: an error, or no records."""
        if self.replica is not None:
            error = check_replica(self.replica, wanted, partition)
            if error is not _NONE:
                return FetchResult(error)
            if self.throttle is not None and is_throttled(self.throttle, self.replica, partition):
                return throttled_result(partition)
        elif self.rack:
            return preferred_replica(partition, wanted, self.rack, context)
        return None


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | Awaitable[FetchResponse]:
    replica = replica_of(request, context)
    if replica is not None and is_from_client_listener(context):
        return FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    is_follower = replica is not None and replica.is_allowed
    session = context.services.fetch_sessions.begin(request, context.api_version, is_follower=is_follower)
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    if replica is not None and is_follower:
        context.services.fetch_sessions.watch_for(session, replica.node_id, replica.broker_epoch)
    round_ = _read_on_loop(request, context, session, replica)
    if round_.needs_disk:
        return _read_on_workers_then_respond(request, context, session, replica)
    if replica is not None:
        _record_progress(session, round_)
    return _respond_or_wait(request, context, session, round_)


async def _read_on_workers_then_respond(
    request: FetchRequest, context: RequestContext, session: FetchSession, replica: Replica | None
) -> FetchResponse:
    round_ = await _read_on_workers(request, context, session, replica)
    if replica is not None:
        _record_progress(session, round_)
    response = _respond_or_wait(request, context, session, round_)
    return response if isinstance(response, FetchResponse) else await response


def _record_progress(session: FetchSession, round_: _Round) -> None:
    """Once for each request, when it has arrived: a follower that waits makes no progress."""
    assert round_.replica is not None
    for place, (wanted, partition, result) in enumerate(round_.results):
        if partition is not None and session.watch is not None:
            session.watch.watch(wanted.key, partition)
        # A throttled result was not read, so it does not show whether the follower's log diverges.
        is_known = result.error is _NONE and result.diverging_epoch == NO_EPOCH and not result.is_throttled
        if partition is not None and is_known:
            error = record_progress(round_.replica, wanted, partition)
            if error is not _NONE:
                round_.results[place] = wanted, partition, FetchResult(error)
                round_.has_changed = True
            else:
                result.high_watermark = partition.high_watermark  # the progress may have moved it


def _respond_or_wait(
    request: FetchRequest, context: RequestContext, session: FetchSession, round_: _Round
) -> FetchResponse | Awaitable[FetchResponse]:
    missing_bytes = min(request.min_bytes, round_.limit_bytes) - round_.size_bytes
    if missing_bytes <= 0 or round_.has_changed or request.max_wait_ms <= 0 or not session.partitions:
        return _respond(request, context, session, round_)
    if session.watch is not None:
        may_wait, partitions = not _has_more(round_) and not context.services.partitions.is_ending, []
        session.watch.throttled = frozenset(wanted.key for wanted, _, result in round_.results if result.is_throttled)
    else:
        partitions = _partitions_to_wait_for(context, round_)
        may_wait = bool(partitions)
    if not may_wait:
        return _respond(request, context, session, round_)
    waiting = WaitingFetch(
        partitions,
        missing_bytes,
        request.max_wait_ms,
        context.services.host.clock,
        is_committed_only=round_.isolation is FetchIsolation.TRANSACTION_COMMITTED,
        on_end=session.close if session.watch is not None and session.session_id == NO_SESSION_ID else None,
    )
    if session.watch is not None:
        context.connection.waiting_replica_fetch = session.watch.waiting = waiting
    return _wait(request, context, session, round_.replica, waiting)


def _has_more(round_: _Round) -> bool:
    """Whether a follower can read records that the round did not return: some were appended while a worker read."""
    return any(
        partition is not None
        and result.records is None
        and not result.is_throttled
        and wanted.fetch_offset != partition.log.log_end_offset
        for wanted, partition, result in round_.results
    )


def _partitions_to_wait_for(context: RequestContext, round_: _Round) -> list[Partition]:
    """The list is empty if the request must not wait, because more records can be read: a read ends at the end of its
    segment or of the verified records, and records may be committed while a worker reads. It is also empty if the
    broker is stopping."""
    partitions: list[Partition] = []
    if context.services.partitions.is_ending:
        return partitions
    for wanted, partition, result in round_.results:
        if partition is None or not (partition.is_leader or round_.reads_from_follower(wanted, partition)):
            continue  # unknown, or removed while a worker read
        if result.records is not None and needs_disk(partition, wanted.fetch_offset):
            return []
        if round_.isolation is FetchIsolation.TRANSACTION_COMMITTED:
            if result.last_stable_offset != partition.last_stable_offset:
                return []
        elif result.high_watermark != partition.high_watermark:
            return []
        partitions.append(partition)
    return partitions


async def _wait(
    request: FetchRequest,
    context: RequestContext,
    session: FetchSession,
    replica: Replica | None,
    waiting: WaitingFetch,
) -> FetchResponse:
    """Long poll: read again when enough records were committed, or after the timeout."""
    try:
        await waiting.wait()
    finally:
        if session.watch is not None:
            context.connection.waiting_replica_fetch = session.watch.waiting = None
    round_ = _read_on_loop(request, context, session, replica)
    if round_.needs_disk:
        round_ = await _read_on_workers(request, context, session, replica)
    return _respond(request, context, session, round_)


def _read_on_loop(
    request: FetchRequest, context: RequestContext, session: FetchSession, replica: Replica | None
) -> _Round:
    round_ = _Round(request, context, replica)
    _read(round_, session.to_visit(), context, False)
    return round_


async def _read_on_workers(
    request: FetchRequest, context: RequestContext, session: FetchSession, replica: Replica | None
) -> _Round:
    """One job for neighbours in the same log directory, on the workers of that directory."""
    round_ = _Round(request, context, replica)
    began_ms = context.services.host.clock.monotonic_ms()
    neighbours = itertools.groupby(session.to_visit(), lambda wanted: _workers_of(context, wanted))
    for workers, wanted in [(workers, tuple(wanted)) for workers, wanted in neighbours]:
        if workers is None:
            _read(round_, wanted, context, False)
        else:
            await workers.files.run(_read, round_, wanted, context, True)
    context.add_wait(LOG, began_ms)
    return round_


def _workers_of(context: RequestContext, wanted: FetchedPartition) -> DirectoryWorkers | None:
    topic, index = wanted.key
    partition = _find_topic(context, topic).get(index)
    return None if partition is None else partition.workers


def _read(
    round_: _Round, wanted_partitions: Iterable[FetchedPartition], context: RequestContext, may_block: bool
) -> None:
    """Read these partitions. On the event loop it may not block: it stops at the first read that needs the disk, so
    that readers of old records do not delay readers of new ones."""
    results, replica = round_.results, round_.replica
    topic: str | UUID | None = None
    partitions: Mapping[int, Partition] = {}
    is_allowed = False
    has_conditions = replica is not None or bool(round_.rack)
    for wanted in wanted_partitions:
        wanted_topic, index = wanted.key
        if wanted_topic is not topic:  # partitions of a topic mostly come together
            topic = wanted_topic
            partitions = _find_topic(context, topic)
            is_allowed = _allows_reading(context, topic) if replica is None else replica.is_allowed
        partition = partitions.get(index)
        if not is_allowed:
            result = FetchResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif partition is None:
            result = FetchResult(context.services.partitions.absence(topic, index))
        elif has_conditions and (refusal := round_.refusal(wanted, partition, context)) is not None:
            result = refusal
        elif not may_block and needs_disk(partition, wanted.fetch_offset, round_.isolation):
            round_.needs_disk = True
            break
        else:
            result = _read_one(wanted, partition, round_, may_block)
        if result.records is not None:
            size = len(result.records)
            if not may_block and size >= BULK_BYTES and not result.records.is_in_memory():
                round_.needs_disk = True
                break
            round_.size_bytes += size
            round_.remaining_bytes = max(0, round_.remaining_bytes - size)
        elif result.is_answered_at_once:
            round_.has_changed = True
        results.append((wanted, partition, result))


def _read_one(wanted: FetchedPartition, partition: Partition, round_: _Round, may_block: bool) -> FetchResult:
    is_follower_read = round_.reads_from_follower(wanted, partition)
    read = fetch_from_follower if is_follower_read else fetch_from
    try:
        result = read(
            partition,
            wanted.fetch_offset,
            min(wanted.max_bytes, round_.remaining_bytes),
            current_leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
            whole_first_batch=round_.size_bytes == 0,
            isolation=round_.isolation,
        )
        records = result.records
        if (
            may_block
            and records is not None
            and (len(records) >= BULK_BYTES or needs_disk(partition, wanted.fetch_offset))
        ):
            records.bring_into_memory()  # or the event loop would wait for the disk when it sends them
        return result
    except OSError as problem:
        if not (is_readable_follower(partition) if is_follower_read else partition.is_leader):
            return FetchResult(partition.absence)  # its files were removed while a worker read
        log.error("read failed", topic=partition.topic, partition=partition.index, reason=problem)
        return FetchResult(ErrorCode.KAFKA_STORAGE_ERROR)


def _find_topic(context: RequestContext, topic: str | UUID) -> Mapping[int, Partition]:
    table = context.services.partitions
    return (table.topic(topic) if isinstance(topic, str) else table.topic_by_id(topic)) or {}


def _allows_reading(context: RequestContext, topic: str | UUID) -> bool:
    """A topic id that is unknown needs no permission: the answer says only that it is unknown."""
    if not isinstance(topic, str):
        known = context.services.image.topic_by_id(topic)
        if known is None:
            return True
        topic = known.name
    return context.allows_on_topic(_READ, topic)


def _respond(request: FetchRequest, context: RequestContext, session: FetchSession, round_: _Round) -> FetchResponse:
    if context.meter is not None and round_.replica is None:
        withheld = charge_consumer(context, context.meter, session, round_.size_bytes, len(round_.results))
        if withheld is not None:
            return withheld
    topics: list[FetchableTopicResponse] = []
    last_topic: object = None
    is_committed_only = request.isolation_level == READ_COMMITTED
    is_incremental = session.is_incremental
    for wanted, _, result in round_.results:
        if is_incremental and not wanted.has_changed(result):
            continue
        wanted.reported(result)
        topic, index = wanted.key
        if topic != last_topic:
            last_topic = topic
            topics.append(
                FetchableTopicResponse(topic=topic, partitions=[])
                if isinstance(topic, str)
                else FetchableTopicResponse(topic_id=topic, partitions=[])
            )
        topics[-1].partitions.append(partition_data(index, result, is_committed_only))
        if result.records is not None:
            session.served(wanted.key)
    response = FetchResponse(error_code=ErrorCode.NONE, session_id=session.session_id, responses=topics)
    if round_.has_changed:
        add_leader_hints(response, context)
    if round_.size_bytes:
        count_fetched(context.services.metrics.traffic, round_.results, is_replica=round_.replica is not None)
    if session.watch is not None and round_.replica is not None:
        end_visits(session, round_.replica, round_.results)
        record_throttled(context, round_.results)
    return response
