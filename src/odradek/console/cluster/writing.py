"""Writes records: one of a form, or copies of records of another topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException

from odradek.cli.framework.failure import Failure
from odradek.console.cluster.records import read_selected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError, Message

    from odradek.cli.client.cluster import Cluster

WRITE_TIMEOUT_S = 15.0
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
    if failures:
        line = cluster.failure(failures[0], f"topic {topic}").message
        raise Failure(f"{line}; {len(written)} of {len(records)} records were written")
    if len(written) < len(records):
        raise Failure(f"topic {topic}: the cluster has acknowledged {len(written)} of {len(records)} records in time")
    return written


def replay(cluster: Cluster, source: str, places: Sequence[tuple[int, int]], target: str) -> int:
    """Copy records with their keys, values and headers into another topic. Returns their number."""
    cluster.describe_topic(target)
    found = [NewRecord(each.key, each.value, each.headers) for each in read_selected(cluster, source, places)]
    if not found:
        raise Failure(f"topic {source} has none of the selected records any more")
    return len(write_records(cluster, target, found))
