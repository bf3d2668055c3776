"""Every offset that was ever committed, in the order in which it was written: `__consumer_offsets` as it is.

Read by a consumer and taken apart by hand, so that nothing of the broker's own code vouches for itself.
"""

from __future__ import annotations

import itertools
import struct
import time
from typing import TYPE_CHECKING, Any

import confluent_kafka

if TYPE_CHECKING:
    from tests.groups.running_member import Partition

OFFSETS_TOPIC = "__consumer_offsets"
OFFSET_KEY_VERSIONS = (0, 1)
PATIENCE_S = 90.0


def committed_history(servers: str, group: str = "group") -> dict[Partition, list[int]]:
    """Per partition of the group, what was committed, oldest first; -1 where an offset was deleted."""
    history: dict[Partition, list[int]] = {}
    for key, value in _records(servers):
        commit = _commit(key, value)
        if commit is not None and commit[0] == group:
            _, partition, offset = commit
            history.setdefault(partition, []).append(offset)
    return history


def regressions(history: dict[Partition, list[int]]) -> list[tuple[Partition, int, int]]:
    """(partition, before, after) wherever an offset moved backwards."""
    return [
        (partition, before, after)
        for partition, offsets in history.items()
        for before, after in itertools.pairwise(offsets)
        if after < before
    ]


def _records(servers: str) -> list[tuple[bytes, bytes | None]]:
    settings = {"bootstrap.servers": servers, "group.id": "watcher", "enable.auto.commit": False, "log_level": 0}
    consumer: Any = confluent_kafka.Consumer({**settings, "enable.partition.eof": True})
    try:
        partitions = consumer.list_topics(OFFSETS_TOPIC, PATIENCE_S).topics[OFFSETS_TOPIC].partitions
        consumer.assign([confluent_kafka.TopicPartition(OFFSETS_TOPIC, index, 0) for index in partitions])
        records: list[tuple[bytes, bytes | None]] = []
        unfinished = set(partitions)
        deadline = time.monotonic() + PATIENCE_S
        while unfinished:
            assert time.monotonic() < deadline, f"{OFFSETS_TOPIC} not read to its end in {PATIENCE_S} s"
            for message in consumer.consume(10_000, 0.1):
                if message.error() is None:
                    records.append((message.key(), message.value()))
                else:
                    unfinished.discard(message.partition())  # its end
        return records
    finally:
        consumer.close()


def _commit(key: bytes, value: bytes | None) -> tuple[str, Partition, int] | None:
    """(group, partition, offset), or None when the record is about something else."""
    (version,) = struct.unpack_from(">h", key)
    if version not in OFFSET_KEY_VERSIONS:
        return None
    group, position = _string(key, 2)
    topic, position = _string(key, position)
    (partition,) = struct.unpack_from(">i", key, position)
    offset = -1 if value is None else struct.unpack_from(">hq", value)[1]
    return group, (topic, partition), offset


def _string(data: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, position)
    start = position + 2
    return data[start : start + length].decode(), start + length
