"""Producers that never give up, and the account of what they were promised."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.waiting import eventually

RECORDS_AT_ONCE = 100
PAUSE_S = 0.01
DELIVERY_S = 60.0

Records = dict[int, list[tuple[int, bytes]]]
"""By partition: offset and value."""


class Load:
    """Several idempotent producers with acks=all. Each numbers its records of each partition: `producer/number`. That
    is also their key, if they are to have one."""

    def __init__(
        self, servers: str, topic: str, partition_count: int, producer_count: int = 3, *, is_keyed: bool = False
    ) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._is_keyed = is_keyed
        self.acknowledged: Records = defaultdict(list)
        self.problems: list[str] = []
        self._is_over = threading.Event()
        names = [f"p{number}" for number in range(producer_count)]
        self._producers = {name: Producer(_settings(servers, name, self._on_error)) for name in names}
        self._threads = [
            threading.Thread(target=self._produce, args=item, daemon=True) for item in self._producers.items()
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Every record that was sent is acknowledged when this returns."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        for producer in self._producers.values():
            if left := producer.flush(DELIVERY_S):
                self.problems.append(f"{left} records were never acknowledged")

    @property
    def count(self) -> int:
        """How many are acknowledged so far."""
        return sum(len(each) for each in tuple(self.acknowledged.values()))

    def await_progress(self) -> None:
        """A life in which nothing was acknowledged would prove nothing."""
        before = self.count
        eventually(lambda: self.count > before, lambda: f"a record is acknowledged: {self.problems}", pause_s=0.002)

    def _produce(self, name: str, producer: Producer) -> None:
        number = 0
        while not self._is_over.is_set():
            for partition in range(self._partition_count):
                for each in range(number, number + RECORDS_AT_ONCE):
                    self._send(producer, f"{name}/{each}", partition)
            number += RECORDS_AT_ONCE
            producer.poll(PAUSE_S)

    def _send(self, producer: Producer, value: str, partition: int) -> None:
        key = value if self._is_keyed else None
        while True:
            try:
                producer.produce(
                    self._topic, value.encode(), key=key, partition=partition, on_delivery=self._on_delivery
                )
            except BufferError:
                producer.poll(0.1)  # it is full while the broker is away
            else:
                return

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.problems.append(f"not delivered: {error}")
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acknowledged[partition].append((offset, value))

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.problems.append(f"a producer gave up: {error}")


def _settings(servers: str, name: str, on_error: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "client.id": name,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 5,
        "batch.num.messages": 50,
        "queue.buffering.max.messages": 2000,  # they wait while the broker is away
        "message.timeout.ms": 300_000,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 100,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
        "error_cb": on_error,
        "log_level": 0,
    }


def read_everything(servers: str, topic: str, partition_count: int) -> Records:
    """What the broker has, from the start of every partition to its end."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False})
    records: Records = {partition: [] for partition in range(partition_count)}
    try:
        ends = {}
        for each in range(partition_count):
            _, ends[each] = consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=30)
        consumer.assign([TopicPartition(topic, partition, 0) for partition, end in ends.items() if end])
        unread = {partition for partition, end in ends.items() if end}
        while unread:
            message = consumer.poll(30)
            assert message is not None, f"nothing comes any more of {unread}"
            assert message.error() is None, message.error()
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            records[partition].append((offset, value))
            if offset == ends[partition] - 1:
                unread.discard(partition)
    finally:
        consumer.close()
    return records


def check(records: Records, acknowledged: Records) -> None:
    """Every acknowledged record is where it was said to be, and each producer's come in order, once."""
    for partition, found in records.items():
        assert [offset for offset, _ in found] == list(range(len(found)))
        for offset, value in acknowledged.get(partition, ()):
            assert offset < len(found), f"partition {partition} has lost {value!r} at {offset}"
            assert found[offset][1] == value, f"partition {partition} has {found[offset][1]!r} in place of {value!r}"
        numbers: dict[bytes, list[int]] = defaultdict(list)
        for _, value in found:
            producer, _, number = value.partition(b"/")
            numbers[producer].append(int(number))
        for producer, each in numbers.items():
            assert each == list(range(len(each))), f"records of {producer!r} are missing, doubled or out of order"
