"""Fetches records of assigned partitions over connections of our own, without a group.

The Kafka client library hangs on some batches, and its `close` never returns then. Here every wait has a deadline, and
a batch that cannot be read is reported and skipped (`fetched_batches`).
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, cast

from odradek.admin import errors
from odradek.admin.offsets import EARLIEST, LATEST, Key, offsets_request
from odradek.admin.offsets import VERSION as LIST_OFFSETS_VERSION
from odradek.admin.records.fetched_batches import LARGEST_BATCH_BYTES, PartitionReader, UnreadableBatch
from odradek.admin.wire import LONGEST_RECEIVE_S, BrokerConnection
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from odradek.protocol.messages.list_offsets import ListOffsetsResponse

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import BatchRead, FetchedRecord
    from odradek.protocol.schema import Request

Address = tuple[str, int]  # host, port
Asked = Mapping["Key", tuple["AssignedPartition", int]]  # the partitions of a request with their offsets in it

FETCH_VERSION = 10  # of Kafka 2.1, the first that returns batches of zstd
CONNECT_TIMEOUT_S = 1.0  # at first: other brokers are not read while one is connected to
LONGEST_CONNECT_S = 4.0
ANSWER_TIMEOUT_S = 15.0
RETRY_S = 0.25
BACKOFF = 4  # a failed connection or look-up is retried after this many times as long as it took
MOST_RECORDS = 1_000  # that `poll` collects of small batches
MOST_BYTES = 1024 * 1024
MISSING_TOPIC_S = 5.0  # how long after its creation a broker may not know a topic
MAX_WAIT_MS = 500
RESPONSE_BYTES = 4 * 1024 * 1024
PARTITION_BYTES = 1024 * 1024
MOST_STALLED = 3  # responses with bytes, and without a whole batch from the offset on
RESETS = {"earliest": EARLIEST, "smallest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "largest": LATEST,
          "end": LATEST}  # fmt: skip


RETRIED_ERRORS = frozenset({
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT,
})  # fmt: skip


class FetchSettings(NamedTuple):
    """`decompressed_limit_bytes` of a batch; `offset_reset` for an offset that is gone: earliest, latest, or error."""

    decompressed_limit_bytes: int
    max_wait_ms: int = MAX_WAIT_MS
    response_bytes: int = RESPONSE_BYTES
    partition_bytes: int = PARTITION_BYTES
    client_id: str = "odradek-cli"
    isolation_level: str | None = None  # None: that of the user's properties
    offset_reset: str | None = None  # the same


@dataclass(slots=True, eq=False)
class AssignedPartition:
    key: Key
    offset: int  # the next one, or LATEST or EARLIEST
    leader: Address | None = None
    retry_at: float = 0.0  # when to look up its leader
    since: float = field(default_factory=time.monotonic)  # when it was assigned, or the broker last knew it
    stalled: int = 0
    is_at_end: bool = False
    high_watermark: int = -1
    trouble: str = ""  # until the next response


@dataclass(slots=True, eq=False)
class LeaderConnection:
    """A connection with at most one request that waits for its response."""

    connection: BrokerConnection
    deadline: float | None = None  # of the response
    is_receiving: bool = False
    is_fetch: bool = False  # or a ListOffsets
    # A broker returns at least one batch of the first partition, if it has any. The response is not for a partition
    # that was assigned again.
    asked: Asked = field(default_factory=dict)


class FetchedPartition(NamedTuple):
    """What a response has of a partition."""

    address: Address
    partition: AssignedPartition
    batches: Iterator[BatchRead]
    data: PartitionData


def _raise(_key: Key, failure: Failure) -> None:
    raise failure


class RecordFetcher:
    """Assigned partitions with their next offsets. `poll` returns the records of one batch after another.

    `on_unreadable` gets the batches that are skipped, `on_failure` the partitions that cannot be read, which are then
    left out; it raises the failure unless it is given. `trouble` says what is retried: a broker that does not answer,
    or a partition without a leader; `on_trouble` gets it once until records come again. Refused connections and
    responses of no Kafka broker are Failures.
    """

    def __init__(
        self, cluster: Cluster, settings: FetchSettings, on_unreadable: Callable[[UnreadableBatch], None],
        on_failure: Callable[[Key, Failure], None] = _raise,
        on_trouble: Callable[[str], None] = lambda _trouble: None,
    ) -> None:  # fmt: skip
        self.heard_at = float("-inf")  # when the last batch was read, with or without records
        cluster.address("", 0)  # Failure for security properties that connections of our own cannot use
        self._cluster = cluster
        self._settings = settings
        properties = cluster.properties
        self._client_id = properties.get("client.id", settings.client_id).encode()
        level = settings.isolation_level or properties.get("isolation.level", "read_committed")
        self._reads_committed = level.lower() != "read_uncommitted"
        reset = settings.offset_reset or properties.get("auto.offset.reset", "error")
        self._reset_to = RESETS.get(reset.lower())
        self._on_unreadable = on_unreadable
        self._on_failure = on_failure
        self._on_trouble = on_trouble
        self._has_reported_trouble = False
        self._failures: deque[tuple[Key, Failure]] = deque()
        self._partitions: dict[Key, AssignedPartition] = {}
        self._brokers: dict[Address, LeaderConnection] = {}
        self._failed: dict[Address, tuple[float, float]] = {}  # when to connect again, and for how long
        self._fetched: deque[FetchedPartition] = deque()

    def assign(self, offsets: Iterable[tuple[Key, int]]) -> None:
        """Adds partitions, or moves them to other offsets; LATEST and EARLIEST are offsets, too."""
        for key, offset in offsets:
            self._partitions[key] = AssignedPartition(key, offset)

    def remove(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._partitions.pop(key, None)

    def position(self, key: Key) -> int | None:
        """The next offset to read; None before it is known, and for a partition that is not assigned."""
        partition = self._partitions.get(key)
        return None if partition is None or partition.offset < 0 else partition.offset

    def is_at_end(self, key: Key) -> bool:
        """Whether the last response had nothing after the position that this reader may read."""
        return key in self._partitions and self._partitions[key].is_at_end

    def high_watermark(self, key: Key) -> int:
        """That of the last response that was read, of an assigned partition; -1 before it."""
        return self._partitions[key].high_watermark

    @property
    def trouble(self) -> str:
        return next((each.trouble for each in self._partitions.values() if each.trouble), "")

    @property
    def keys(self) -> list[Key]:
        return list(self._partitions)

    def close(self) -> None:
        while self._brokers:
            self._brokers.popitem()[1].connection.close()
        self._fetched.clear()
        self._partitions.clear()

    def poll(self, timeout_s: float) -> list[FetchedRecord]:
        """The records of the next batches; none if none came in time, or when a partition has reached its end."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._check_stop()
            while self._failures:
                self._on_failure(*self._failures.popleft())
            self._request_fetches()
            left_s = 0.0 if self._fetched else max(0.0, min(deadline - time.monotonic(), RETRY_S))
            self._receive_responses(left_s)
            records, has_ended = self._read_fetched(deadline)
            if records or has_ended or time.monotonic() >= deadline:
                if records:
                    self._has_reported_trouble = False
                elif self.trouble and not self._has_reported_trouble:
                    self._has_reported_trouble = True
                    self._on_trouble(self.trouble)
                return records

    def _check_stop(self) -> None:
        """Between batches, too: those of one response take seconds if they are large, or on many threads."""
        if self._cluster.is_stopped():
            raise Failure("the reading of records was stopped")

    def _read_fetched(self, deadline: float) -> tuple[list[FetchedRecord], bool]:
        """The records of small batches together, and whether partitions have reached their ends. Batches without
        records are passed over until the deadline: they may come faster than they are read."""
        records: list[FetchedRecord] = []
        size_bytes = 0
        has_ended = False
        while self._fetched:
            self._check_stop()
            fetched = self._fetched[0]
            partition, batches = fetched.partition, fetched.batches
            is_assigned = self._partitions.get(partition.key) is partition
            batch = next(batches, None) if is_assigned else None
            if batch is None:
                self._fetched.popleft()
                has_ended |= is_assigned and self._is_end_reached(fetched)
                continue
            if records and batch.unreadable is not None:  # the caller gets the records before it is reported
                self._fetched[0] = fetched._replace(batches=chain([batch], batches))
                break
            self._take(partition, batch)
            records += batch.records
            size_bytes += batch.size_bytes
            if len(records) >= MOST_RECORDS or size_bytes >= MOST_BYTES or time.monotonic() >= deadline:
                break
        return records, has_ended

    def _is_end_reached(self, fetched: FetchedPartition) -> bool:
        """Whether the partition, which was not at its end, is there after this response."""
        partition, data = fetched.partition, fetched.data
        stable = data.last_stable_offset if self._reads_committed else data.high_watermark
        was_at_end = partition.is_at_end
        partition.high_watermark = data.high_watermark
        partition.is_at_end = partition.offset >= stable
        return partition.is_at_end and not was_at_end

    def _take(self, partition: AssignedPartition, batch: BatchRead) -> None:
        if batch.next_offset > partition.offset:
            self.heard_at = time.monotonic()
            partition.offset = batch.next_offset
            partition.stalled = 0
            partition.is_at_end = False
        if batch.unreadable is not None and batch.unreadable.is_last:
            self._fail(partition, Failure(str(batch.unreadable)))
        elif batch.unreadable is not None:
            self._on_unreadable(batch.unreadable)

    def _fail(self, partition: AssignedPartition, failure: Failure) -> None:
        self._partitions.pop(partition.key, None)
        self._failures.append((partition.key, failure))

    def _request_fetches(self) -> None:
        """Connected brokers are asked first: look-ups and new connections may take as long as their timeouts."""
        led = self._led_partitions()
        for address in [each for each in self._brokers if each not in led]:
            self._brokers.pop(address).connection.close()
        for address in list(self._brokers):
            self._ask(address, led[address])
        if self._fetched:
            return
        self._find_leaders()
        for address, partitions in self._led_partitions().items():
            began_at = time.monotonic()
            retry_at, timeout_s = self._failed.get(address, (0.0, CONNECT_TIMEOUT_S))
            if address in self._brokers or began_at < retry_at:
                continue
            secured = self._cluster.address(*address)
            try:
                self._brokers[address] = LeaderConnection(BrokerConnection(secured, timeout_s))
            except (errors.NoAnswer, errors.LostConnection) as failure:
                now = time.monotonic()
                retry_at = now + max(RETRY_S, BACKOFF * (now - began_at))
                self._failed[address] = retry_at, min(2 * timeout_s, LONGEST_CONNECT_S)
                self._lose(address, failure)
                return  # the next brokers in the next turn
            self._failed.pop(address, None)
            self._ask(address, partitions)

    def _led_partitions(self) -> dict[Address, list[AssignedPartition]]:
        led: dict[Address, list[AssignedPartition]] = {}
        for partition in self._partitions.values():
            if partition.leader is not None:
                led.setdefault(partition.leader, []).append(partition)
        return led

    def _ask(self, address: Address, led: list[AssignedPartition]) -> None:
        """Sends a fetch, after a look-up of LATEST and EARLIEST, unless a response is waited for or not read."""
        broker = self._brokers[address]
        if broker.deadline is not None or any(each.address == address for each in self._fetched):
            return
        unresolved = [each for each in led if each.offset < 0]
        asked = unresolved or sorted(led, key=lambda each: not each.stalled)
        if unresolved:
            times = ((each.key, each.offset) for each in asked)
            request: Request = offsets_request(times, reads_committed=self._reads_committed)
        else:  # the partitions take turns in being the first: a response may have room for some only
            self._partitions[asked[0].key] = self._partitions.pop(asked[0].key)
            request = fetch_request(asked, self._settings, reads_committed=self._reads_committed)
        broker.is_fetch = not unresolved
        broker.asked = {each.key: (each, each.offset) for each in asked}
        broker.deadline = time.monotonic() + ANSWER_TIMEOUT_S + self._settings.max_wait_ms / 1000
        broker.is_receiving = False
        try:
            broker.connection.send(request, FETCH_VERSION if broker.is_fetch else LIST_OFFSETS_VERSION, self._client_id)
        except errors.LostConnection as failure:
            self._lose(address, failure)

    def _lose(self, address: Address, failure: Failure) -> None:
        """The partitions of the broker are read from their leaders as the metadata names them then."""
        broker = self._brokers.pop(address, None)
        if broker is not None:
            broker.connection.close()
        for partition in self._partitions.values():
            if partition.leader == address:
                self._look_up_later(partition, failure.message)

    def _look_up_later(self, partition: AssignedPartition, trouble: str, after_s: float = RETRY_S) -> None:
        partition.leader = None
        partition.trouble = trouble
        partition.retry_at = time.monotonic() + after_s

    def _find_leaders(self) -> None:
        now = time.monotonic()
        unled = [each for each in self._partitions.values() if each.leader is None and each.retry_at <= now]
        for topic in sorted({each.key[0] for each in unled}):
            asked = [each for each in unled if each.key[0] == topic]
            try:
                described = self._cluster.describe_topic(topic)
            except (errors.NoSuchTopic, errors.NotAuthorized) as failure:
                for each in asked:
                    if isinstance(failure, errors.NotAuthorized) or now - each.since > MISSING_TOPIC_S:
                        self._fail(each, failure)
                    else:
                        self._look_up_later(each, "")
                continue
            except Failure as failure:  # it may have taken the timeout; other topics have the same brokers
                if isinstance(failure, errors.RefusedConnection):
                    raise
                for each in unled:
                    if each.leader is None:
                        self._look_up_later(each, failure.message, max(RETRY_S, BACKOFF * (time.monotonic() - now)))
                return
            leaders = {each.id: each.leader for each in described.partitions}
            for each in asked:
                leader = leaders.get(each.key[1])
                if leader is None:
                    self._look_up_later(each, f"{topic}-{each.key[1]} has no leader")
                else:
                    each.leader = (leader.host, leader.port)

    def _receive_responses(self, timeout_s: float) -> None:
        waiting = {address: broker for address, broker in self._brokers.items() if broker.deadline is not None}
        if not waiting:
            time.sleep(timeout_s)
            return
        poller = select.poll()
        for broker in waiting.values():
            poller.register(broker.connection.fileno(), select.POLLIN)
        ready = {descriptor for descriptor, _events in poller.poll(timeout_s * 1000)}
        for address, broker in waiting.items():
            try:
                if broker.connection.fileno() in ready:
                    self._receive(address, broker)
                if broker.deadline is not None and time.monotonic() > broker.deadline:
                    self._lose(address, errors.NoAnswer(f"no response from {address[0]}:{address[1]} in time"))
            except (errors.NoAnswer, errors.LostConnection) as failure:
                self._lose(address, failure)

    def _receive(self, address: Address, broker: LeaderConnection) -> None:
        if broker.is_fetch:
            fetched = broker.connection.receive_available(FetchResponse, FETCH_VERSION, 2 * LARGEST_BATCH_BYTES)
            if fetched is not None:
                broker.deadline = None
                self._take_fetched(address, broker.asked, fetched)
        else:
            listed = broker.connection.receive_available(ListOffsetsResponse, LIST_OFFSETS_VERSION, LARGEST_BATCH_BYTES)
            if listed is not None:
                broker.deadline = None
                self._take_offsets(broker.asked, listed)
        if broker.deadline is not None and not broker.is_receiving:
            broker.is_receiving = True
            broker.deadline = time.monotonic() + LONGEST_RECEIVE_S

    def _asked_partition(self, asked: Asked, key: Key, code: int) -> AssignedPartition | None:
        """The partition that an answer without an error is for."""
        partition, offset = asked.get(key, (None, 0))
        if partition is None or self._partitions.get(key) is not partition or partition.offset != offset:
            return None
        partition.trouble = ""
        if code:
            self._handle_error(partition, code)
            return None
        return partition

    def _take_offsets(self, asked: Asked, response: ListOffsetsResponse) -> None:
        for topic in response.topics:
            for found in topic.partitions:
                partition = self._asked_partition(asked, (topic.name, found.partition_index), found.error_code)
                if partition is not None:
                    partition.offset = max(found.offset, 0)

    def _take_fetched(self, address: Address, asked: Asked, response: FetchResponse) -> None:
        for topic in response.responses:
            for data in topic.partitions:
                partition = self._asked_partition(asked, (topic.topic, data.partition_index), data.error_code)
                if partition is not None:
                    partition.since = time.monotonic()
                    self._queue(address, partition, data, is_first=partition.key == next(iter(asked)))

    def _queue(self, address: Address, partition: AssignedPartition, data: PartitionData, *, is_first: bool) -> None:
        records = memoryview(cast("memoryview", data.records) if data.records is not None else b"")
        limit_bytes = self._settings.decompressed_limit_bytes
        reader = PartitionReader(*partition.key, records, data.aborted_transactions or (), limit_bytes)
        if records:  # until a batch of them has advanced the offset
            partition.stalled = partition.stalled + 1 if is_first else max(partition.stalled, 1)
        if partition.stalled > MOST_STALLED:
            problem = f"the broker sends {len(records):,} bytes without a whole batch from this offset on"
            last = UnreadableBatch(*partition.key, partition.offset, partition.offset, problem, is_last=True)
            self._fail(partition, Failure(str(last)))
            return
        self._fetched.append(FetchedPartition(address, partition, reader.batches(partition.offset), data))

    def _handle_error(self, partition: AssignedPartition, code: int) -> None:
        topic, index = partition.key
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self._reset_to is not None:
            partition.offset = self._reset_to
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._fail(partition, Failure(f"topic {topic}, partition {index} has no offset {partition.offset}"))
        elif code in RETRIED_ERRORS:
            self._look_up_later(partition, errors.error_text(code, None, f"{topic}-{index}"))
        else:
            self._fail(partition, errors.broker_failure(code, None, f"topic {topic}, partition {index}", "Read"))


def fetch_request(led: Iterable[AssignedPartition], settings: FetchSettings, *, reads_committed: bool) -> FetchRequest:
    topics: dict[str, list[FetchPartition]] = {}
    for each in led:
        size_bytes = LARGEST_BATCH_BYTES if each.stalled else settings.partition_bytes
        wanted = FetchPartition(partition=each.key[1], fetch_offset=each.offset, partition_max_bytes=size_bytes)
        topics.setdefault(each.key[0], []).append(wanted)
    return FetchRequest(
        max_wait_ms=settings.max_wait_ms,
        min_bytes=1,
        max_bytes=settings.response_bytes,
        isolation_level=int(reads_committed),
        topics=[FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
    )
