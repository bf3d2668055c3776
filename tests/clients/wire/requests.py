"""The requests of the wire tests, each in a version that every Kafka 4 broker knows, and their answers as values."""

import time
import uuid
from dataclasses import dataclass

from tests.clients.error_names import error_name
from tests.clients.wire.connection import Connection, Reader, array, blob, int8, int16, int32, int64, string

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS = 0, 1, 2, 3, 19, 22, 32
TIMEOUT_MS = 10_000
PATIENCE_SECONDS = 30.0  # for what Apache Kafka does a little after it has said so


def new_topic_name() -> str:
    return f"w{uuid.uuid4().hex[:10]}"


@dataclass(frozen=True, slots=True)
class Produced:
    error: str
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1


def produce(
    connection: Connection, topic: str, records: bytes | None, partition: int = 0, acks: int = -1, version: int = 7
) -> Produced:
    body = array([string(topic) + array([int32(partition) + blob(records)])])
    answer = connection.ask(PRODUCE, version, string(None) + int16(acks) + int32(TIMEOUT_MS) + body)
    answer.int32(), answer.string(), answer.int32(), answer.int32()  # one topic, one partition
    return Produced(error_name(answer.int16()), answer.int64(), answer.int64(), answer.int64())


def init_producer_id(connection: Connection) -> tuple[str, int, int]:
    """(error, producer id, epoch), asked again while the broker still fetches its first block of ids, as clients do."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = connection.ask(INIT_PRODUCER_ID, 1, string(None) + int32(TIMEOUT_MS))
        answer.int32()  # throttle time
        error = error_name(answer.int16())
        if error != "COORDINATOR_LOAD_IN_PROGRESS" or time.monotonic() > deadline:
            return error, answer.int64(), answer.int16()
        time.sleep(0.05)  # a poll's pause


def create_topic(connection: Connection, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
    settings = array(string(name) + string(value) for name, value in (configs or {}).items())
    entry = string(topic) + int32(partitions) + int16(1) + array([]) + settings
    answer = connection.ask(CREATE_TOPICS, 4, array([entry]) + int32(TIMEOUT_MS) + int8(0))
    answer.int32(), answer.int32(), answer.string()  # throttle time, one topic
    return error_name(answer.int16())


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    error: str
    partition_count: int


def metadata(connection: Connection, topic: str, *, allow_auto_topic_creation: bool) -> TopicMetadata:
    answer = connection.ask(METADATA, 8, array([string(topic)]) + int8(allow_auto_topic_creation) + int8(0) + int8(0))
    answer.int32()  # throttle time
    answer.array(lambda: (answer.int32(), answer.string(), answer.int32(), answer.string()))  # brokers
    answer.string(), answer.int32()  # cluster id, controller id
    topics = answer.array(lambda: _topic_metadata(answer))
    return topics[0]


def _topic_metadata(answer: Reader) -> TopicMetadata:
    error = error_name(answer.int16())
    answer.string(), answer.int8()
    partitions = answer.array(
        lambda: (
            answer.int16(),
            answer.int32(),
            answer.int32(),
            answer.int32(),
            answer.array(answer.int32),
            answer.array(answer.int32),
            answer.array(answer.int32),
        )
    )
    answer.int32()  # authorised operations
    return TopicMetadata(error, len(partitions))


def list_offset(
    connection: Connection, topic: str, timestamp_ms: int, leader_epoch: int = -1, partition: int = 0
) -> tuple[str, int, int, int]:
    """(error, timestamp, offset, leader epoch) at a time, or at one of the special times."""
    entry = string(topic) + array([int32(partition) + int32(leader_epoch) + int64(timestamp_ms)])
    answer = connection.ask(LIST_OFFSETS, 5, int32(-1) + int8(0) + array([entry]))
    answer.int32(), answer.int32(), answer.string(), answer.int32(), answer.int32()
    return error_name(answer.int16()), answer.int64(), answer.int64(), answer.int32()
