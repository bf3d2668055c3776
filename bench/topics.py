"""Fresh topics for runs: created, and deleted again until their bytes are gone from the disk."""

import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.brokers import BrokerError, RunningBroker
from bench.processes import disk_usage_bytes
from bench.workloads import PARTITIONS

DEADLINE_S = 60
ALLOWED_REST_BYTES = 16_000_000

_numbers = itertools.count(1)
_quiet = logging.getLogger("bench.librdkafka")
_quiet.disabled = True


def _admin(broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address}, logger=_quiet)


def create(broker: RunningBroker, partitions: int = PARTITIONS) -> str:
    """A topic whose every partition serves: Apache Kafka answers before they do, and clients then back off."""
    name = f"bench-{next(_numbers)}"
    admin = _admin(broker)  # its answers come only while it lives
    _insist(lambda: admin.create_topics([NewTopic(name, partitions, 1)])[name].result(DEADLINE_S))
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench"}, logger=_quiet)
    for index in range(partitions):
        _insist(partial(consumer.get_watermark_offsets, TopicPartition(name, index), DEADLINE_S))
    consumer.close()
    return name


def _insist(ask: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            ask()
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def delete(broker: RunningBroker, name: str) -> None:
    admin = _admin(broker)
    admin.delete_topics([name])[name].result(DEADLINE_S)


@contextlib.contextmanager
def fresh_topic(broker: RunningBroker) -> Iterator[str]:
    """A new topic; after it, neither its files nor the work of removing them is left for the next run."""
    before_bytes = disk_usage_bytes(broker.directory)
    name = create(broker)
    yield name
    delete(broker, name)
    deadline = time.monotonic() + DEADLINE_S
    while disk_usage_bytes(broker.directory) > before_bytes + ALLOWED_REST_BYTES:
        if time.monotonic() > deadline:
            raise BrokerError(f"{broker.title} still holds the deleted topic's files after {DEADLINE_S} s")
        time.sleep(0.05)
