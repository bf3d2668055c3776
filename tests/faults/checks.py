"""What must hold after a run: every acknowledged record is there, once and in order; transactions are whole; all
replicas have the same bytes."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.faults.loads import decode_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.testing import RunningCluster
    from tests.faults.loads import IdempotentLoad, TransactionalLoad

READ_S = 180.0
SETTLE_S = 90.0
RECORDS_PER_POLL = 10_000


@dataclass
class Verdict:
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    torn: int = 0
    differing_replicas: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.reordered or self.torn or self.differing_replicas)

    def __str__(self) -> str:
        counts = f"lost {self.lost}, duplicated {self.duplicated}, reordered {self.reordered}, torn {self.torn}"
        return f"{counts}, differing replicas: {', '.join(self.differing_replicas) or 'none'}"


def read_all(bootstrap_servers: str, topic: str, partitions: int) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
    """Offsets and values of each partition, from its begin to its end, with `read_committed`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    found: dict[int, list[tuple[int, tuple[int, ...]]]] = {index: [] for index in range(partitions)}
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    ended: set[int] = set()
    deadline_s = time.monotonic() + READ_S
    try:
        while len(ended) < partitions:
            assert time.monotonic() < deadline_s, f"{topic} could not be read to its end"
            for message in consumer.consume(RECORDS_PER_POLL, 0.5):
                index, error = message.partition(), message.error()
                assert index is not None
                if error is None:
                    ended.discard(index)
                    found[index].append((message.offset() or 0, decode_value(message.value() or b"")))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(index)
    finally:
        consumer.close()
    return found


def check_idempotent(load: IdempotentLoad, bootstrap_servers: str, verdict: Verdict) -> None:
    found = read_all(bootstrap_servers, load.topic, load.partitions)
    at_offset = {(index, offset): value for index, records in found.items() for offset, value in records}
    for each in load.acknowledged:
        verdict.lost += at_offset.get((each.partition, each.offset)) != (each.number,)
    for records in found.values():
        numbers = [value for _, value in records]
        verdict.duplicated += sum(count - 1 for count in Counter(numbers).values())
        verdict.reordered += sum(later < earlier for earlier, later in itertools.pairwise(numbers))


def check_transactional(load: TransactionalLoad, bootstrap_servers: str, verdict: Verdict) -> None:
    found = read_all(bootstrap_servers, load.topic, load.partitions)
    counts = Counter((index, value) for index, records in found.items() for _, value in records)
    verdict.duplicated += sum(count - 1 for count in counts.values())
    for transaction in load.transactions:
        present = sum((index, (transaction.number, number)) in counts for index, number in transaction.records)
        if transaction.outcome is True:
            verdict.lost += len(transaction.records) - present
        elif transaction.outcome is False:
            verdict.torn += present
        else:
            verdict.torn += present not in (0, len(transaction.records))
    for records in found.values():
        values = [value for _, value in records]
        verdict.reordered += sum(later < earlier for earlier, later in itertools.pairwise(values))


def check_replicas(cluster: RunningCluster, verdict: Verdict, kept: Path) -> None:
    """Without traffic all replicas end at the same offset after a while: then their bytes must be the same. Segments
    may begin at different offsets. Copies of logs that differ are kept."""
    directories = {node_id: Path(broker.data_directory) for node_id, broker in cluster.brokers.items()}
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        sizes = {node_id: _sizes(directory) for node_id, directory in directories.items()}
        differing = sorted(
            name for name in set().union(*sizes.values()) if len({each.get(name) for each in sizes.values()}) > 1
        )
        if not differing or time.monotonic() > deadline_s:
            break
        time.sleep(0.2)  # a poll's pause
    names = set.intersection(*(set(each) for each in sizes.values()))
    for name in sorted(names - set(differing)):
        digests = {_digest(directory / name) for directory in directories.values()}
        if len(digests) > 1:
            differing.append(name)
    verdict.differing_replicas += [
        f"{name} ({' / '.join(str(each.get(name)) for each in sizes.values())} bytes)" for name in differing
    ]
    for name in differing:
        for node_id, directory in directories.items():
            shutil.copytree(directory / name, kept / name / str(node_id), dirs_exist_ok=True)


def _segments(partition: Path) -> list[Path]:
    return sorted(partition.glob("*.log"))


def _sizes(directory: Path) -> Mapping[str, int]:
    """Of the logs of each partition."""
    partitions = [
        each
        for each in directory.iterdir()
        if each.is_dir() and "." not in each.name and each.name.rpartition("-")[2].isdigit()
    ]
    return {each.name: sum(segment.stat().st_size for segment in _segments(each)) for each in partitions}


def _digest(partition: Path) -> str:
    digest = hashlib.sha256()
    for segment in _segments(partition):
        digest.update(segment.read_bytes())
    return digest.hexdigest()
