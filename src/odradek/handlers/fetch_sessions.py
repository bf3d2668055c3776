"""Incremental fetch sessions (KIP-227): the broker remembers the partitions of a consumer, so that each fetch names
only the partitions that changed, and each answer holds only those with new records, offsets or errors.

The cache is bounded by `max.incremental.fetch.session.cache.slots`. A session that was used in the last two minutes
is never evicted for a new one: the new client is served without a session, which every client understands. So is a
consumer with more partitions than a session may have, or than all sessions of consumers have room for: partitions are
remembered whether they exist or not, and whether or not the client may read them, as in Kafka.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH, NO_LEADER, NO_OFFSET
from odradek.replica.replica_watch import ReplicaWatch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from odradek.host.clock import Clock
    from odradek.host.entropy import Entropy
    from odradek.protocol.messages.fetch import FetchRequest
    from odradek.replica.fetch_result import FetchResult

NO_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LARGEST_EPOCH = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000
MOST_PARTITIONS = 100_000
"""Limits the partitions of all sessions of consumers together, which take some 250 bytes each."""
MOST_PARTITIONS_OF_SESSION = 10_000
"""An incremental fetch of 60 bytes visits all partitions of its session, some 25 ms for as many that are refused."""
FIRST_VERSION_WITH_TOPIC_IDS = 13
_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes long


class FetchKey(NamedTuple):
    """A partition as the client names it: by topic name, or by topic id from version 13."""

    topic: str | UUID
    partition: int


class FetchedPartition:
    """The fetch position of a client in one partition, and the offsets that were last reported to it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "reported_high_watermark",
        "reported_log_start_offset",
    )

    def __init__(
        self,
        key: FetchKey,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        log_start_offset: int = NO_OFFSET,
    ) -> None:
        """`log_start_offset` is that of a follower's log."""
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.reported_high_watermark = NO_OFFSET
        self.reported_log_start_offset = NO_OFFSET

    def take_over(self, newer: FetchedPartition) -> None:
        if newer.current_leader_epoch != self.current_leader_epoch:
            # A follower ignores an answer to a request of an earlier epoch, so it does not know the offsets.
            self.reported_high_watermark = self.reported_log_start_offset = NO_OFFSET
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.log_start_offset = newer.log_start_offset

    def has_changed(self, result: FetchResult) -> bool:
        """Whether an incremental answer must mention this partition."""
        return (
            result.records is not None
            or result.error is not _NONE
            or result.diverging_epoch != NO_EPOCH
            or result.preferred_read_replica != NO_LEADER
            or result.high_watermark != self.reported_high_watermark
            or result.log_start_offset != self.reported_log_start_offset
        )

    def reported(self, result: FetchResult) -> None:
        # After an error or a divergence, the next successful answer counts as changed.
        is_success = result.error is ErrorCode.NONE and result.diverging_epoch == NO_EPOCH
        self.reported_high_watermark = result.high_watermark if is_success else NO_OFFSET
        self.reported_log_start_offset = result.log_start_offset if is_success else NO_OFFSET


class FetchSession:
    """The partitions of one consumer or follower, in the order in which they are served next. The session of a follower
    has a `watch`, which knows the partitions to visit."""

    __slots__ = (
        "counted_partitions",
        "epoch",
        "is_follower",
        "is_incremental",
        "last_used_ms",
        "partitions",
        "session_id",
        "uses_topic_ids",
        "watch",
    )

    def __init__(self, session_id: int, uses_topic_ids: bool, is_follower: bool = False) -> None:
        self.session_id = session_id
        self.is_follower = is_follower
        self.counted_partitions = 0  # in the sum of all sessions of consumers
        self.epoch = INITIAL_EPOCH
        self.uses_topic_ids = uses_topic_ids
        self.is_incremental = False
        self.last_used_ms = 0.0
        self.partitions: dict[FetchKey, FetchedPartition] = {}
        self.watch: ReplicaWatch | None = None

    def put(self, wanted: Iterable[FetchedPartition]) -> None:
        partitions, watch = self.partitions, self.watch
        for partition in wanted:
            if watch is not None:
                watch.changed[partition.key] = None
            known = partitions.get(partition.key)
            if known is None:
                partitions[partition.key] = partition
            else:
                known.take_over(partition)

    def begin_watch(self, broker_epoch: int) -> None:
        """This is the session of a follower under this registration; every partition is to be visited."""
        if self.watch is None:
            self.watch = ReplicaWatch(broker_epoch)
        self.watch.broker_epoch = broker_epoch
        self.watch.changed = dict.fromkeys(self.partitions)

    def to_visit(self) -> tuple[FetchedPartition, ...]:
        if self.watch is None:
            return tuple(self.partitions.values())
        partitions = self.partitions
        return tuple(partitions[key] for key in self.watch.changed if key in partitions)

    def forget(self, key: FetchKey) -> None:
        self.partitions.pop(key, None)
        if self.watch is not None:
            self.watch.unwatch(key)

    def close(self) -> None:
        if self.watch is not None:
            self.watch.close()

    def served(self, key: FetchKey) -> None:
        """A partition that gave data goes to the back, so that a small limit starves no partition."""
        partition = self.partitions.pop(key, None)
        if partition is not None:  # else another request of the session removed it while a worker read
            self.partitions[key] = partition


class FetchSessions:
    """All sessions, least recently used first."""

    def __init__(self, slots: int, clock: Clock, entropy: Entropy) -> None:
        self._slots = slots
        self._clock = clock
        self._entropy = entropy
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partition_count = 0  # of the sessions of consumers
        self._replicas: dict[int, int] = {}  # the session of each follower
        self.last_replica_fetch_ms = 0.0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions of all sessions of consumers."""
        return self._partition_count

    def begin(self, request: FetchRequest, version: int, *, is_follower: bool = False) -> FetchSession | ErrorCode:
        """The session of this request, with its changes applied; one with id 0 if the client gets no session. The
        caller has checked that a follower is a broker: its partitions are not bounded."""
        uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(request.session_id)
            session = FetchSession(NO_SESSION_ID, uses_topic_ids, is_follower)
            session.put(_wanted(request, uses_topic_ids))
            if request.session_epoch == INITIAL_EPOCH and session.partitions:
                self._remember(session)
            return session
        return self._resume(request, uses_topic_ids)

    def _resume(self, request: FetchRequest, uses_topic_ids: bool) -> FetchSession | ErrorCode:
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.put(_wanted(request, uses_topic_ids))
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                session.forget(FetchKey(topic, index))
        if not session.partitions:
            self._end(session.session_id)
            return FetchSession(NO_SESSION_ID, uses_topic_ids)
        if not self._count(session):
            self._end(session.session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # the client begins again, and is served without a session
        session.epoch = _next_epoch(session.epoch)
        session.is_incremental = True
        session.last_used_ms = self._clock.monotonic_ms()
        self._sessions.move_to_end(session.session_id)
        return session

    def watch_for(self, session: FetchSession, replica_id: int, broker_epoch: int) -> None:
        """Make it the one session of this follower. The caller has checked that the client may be a replica. A follower
        that has registered again in the middle of a session is visited in all its partitions: leaders must know its
        new registration."""
        self.last_replica_fetch_ms = self._clock.monotonic_ms()
        is_new = session.watch is None
        if session.watch is None or session.watch.broker_epoch != broker_epoch:
            session.begin_watch(broker_epoch)
        if is_new and session.session_id != NO_SESSION_ID:
            self._end(self._replicas.get(replica_id, NO_SESSION_ID))  # of an earlier connection
            self._replicas[replica_id] = session.session_id

    def end(self, session: FetchSession) -> None:
        """Drops a session whose id never reached the client."""
        self._end(session.session_id)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partition_count -= session.counted_partitions
            session.close()

    def _count(self, session: FetchSession) -> bool:
        """Whether there is room for all partitions of a session, which are counted then."""
        if session.is_follower:
            return True
        size = len(session.partitions)
        count = self._partition_count - session.counted_partitions + size
        if size > session.counted_partitions and (size > MOST_PARTITIONS_OF_SESSION or count > MOST_PARTITIONS):
            return False
        self._partition_count, session.counted_partitions = count, size
        return True

    def _remember(self, session: FetchSession) -> None:
        if not session.is_follower and len(session.partitions) > MOST_PARTITIONS_OF_SESSION:
            return
        now_ms = self._clock.monotonic_ms()
        while len(self._sessions) >= self._slots or not self._count(session):
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
                return
            self._end(oldest.session_id)
        session_id = NO_SESSION_ID
        while session_id == NO_SESSION_ID or session_id in self._sessions:
            session_id = 1 + self._entropy.random_below(LARGEST_EPOCH)
        session.session_id = session_id
        session.epoch = _next_epoch(INITIAL_EPOCH)
        session.last_used_ms = now_ms
        self._sessions[session_id] = session


def _next_epoch(epoch: int) -> int:
    return 1 if epoch == LARGEST_EPOCH else epoch + 1


def _wanted(request: FetchRequest, uses_topic_ids: bool) -> Iterable[FetchedPartition]:
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for partition in topic.partitions:
            yield FetchedPartition(
                FetchKey(name, partition.partition),
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                partition.log_start_offset,
            )
