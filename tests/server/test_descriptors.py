"""Thousands of partitions in a process that may open only some hundred files."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.testing import RunningBroker

PARTITION_COUNT = 300
ALL = range(PARTITION_COUNT)
DESCRIPTORS = 256


class FrugalBroker(RunningBroker):
    def _command(self) -> list[str]:
        return ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *super()._command()]


def open_descriptors(running: RunningBroker) -> int:
    return len(os.listdir(f"/proc/{running.pid}/fd")) if os.path.isdir("/proc/self/fd") else 0


def produce_to_all(running: RunningBroker, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "linger.ms": 100})
    problems: list[object] = []
    for partition in ALL:
        producer.produce("topic", value, partition=partition, on_delivery=lambda error, _: problems.append(error))
    assert producer.flush(60) == 0
    assert problems == [None] * PARTITION_COUNT


def consume(running: RunningBroker, count: int) -> set[tuple[int | None, int | None]]:
    """Where the records are that come, from the start of every partition on."""
    consumer = Consumer({"bootstrap.servers": running.bootstrap_servers, "group.id": "reader"})
    consumer.assign([TopicPartition("topic", partition, 0) for partition in ALL])
    places: set[tuple[int | None, int | None]] = set()
    while len(places) < count:
        messages = consumer.consume(count, timeout=30)
        assert messages, "nothing comes any more"
        assert all(message.error() is None for message in messages)
        places |= {(message.partition(), message.offset()) for message in messages}
    consumer.close()
    return places


def test_partitions_need_no_descriptor_each() -> None:
    with FrugalBroker() as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic("topic", PARTITION_COUNT)])["topic"].result(60)
        produce_to_all(running, b"first")
        for end in (running.stop, running.kill):
            end()
            running.start()
            produce_to_all(running, b"again")
            assert open_descriptors(running) < DESCRIPTORS / 2
        expected = {(partition, offset) for partition in ALL for offset in range(3)}
        assert consume(running, len(expected)) == expected
