"""Writes records: one of a form, or copies of records of another topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException

from odradek.console.cluster.connection import NotAllowed, needs
from odradek.console.cluster.records import read_selected
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError, Message

    from odradek.admin.cluster import Cluster

WRITE_TIMEOUT_S = 15.0
REPLAY_BYTES = 32 * 1024 * 1024  # of records that are copied at once
CHOSEN_BY_KEY = -1


class Written(NamedTuple):
    partition: int
    offset: int


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = CHOSEN_BY_KEY


def write_records(cluster: Cluster, topic: str, records: Sequence[NewRecord]) -> list[Written]:
    """Failure unless the cluster has acknowledged all of them; it says how many it has."""
    with needs("Describe", f"topic {topic}"):
        cluster.choose_partitions(topic, [each.partition for each in records if each.partition != CHOSEN_BY_KEY])
    written: list[Written] = []
    failures: list[KafkaError] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            written.append(Written(message.partition() or 0, message.offset() or 0))

    producer = cluster.producer(
        {
            "linger.ms": 0,
            "message.timeout.ms": round(WRITE_TIMEOUT_S * 1000),
            "message.max.bytes": 10_000_000,
            "partitioner": "murmur2_random",  # the partition that Kafka's own clients choose for a key
            "client.id": "odradek-console",
        }
    )
    try:
        for each in records:
            producer.produce(
                topic, each.value, each.key, each.partition, on_delivery=report, headers=list(each.headers) or None
            )
    except (KafkaException, BufferError) as error:
        raise Failure(f"topic {topic}: the record was refused: {error}") from None
    deadline = time.monotonic() + WRITE_TIMEOUT_S
    while producer.flush(0.5) and time.monotonic() < deadline:
        pass
    if failures and failures[0].name() == "TOPIC_AUTHORIZATION_FAILED" and not written:
        raise NotAllowed(f"not allowed: needs Write on topic {topic}")
    share = f"{len(written)} of {count_text(len(records), 'record')}"
    if failures:
        raise Failure(f"{cluster.failure(failures[0], f'topic {topic}').message}; {share} were written")
    if len(written) < len(records):
        raise Failure(f"topic {topic}: the cluster has acknowledged {share} in time")
    return written


def replay(cluster: Cluster, source: str, positions: Sequence[tuple[int, int]], target: str) -> int:
    """Copy records with their keys, values and headers into another topic. Returns their number."""
    with needs("Describe", f"topic {target}"):
        cluster.describe_topic(target)
    found: list[NewRecord] = []
    size_bytes = 0
    for each in read_selected(cluster, source, positions):
        found.append(NewRecord(each.key, each.value, each.headers))
        size_bytes += each.size_bytes
        if size_bytes > REPLAY_BYTES:
            raise Failure(f"nothing was copied: the records are larger than {REPLAY_BYTES:,} bytes; select fewer")
    if not found:
        raise Failure(f"topic {source} has none of the selected records any more")
    return len(write_records(cluster, target, found))
