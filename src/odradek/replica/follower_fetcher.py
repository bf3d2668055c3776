"""Fetches all partitions that this broker follows on one leader, over one connection and in one fetch session.

One fetch is on its way at a time. Its response is appended where it was received; a partition whose log must be
truncated first, or whose fetch was refused, is left out of the fetches until it is ready.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.replica.fetch_request_session import FetchPosition, FetchRequestSession, PartitionKey
from odradek.replica.followed_partition import FollowedPartition, Next, Step
from odradek.replica.replication_counts import ReplicationCounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from odradek.client.broker_client import BrokerClient
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Clock, Timer
    from odradek.replica.partition import Partition
    from odradek.replica.replication_throttle import ReplicationThrottle

log = get_logger(__name__)

# The leader has forgotten the session: the next fetch begins another one.
_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)

SHORTEST_RETRY_MS = 50.0  # to a leader that cannot be reached


LATEST, EARLIEST = -1, -2


class LogRange(NamedTuple):
    """The first and last offset of a leader's log, by ListOffsets requests."""

    start_offset: int
    end_offset: int


class FollowerFetcher:
    """`broker_epoch` is that of this broker's present registration."""

    def __init__(
        self,
        client: BrokerClient,
        node_id: int,
        broker_epoch: Callable[[], int],
        broker_config: Callable[[], BrokerConfig],
        clock: Clock,
        throttle: ReplicationThrottle,
        counts: ReplicationCounts | None = None,
    ) -> None:
        self.client = client
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._broker_config = broker_config
        self._clock = clock
        self._throttle = throttle
        self._counts = counts or ReplicationCounts()
        self._session = FetchRequestSession()
        self._partitions: dict[PartitionKey, FollowedPartition] = {}
        self._changed: dict[PartitionKey, None] = {}  # whose position may be another than in the last fetch
        self._paused: dict[PartitionKey, FollowedPartition] = {}
        self._has_changed = asyncio.Event()
        self._is_fetching = False
        self._has_interrupted = False  # the wait of the fetch on its way
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = self._begin(self._run())
        self._retry_ms = SHORTEST_RETRY_MS

    # Partitions

    def add(self, partition: Partition) -> None:
        """Follow the partition in its present leader epoch, also if it was followed in an earlier one."""
        followed = FollowedPartition(partition)
        self._partitions[followed.key] = followed
        self._paused.pop(followed.key, None)  # of an earlier leader epoch
        self._changed[followed.key] = None
        if partition.follower_log.is_truncating:  # since an earlier leader epoch
            self._hold(followed, partition.follower_log.settle())
        self._wake()

    def remove(self, key: PartitionKey) -> None:
        if self._partitions.pop(key, None) is not None:
            self._changed[key] = None
            self._wake()

    def follows(self, key: PartitionKey, partition: Partition) -> bool:
        followed = self._partitions.get(key)
        return followed is not None and followed.partition is partition and followed.is_following

    @property
    def keys(self) -> Iterable[PartitionKey]:
        return self._partitions.keys()

    def stop(self) -> None:
        """Nothing of it touches a log after this, but for a truncation that is running."""
        self._partitions.clear()
        for task in self._tasks:
            task.cancel()

    def _wake(self) -> None:
        """Partitions have changed. A leader that lets a fetch wait answers it when the next request arrives."""
        self._has_changed.set()
        if self._is_fetching and not self._has_interrupted and self.client.is_connected:
            self._has_interrupted = True
            self._begin(self._interrupt_wait())

    async def _interrupt_wait(self) -> None:
        try:
            await self.client.call(
                ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=self._config.replica_socket_timeout_ms, version=0
            )
        except BrokerUnavailable:
            return  # the fetch has failed as well

    # Fetching

    @property
    def _config(self) -> BrokerConfig:
        return self._broker_config()

    async def _run(self) -> None:
        while True:
            self._has_changed.clear()
            try:
                changes = self._changes()
                if not self._session.sent and not any(changes.values()):
                    await self._pause(self._next_pause_end_ms())
                    continue
                self._is_fetching, self._has_interrupted = True, False
                await self._fetch(changes)
            except BrokerUnavailable as problem:
                log.info("a leader cannot be reached", leader=str(self.client.address), reason=problem)
                self._session.reset()
                self._is_fetching = False
                await self._pause(self._retry_ms)
                self._retry_ms = min(2 * self._retry_ms, max(self._config.replica_fetch_backoff_ms, SHORTEST_RETRY_MS))
            except Exception as problem:
                log.error("a fetch from a leader failed", leader=str(self.client.address), exc_info=problem)
                self._session.reset()
                self._is_fetching = False
                await self._pause(self._config.replica_fetch_backoff_ms)
            finally:
                self._is_fetching = False

    def _changes(self) -> dict[PartitionKey, FetchPosition | None]:
        """The positions of the partitions that may have changed; None for those that cannot be fetched."""
        now_ms = self._clock.monotonic_ms()
        for key in [key for key, followed in self._paused.items() if followed.not_before_ms <= now_ms]:
            del self._paused[key]
            self._changed[key] = None
        max_bytes = self._config.replica_fetch_max_bytes
        changes: dict[PartitionKey, FetchPosition | None] = {}
        for key in self._changed:
            followed = self._partitions.get(key)
            if followed is not None and self._must_slow_down(followed):
                followed.not_before_ms = now_ms + max(self._config.replica_fetch_backoff_ms, SHORTEST_RETRY_MS)
                self._paused[key] = followed
            is_ready = followed is not None and followed.is_following and not followed.is_busy
            is_ready = is_ready and key not in self._paused
            changes[key] = followed.position(max_bytes) if followed is not None and is_ready else None
        self._changed.clear()
        return changes

    def _must_slow_down(self, followed: FollowedPartition) -> bool:
        """Whether the replica is throttled, and more was fetched than the rate allows."""
        partition = followed.partition
        if not self._throttle.covers(partition.topic, partition.index):
            return False
        image = partition.image
        is_in_sync = image is not None and self._node_id in image.in_sync_replicas
        return not is_in_sync and self._throttle.is_exceeded

    def _next_pause_end_ms(self) -> float | None:
        """How long until a partition that pauses can be fetched."""
        if not self._paused:
            return None
        earliest_ms = min(followed.not_before_ms for followed in self._paused.values())
        return max(earliest_ms - self._clock.monotonic_ms(), 0.0)

    async def _pause(self, duration_ms: float | None) -> None:
        """Until partitions change, at most for this time."""
        timer: Timer | None = None
        if duration_ms is not None:
            timer = self._clock.call_after(duration_ms, self._has_changed.set)
        try:
            await self._has_changed.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _fetch(self, changes: dict[PartitionKey, FetchPosition | None]) -> None:
        config = self._config
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=self._broker_epoch()),
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
        )
        self._session.fill(request, changes)
        pause_ms = self._next_pause_end_ms()  # a partition that pauses ends the wait of the others' fetch
        timer = None if pause_ms is None else self._clock.call_after(pause_ms, self._wake)
        try:
            await self.client.call_in_place(
                request, FetchResponse, self._take, timeout_ms=config.replica_socket_timeout_ms
            )
        finally:
            if timer is not None:
                timer.cancel()
        self._retry_ms = SHORTEST_RETRY_MS

    def _take(self, response: FetchResponse) -> None:
        """Runs where the response was received: its records are views of the receive buffer."""
        if not self._session.accept(response):
            error = ErrorCode(response.error_code)
            if error not in _SESSION_ERRORS:
                raise BrokerUnavailable(f"it refused a fetch: {error.name}")
            log.info("a fetch session was refused", leader=str(self.client.address), error=error.name)
            return
        sent = self._session.sent
        for topic in response.responses:
            for data in topic.partitions:
                key = PartitionKey(topic.topic_id, data.partition_index)
                followed, position = self._partitions.get(key), sent.get(key)
                self._changed[key] = None
                if followed is not None and position is not None:
                    self._take_partition(followed, position, data)

    def _take_partition(self, followed: FollowedPartition, position: FetchPosition, data: PartitionData) -> None:
        """A defect that shows in one partition delays that one, and not the others of this leader."""
        try:
            self._counts.bytes_in += len(data.records or b"")
            if self._throttle.covers(followed.partition.topic, followed.partition.index):
                self._throttle.record(len(data.records))  # type: ignore[arg-type]  # no slices in a response
            self._carry_out(followed, followed.take(data, position))
        except Exception as problem:
            self._report_defect(followed, problem)
            self._delay(followed)

    def _report_defect(self, followed: FollowedPartition, problem: Exception) -> None:
        log.error(
            "a partition could not follow its leader; retrying", topic=followed.partition.topic,
            partition=followed.partition.index, exc_info=problem,
        )  # fmt: skip

    # What follows from an answer

    def _carry_out(self, followed: FollowedPartition, step: Step) -> None:
        follower_log = followed.partition.follower_log
        match step.next:
            case Next.PAUSE:
                self._delay(followed)
            case Next.TRUNCATE:
                followed.report_truncation(step.offset)
                self._hold(followed, follower_log.begin_truncation(step.offset))
            case Next.RESTART:
                self._hold(followed, self._finish_restart(follower_log.begin_restart(step.offset), followed, step))
            case Next.FIND_RANGE:
                self._hold(followed, self._find_range(followed))
            case Next.FETCH:
                pass

    def _delay(self, followed: FollowedPartition) -> None:
        followed.pause(self._clock.monotonic_ms(), self._config.replica_fetch_backoff_ms)
        self._paused[followed.key] = followed
        self._changed[followed.key] = None

    def _hold(self, followed: FollowedPartition, work: Awaitable[None]) -> None:
        """Leave the partition out of fetches until the work has ended."""
        followed.is_busy = True
        self._changed[followed.key] = None
        self._begin(self._after(followed, work))

    async def _after(self, followed: FollowedPartition, work: Awaitable[None]) -> None:
        try:
            await work
        except (OSError, BrokerUnavailable) as problem:
            log.warning(
                "a follower could not align its log with the leader's", topic=followed.partition.topic,
                partition=followed.partition.index, reason=problem,
            )  # fmt: skip
            self._delay(followed)
        except Exception as problem:
            self._report_defect(followed, problem)
            self._delay(followed)
        finally:
            followed.is_busy = False
            self._changed[followed.key] = None
            self._wake()

    async def _finish_restart(self, restart: Awaitable[None], followed: FollowedPartition, step: Step) -> None:
        await restart
        if step.answer is not None:
            followed.append_after_restart(step.answer)

    async def _find_range(self, followed: FollowedPartition) -> None:
        """The leader does not have the offset of the log end. As in Kafka: a log that is longer than the leader's is
        cut, one that ends before the leader's begins starts again there."""
        partition = followed.partition
        timeout_ms = self._config.replica_socket_timeout_ms
        found = await _fetch_log_range(self.client, partition, self._node_id, timeout_ms=timeout_ms)
        if not followed.is_following:
            return
        if found is None:
            self._delay(followed)
        elif found.end_offset < partition.log.log_end_offset:
            followed.report_truncation(found.end_offset)
            await partition.follower_log.truncate_to(found.end_offset)
        elif found.start_offset > partition.log.log_end_offset:
            await partition.follower_log.restart_at(found.start_offset)
        else:
            self._delay(followed)  # the leader's log has changed since

    def _begin(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("a task of a follower failed", leader=str(self.client.address), exc_info=problem)


async def _fetch_log_range(
    client: BrokerClient, partition: Partition, node_id: int, *, timeout_ms: float
) -> LogRange | None:
    """None when the broker does not lead in this leader epoch. BrokerUnavailable as for every call."""
    found = []
    leader_epoch = partition.leader_epoch
    for timestamp in (EARLIEST, LATEST):
        asked = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=node_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[asked])]
        )
        response = await client.call(request, ListOffsetsResponse, timeout_ms=timeout_ms)
        answer = response.topics[0].partitions[0]
        if answer.error_code != ErrorCode.NONE:
            return None
        found.append(answer.offset)
    return LogRange(*found)
