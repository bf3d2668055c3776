"""Fetches records of assigned partitions over connections of our own, without a group.

The Kafka client library hangs on some batches, and its `close` never returns then. Here every wait has a deadline, and
a batch that cannot be read is reported and skipped (`fetched_batches`).
"""

from __future__ import annotations

import select
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from odradek.cli.client.broker_requests import error_text
from odradek.cli.client.fetched_batches import LARGEST_BATCH_BYTES, PartitionReader, UnreadableBatch
from odradek.cli.client.kafka_errors import LostConnection, NoAnswer, NoSuchTopic, NotAuthorized, RefusedConnection
from odradek.cli.client.wire_request import BrokerConnection
from odradek.cli.framework.failure import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from odradek.cli.client.cluster import Cluster
    from odradek.cli.client.fetched_batches import BatchRead, FetchedRecord
    from odradek.protocol.messages.fetch import PartitionData
    from odradek.protocol.schema import Response

Key = tuple[str, int]  # topic, partition
R = TypeVar("R", bound="Response")

LATEST, EARLIEST = -1, -2  # offsets to begin at
FETCH_VERSION = 10  # of Kafka 2.1, the first that returns batches of zstd
LIST_OFFSETS_VERSION = 2
CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 15.0
RETRY_S = 0.25
MISSING_TOPIC_S = 5.0  # how long after its creation a broker may not know a topic
MAX_WAIT_MS = 500
RESPONSE_BYTES = 4 * 1024 * 1024
PARTITION_BYTES = 1024 * 1024
MOST_STALLED = 3  # responses with bytes, and without a whole batch from the offset on
RESETS = {"earliest": EARLIEST, "smallest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "largest": LATEST,
          "end": LATEST}  # fmt: skip
RETRIED_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class FetchSettings(NamedTuple):
    """`decompressed_limit_bytes` of one batch. `offset_reset` says where to go on in a partition that does not have the
    offset: earliest, latest, or error."""

    decompressed_limit_bytes: int
    max_wait_ms: int = MAX_WAIT_MS
    response_bytes: int = RESPONSE_BYTES
    partition_bytes: int = PARTITION_BYTES
    client_id: str = "odradek-cli"
    isolation_level: str | None = None  # None: that of the user's properties
    offset_reset: str | None = None  # the same


class _Partition:
    __slots__ = ("is_at_end", "key", "leader", "offset", "retry_at", "since", "stalled")

    def __init__(self, key: Key, offset: int) -> None:
        self.key = key
        self.offset = offset  # the next one, or LATEST or EARLIEST
        self.leader: tuple[str, int] | None = None
        self.retry_at = 0.0  # when to look up its leader
        self.since = time.monotonic()  # when it was assigned, or the broker last knew it
        self.stalled = 0
        self.is_at_end = False


class _Broker:
    """A connection with at most one fetch that waits for its response."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.connection = connection
        self.deadline: float | None = None  # of the response
        self.first: _Partition | None = None  # in the fetch: a broker returns at least one batch of it, if it has any


def _raise(_key: Key, failure: Failure) -> None:
    raise failure


class RecordFetcher:
    """Assigned partitions with their next offsets. `poll` returns the records of one batch after another.

    `on_unreadable` gets the batches that are skipped, `on_failure` the partitions that cannot be read, which are then
    left out; it raises the failure unless it is given. `trouble` says what is retried: a broker that does not answer,
    or a partition without a leader. Refused connections and responses of no Kafka broker are Failures.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: FetchSettings,
        on_unreadable: Callable[[UnreadableBatch], None],
        on_failure: Callable[[Key, Failure], None] = _raise,
    ) -> None:
        self.trouble = ""
        self.heard_at = float("-inf")  # when the last batch was read, with or without records
        cluster.address("", 0)  # Failure for security properties that connections of our own cannot use
        self._cluster = cluster
        self._settings = settings
        properties = cluster.properties
        level = settings.isolation_level or properties.get("isolation.level", "read_committed")
        self._reads_committed = level.lower() != "read_uncommitted"
        reset = settings.offset_reset or properties.get("auto.offset.reset", "error")
        self._reset_to = RESETS.get(reset.lower())
        self._on_unreadable = on_unreadable
        self._on_failure = on_failure
        self._failures: deque[tuple[Key, Failure]] = deque()
        self._partitions: dict[Key, _Partition] = {}
        self._brokers: dict[tuple[str, int], _Broker] = {}
        self._fetched: deque[tuple[_Partition, Iterator[BatchRead], PartitionData]] = deque()

    def assign(self, offsets: Iterable[tuple[Key, int]]) -> None:
        """Adds partitions, or moves them to other offsets; LATEST and EARLIEST are offsets, too."""
        for key, offset in offsets:
            self._partitions[key] = _Partition(key, offset)

    def remove(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._partitions.pop(key, None)

    def position(self, key: Key) -> int | None:
        """The next offset to read; None before it is known, and for a partition that is not assigned."""
        partition = self._partitions.get(key)
        return None if partition is None or partition.offset < 0 else partition.offset

    def is_at_end(self, key: Key) -> bool:
        """Whether the last response had nothing after the position that this reader may read."""
        partition = self._partitions.get(key)
        return partition is not None and partition.is_at_end

    @property
    def keys(self) -> list[Key]:
        return list(self._partitions)

    def close(self) -> None:
        while self._brokers:
            self._brokers.popitem()[1].connection.close()
        self._fetched.clear()
        self._partitions.clear()

    def poll(self, timeout_s: float) -> list[FetchedRecord]:
        """The records of the next batch; none if no batch with records came in time, or when a partition has reached
        its end, so that the caller can look at it."""
        deadline = time.monotonic() + timeout_s
        while True:
            records, has_ended = self._next_batch(deadline)
            while self._failures:
                self._on_failure(*self._failures.popleft())
            left_s = deadline - time.monotonic()
            if records or has_ended or left_s <= 0:
                return records
            self._request_fetches()
            self._receive_fetches(max(0.0, min(left_s, RETRY_S)))

    def _next_batch(self, deadline: float) -> tuple[list[FetchedRecord], bool]:
        """Batches without records are passed over until the deadline: they may come faster than they are read."""
        while self._fetched:
            partition, batches, data = self._fetched[0]
            batch = next(batches, None) if self._partitions.get(partition.key) is partition else None
            if batch is not None:
                self._take(partition, batch)
                if batch.records or time.monotonic() > deadline:
                    return batch.records, False
                continue
            self._fetched.popleft()
            stable = data.last_stable_offset if self._reads_committed else data.high_watermark
            if partition.offset >= stable and self._partitions.get(partition.key) is partition:
                partition.is_at_end = True
                return [], True
        return [], False

    def _take(self, partition: _Partition, batch: BatchRead) -> None:
        if batch.next_offset > partition.offset:
            self.heard_at = time.monotonic()
            partition.offset = batch.next_offset
            partition.stalled = 0
            partition.is_at_end = False
        if batch.unreadable is not None and batch.unreadable.is_last:
            self._fail(partition, Failure(str(batch.unreadable)))
        elif batch.unreadable is not None:
            self._on_unreadable(batch.unreadable)

    def _fail(self, partition: _Partition, failure: Failure) -> None:
        self._partitions.pop(partition.key, None)
        self._failures.append((partition.key, failure))

    def _request_fetches(self) -> None:
        self._find_leaders()
        by_leader: dict[tuple[str, int], list[_Partition]] = {}
        for partition in self._partitions.values():
            if partition.leader is not None:
                by_leader.setdefault(partition.leader, []).append(partition)
        for address in [each for each in self._brokers if each not in by_leader]:
            self._brokers.pop(address).connection.close()
        for address, led in by_leader.items():
            broker = self._brokers.get(address)
            if broker is not None and broker.deadline is not None:
                continue
            try:
                if broker is None:
                    broker = self._brokers[address] = self._connect(address)
                self._resolve_offsets(broker.connection, led)
                ready = [each for each in led if each.offset >= 0 and each.leader == address]
                ready.sort(key=lambda each: not each.stalled)
                if ready:
                    request = self._fetch_request(ready)
                    broker.connection.send(request, FETCH_VERSION, self._settings.client_id.encode())
                    broker.first = ready[0]
                    broker.deadline = time.monotonic() + ANSWER_TIMEOUT_S + self._settings.max_wait_ms / 1000
            except (NoAnswer, LostConnection) as failure:
                self._lose(address, failure)

    def _connect(self, address: tuple[str, int]) -> _Broker:
        return _Broker(BrokerConnection(self._cluster.address(*address), CONNECT_TIMEOUT_S))

    def _lose(self, address: tuple[str, int], failure: Failure) -> None:
        """The partitions of the broker are read from their leaders as the metadata names them then."""
        self.trouble = failure.message
        broker = self._brokers.pop(address, None)
        if broker is not None:
            broker.connection.close()
        for partition in self._partitions.values():
            if partition.leader == address:
                self._look_up_later(partition)

    def _look_up_later(self, partition: _Partition) -> None:
        partition.leader = None
        partition.retry_at = time.monotonic() + RETRY_S

    def _find_leaders(self) -> None:
        now = time.monotonic()
        unled = [each for each in self._partitions.values() if each.leader is None and each.retry_at <= now]
        for topic in sorted({each.key[0] for each in unled}):
            asked = [each for each in unled if each.key[0] == topic]
            try:
                described = self._cluster.describe_topic(topic)
            except (NoSuchTopic, NotAuthorized) as failure:
                for each in asked:
                    if isinstance(failure, NotAuthorized) or now - each.since > MISSING_TOPIC_S:
                        self._fail(each, failure)
                    else:
                        self._look_up_later(each)
                continue
            except RefusedConnection:
                raise
            except Failure as failure:
                self.trouble = failure.message
                for each in asked:
                    self._look_up_later(each)
                continue
            leaders = {each.id: each.leader for each in described.partitions}
            for each in asked:
                leader = leaders.get(each.key[1])
                if leader is None:
                    self.trouble = f"{topic}-{each.key[1]} has no leader"
                    self._look_up_later(each)
                else:
                    each.leader = (leader.host, leader.port)

    def _resolve_offsets(self, connection: BrokerConnection, led: Iterable[_Partition]) -> None:
        """Looks up LATEST and EARLIEST."""
        unresolved = {each.key: each for each in led if each.offset < 0}
        if not unresolved:
            return
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (topic, index), each in unresolved.items():
            topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=each.offset))
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._reads_committed),
            topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )
        answer = connection.ask(request, ListOffsetsResponse, LIST_OFFSETS_VERSION)
        for answered in answer.topics:
            for found in answered.partitions:
                partition = unresolved.get((answered.name, found.partition_index))
                if partition is None:
                    continue
                if found.error_code:
                    self._handle_error(partition, found.error_code)
                else:
                    partition.offset = max(found.offset, 0)

    def _fetch_request(self, led: list[_Partition]) -> FetchRequest:
        """The partitions take turns in being the first: a response may have room for some only."""
        self._partitions[led[0].key] = self._partitions.pop(led[0].key)
        settings = self._settings
        topics: dict[str, list[FetchPartition]] = {}
        for each in led:
            wanted_bytes = settings.partition_bytes if not each.stalled else LARGEST_BATCH_BYTES
            topics.setdefault(each.key[0], []).append(
                FetchPartition(partition=each.key[1], fetch_offset=each.offset, partition_max_bytes=wanted_bytes)
            )
        return FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.response_bytes,
            isolation_level=int(self._reads_committed),
            topics=[FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
        )

    def _receive_fetches(self, timeout_s: float) -> None:
        waiting = {address: broker for address, broker in self._brokers.items() if broker.deadline is not None}
        if not waiting:
            time.sleep(timeout_s)
            return
        poller = select.poll()
        by_socket = {broker.connection.fileno(): address for address, broker in waiting.items()}
        for descriptor in by_socket:
            poller.register(descriptor, select.POLLIN)
        ready = {by_socket[descriptor] for descriptor, _events in poller.poll(timeout_s * 1000)}
        now = time.monotonic()
        for address, broker in waiting.items():
            if address in ready:
                broker.deadline = None
                try:
                    response = broker.connection.receive(FetchResponse, FETCH_VERSION, 2 * LARGEST_BATCH_BYTES)
                    self._take_response(response, broker.first)
                except (NoAnswer, LostConnection) as failure:
                    self._lose(address, failure)
            elif broker.deadline is not None and now > broker.deadline:
                self._lose(address, Failure(f"no response from {address[0]}:{address[1]} in time"))

    def _take_response(self, response: FetchResponse, first: _Partition | None) -> None:
        self.trouble = ""
        for topic in response.responses:
            for data in topic.partitions:
                partition = self._partitions.get((topic.topic, data.partition_index))
                if partition is None:
                    continue
                if data.error_code:
                    self._handle_error(partition, data.error_code)
                    continue
                partition.since = time.monotonic()
                self._queue(partition, data, is_first=partition is first)

    def _queue(self, partition: _Partition, data: PartitionData, *, is_first: bool) -> None:
        records = memoryview(cast("memoryview", data.records) if data.records is not None else b"")
        reader = PartitionReader(
            *partition.key, records, data.aborted_transactions or (), self._settings.decompressed_limit_bytes
        )
        if records:  # until a batch of them has advanced the offset
            partition.stalled = partition.stalled + 1 if is_first else max(partition.stalled, 1)
        if partition.stalled > MOST_STALLED:
            problem = f"the broker sends {len(records):,} bytes without a whole batch from this offset on"
            last = UnreadableBatch(*partition.key, partition.offset, partition.offset, problem, is_last=True)
            self._fail(partition, Failure(str(last)))
            return
        self._fetched.append((partition, reader.batches(partition.offset), data))

    def _handle_error(self, partition: _Partition, code: int) -> None:
        topic, index = partition.key
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self._reset_to is not None:
            partition.offset = self._reset_to
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._fail(partition, Failure(f"topic {topic}, partition {index} has no offset {partition.offset}"))
        elif code in RETRIED_ERRORS:
            self.trouble = error_text(code, None, f"{topic}-{index}")
            self._look_up_later(partition)
        else:
            kind = NotAuthorized if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED else Failure
            self._fail(partition, kind(error_text(code, None, f"topic {topic}, partition {index}")))
