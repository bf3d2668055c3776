"""The lag of a group in time: the age of the first record of each partition that the group has not read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Consumer, Message

    from odradek.cli.client.cluster import Cluster
    from odradek.cli.group.state import PartitionKey, PartitionLag

PATIENCE_S = 5.0  # to read the first unread record of each partition
END_OF_PARTITION = "_PARTITION_EOF"
NOT_AUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"
# Small fetches: one record of each partition is enough.
SETTINGS = {"auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, "fetch.message.max.bytes": 65_536}
# Lag counts the records of open transactions, so that their age counts, too. A partition that ends with the marker of a
# transaction has no record after it; the end of the partition tells.
REQUIRED = {"isolation.level": "read_uncommitted", "enable.partition.eof": True}


def longest_time_lag(lags: Sequence[PartitionLag]) -> int | None:
    """None if it is not known of a partition that is behind: the first unread record there may be the oldest."""
    known = [each.time_lag_ms for each in lags if each.time_lag_ms is not None]
    return max(known) if known and not count_untimed(lags) else None


def count_untimed(lags: Sequence[PartitionLag]) -> int:
    """Partitions that are behind, or may be, and whose lag in time is not known."""
    return sum(1 for each in lags if each.time_lag_ms is None and (each.lag or each.failure))


def add_time_lags(cluster: Cluster, lags: Sequence[PartitionLag]) -> set[str]:
    """Set the time lag of each partition; zero if it has no unread record. Returns the topics that the user may not
    read. Their partitions, and those that do not answer in time, have no time lag."""
    behind = {(each.topic, each.partition): each for each in lags if each.lag}
    for each in lags:
        if each.lag == 0:
            each.time_lag_ms = 0
    denied: set[str] = set()
    if not behind:
        return denied
    consumer = cluster.consumer(SETTINGS, REQUIRED)
    try:
        consumer.assign([TopicPartition(*key, lag.committed_offset or 0) for key, lag in behind.items()])
        deadline = time.monotonic() + PATIENCE_S
        while behind and time.monotonic() < deadline:
            first = consumer.poll(0.1)
            for message in [] if first is None else [first, *consumer.consume(100, 0)]:
                _take(message, behind, denied, consumer)
    except KafkaException as error:
        raise cluster.failure(error.args[0], "time lag") from None
    finally:
        consumer.close()
    return denied


def _take(message: Message, behind: dict[PartitionKey, PartitionLag], denied: set[str], consumer: Consumer) -> None:
    """Remove the partition of a message from `behind`, unless it may still get a record."""
    key = (message.topic() or "", message.partition() or 0)
    lag = behind.get(key)
    error = message.error()
    if lag is None or (error is not None and error.retriable()):
        return
    del behind[key]
    consumer.pause([TopicPartition(*key)])
    if error is None:
        kind, written_ms = message.timestamp()
        if kind != TIMESTAMP_NOT_AVAILABLE:
            lag.time_lag_ms = max(int(time.time() * 1000) - written_ms, 0)
    elif error.name() == NOT_AUTHORIZED:
        denied.add(key[0])
    elif error.name() == END_OF_PARTITION and (message.offset() or 0) >= (lag.end_offset or 0):
        lag.time_lag_ms = 0
