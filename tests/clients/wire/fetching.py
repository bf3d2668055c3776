"""Fetch (version 11) by hand: sessions, limits and epochs as the test wants them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.clients.error_names import error_name
from tests.clients.wire.connection import Connection, Reader, array, int8, int32, int64, string
from tests.clients.wire.requests import FETCH

LARGE = 10 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    topic: str
    offset: int = 0
    partition: int = 0
    max_bytes: int = LARGE
    current_leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    topic: str | None
    partition: int
    error: str
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: bytes


@dataclass(frozen=True, slots=True)
class Fetched:
    error: str
    session_id: int
    partitions: list[FetchedPartition] = field(default_factory=list)

    @property
    def only(self) -> FetchedPartition:
        (partition,) = self.partitions
        return partition


def fetch(
    connection: Connection,
    partitions: Sequence[FetchPartition],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = LARGE,
    session_id: int = 0,
    session_epoch: int = -1,
    forgotten: Sequence[tuple[str, int]] = (),
) -> Fetched:
    wanted = [
        string(each.topic)
        + array(
            [
                int32(each.partition)
                + int32(each.current_leader_epoch)
                + int64(each.offset)
                + int64(-1)
                + int32(each.max_bytes)
            ]
        )
        for each in partitions
    ]
    dropped = [string(topic) + array([int32(partition)]) for topic, partition in forgotten]
    body = int32(-1) + int32(max_wait_ms) + int32(min_bytes) + int32(max_bytes) + int8(0)
    body += int32(session_id) + int32(session_epoch) + array(wanted) + array(dropped) + string("")
    answer = connection.ask(FETCH, 11, body)
    answer.int32()  # throttle time
    error, session = error_name(answer.int16()), answer.int32()
    topics = answer.array(lambda: _topic(answer))
    return Fetched(error, session, [each for topic in topics for each in topic])


def _topic(answer: Reader) -> list[FetchedPartition]:
    topic = answer.string()
    return answer.array(lambda: _partition(answer, topic))


def _partition(answer: Reader, topic: str | None) -> FetchedPartition:
    partition, error = answer.int32(), error_name(answer.int16())
    high_watermark, last_stable_offset, log_start_offset = answer.int64(), answer.int64(), answer.int64()
    if (aborted := answer.int32()) > 0:
        answer.take(16 * aborted)
    answer.int32()  # preferred read replica
    records = answer.blob() or b""
    return FetchedPartition(topic, partition, error, high_watermark, last_stable_offset, log_start_offset, records)
