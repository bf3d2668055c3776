"""The load of `odradek demo --brokers N`: numbered records with acks=all, and the reading back at the end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition

from odradek.cli.demo.acknowledgements import compare
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError, Message

    from odradek.admin.cluster import Cluster
    from odradek.cli.demo.acknowledgements import Acknowledgements, Gap, ReadBack

FLUSH_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 60.0
SETTINGS = {"enable.idempotence": True, "acks": "all", "linger.ms": 0}


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
