"""The load of `odradek demo --brokers N`: numbered records with acks=all, their acknowledgements and the gaps between
these, and the reading back at the end."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, Message, TopicPartition

from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

CELL_S = 0.1  # of the strip that the picture shows
CELLS = 40
WARM_UP_S = 1.0  # after the first acknowledgement; until then connections are opened
GAP_S = 0.25  # a longer pause between two acknowledgements is reported
FLUSH_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 60.0
SETTINGS = {"enable.idempotence": True, "acks": "all", "linger.ms": 0}


class Gap(NamedTuple):
    """A pause between two acknowledgements of a partition, from `began_s` on."""

    partition: int
    began_s: float
    seconds: float

    @property
    def milliseconds(self) -> int:
        return round(self.seconds * 1000)


@dataclass(slots=True)
class PartitionAcks:
    """`acknowledged` has the number of each acknowledged record."""

    index: int
    last_s: float
    first_s: float | None = None
    longest_s: float = 0.0
    acknowledged: list[int] = field(default_factory=list)
    cells: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=CELLS + 1))  # number of the cell, count

    def take(self, number: int, now_s: float) -> Gap | None:
        """Count an acknowledgement; a gap if it was awaited long."""
        pause_s = now_s - self.last_s
        began_s, self.last_s = self.last_s, now_s
        self.acknowledged.append(number)
        cell = int(now_s / CELL_S)
        if self.cells and self.cells[-1][0] == cell:
            self.cells[-1] = cell, self.cells[-1][1] + 1
        else:
            self.cells.append((cell, 1))
        if self.first_s is None:
            self.first_s = now_s
        if now_s - self.first_s < WARM_UP_S:
            return None
        self.longest_s = max(self.longest_s, pause_s)
        return Gap(self.index, began_s, pause_s) if pause_s >= GAP_S else None

    def strip(self, now_s: float) -> list[int | None]:
        """Acknowledgements in each of the last cells before the present one; None before the first of them."""
        counts = dict(self.cells)
        last = int(now_s / CELL_S)
        first = last if self.first_s is None else int(self.first_s / CELL_S)
        return [counts.get(cell, 0) if cell >= first else None for cell in range(last - CELLS, last)]


class Acknowledgements:
    def __init__(self, partitions: int, now_s: float) -> None:
        self.partitions = [PartitionAcks(index, now_s) for index in range(partitions)]
        self.failed = 0

    @property
    def total(self) -> int:
        return sum(len(each.acknowledged) for each in self.partitions)

    @property
    def longest_s(self) -> float:
        return max(each.longest_s for each in self.partitions)


class ReadBack(NamedTuple):
    """What was read at the end, beside what was acknowledged."""

    read: int
    lost: int
    repeated: int
    reordered: int


def compare(acknowledged: list[list[int]], read: list[list[int]]) -> ReadBack:
    """Numbers by partition. A record that was read and not acknowledged is no error: its answer was on its way."""
    lost = repeated = reordered = 0
    for expected, found in zip(acknowledged, read, strict=True):
        present = set(found)
        lost += sum(number not in present for number in expected)
        repeated += len(found) - len(present)
        reordered += sum(later < earlier for earlier, later in pairwise(found))
    return ReadBack(sum(map(len, read)), lost, repeated, reordered)


class Load(threading.Thread):
    """Sends records to all partitions in turn. Each partition has numbers of its own, from 0."""

    def __init__(
        self, cluster: Cluster, topic: str, acks: Acknowledgements, rate: float, report_gap: Callable[[Gap], None]
    ) -> None:
        super().__init__(name="demo-load", daemon=True)
        self._producer = cluster.producer(SETTINGS)
        self._topic = topic
        self._acks = acks
        self._rate = rate
        self._report_gap = report_gap
        self._stopping = threading.Event()

    def run(self) -> None:
        began_s = time.monotonic()
        sent = 0
        while not self._stopping.is_set():
            while sent < (time.monotonic() - began_s) * self._rate and not self._stopping.is_set():
                number, partition = divmod(sent, len(self._acks.partitions))
                if self._send(partition, number):
                    sent += 1
                else:  # the queue is full: no broker acknowledges
                    self._producer.poll(0.1)
            self._producer.poll(1 / self._rate)

    def _send(self, partition: int, number: int) -> bool:
        def take(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                self._acks.failed += 1
                return
            gap = self._acks.partitions[partition].take(number, time.monotonic())
            if gap is not None:
                self._report_gap(gap)

        try:
            self._producer.produce(self._topic, b"%d" % number, partition=partition, on_delivery=take)
        except BufferError:
            return False
        return True

    def stop(self) -> None:
        self._stopping.set()

    def finish(self) -> None:
        """Wait for what is outstanding."""
        self.stop()
        self.join()
        if self._producer.flush(FLUSH_TIMEOUT_S):
            raise Failure(f"records were not acknowledged within {FLUSH_TIMEOUT_S:g} s: are all brokers running?")


def read_back(cluster: Cluster, topic: str, acks: Acknowledgements) -> ReadBack:
    """Read the topic to its end, and compare. With --data-dir, records of earlier runs come first and are left out."""
    indexes = [each.index for each in acks.partitions]
    ends = cluster.latest_offsets(topic, indexes)
    expected = [len(each.acknowledged) for each in acks.partitions]
    consumer = cluster.consumer({"fetch.wait.max.ms": 50})
    starts = {index: max(ends[index] - expected[index] - acks.failed, 0) for index in indexes}
    consumer.assign([TopicPartition(topic, index, starts[index]) for index in indexes])
    found: list[list[int]] = [[] for _ in indexes]
    reached = dict(starts)
    deadline = time.monotonic() + READ_TIMEOUT_S
    try:
        while any(reached[index] < ends[index] for index in indexes) and time.monotonic() < deadline:
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    partition = message.partition() or 0
                    found[partition].append(int(message.value() or b"0"))
                    reached[partition] = (message.offset() or 0) + 1
    finally:
        consumer.close()
    return compare([each.acknowledged for each in acks.partitions], found)
