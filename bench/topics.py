"""Fresh topics for runs: created, and deleted again until their bytes are gone from the disk."""

import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from bench.brokers import BrokerError, RunningBroker
from bench.processes import disk_usage_bytes
from bench.workloads import PARTITIONS

DEADLINE_S = 60
MANY_DEADLINE_S = 300
TOPICS_AT_ONCE = 25  # of a hundred partitions: Apache Kafka refuses what takes 10,000 records of metadata
ALLOWED_REST_BYTES = 16_000_000

_numbers = itertools.count(1)
_quiet = logging.getLogger("bench.librdkafka")
_quiet.disabled = True


def _admin(broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address}, logger=_quiet)


def create(broker: RunningBroker, partitions: int = PARTITIONS, **configs: str) -> str:
    """A topic whose every partition serves: Apache Kafka answers before they do, and clients then back off.
    Settings are spelled with underscores."""
    configs = {key.replace("_", "."): value for key, value in configs.items()}
    name = f"bench-{next(_numbers)}"
    admin = _admin(broker)  # its answers come only while it lives
    _insist(lambda: admin.create_topics([NewTopic(name, partitions, 1, config=configs)])[name].result(DEADLINE_S))
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench"}, logger=_quiet)
    for index in range(partitions):
        _insist(partial(consumer.get_watermark_offsets, TopicPartition(name, index), DEADLINE_S))
    consumer.close()
    return name


def create_many(broker: RunningBroker, topics: int, partitions: int) -> list[str]:
    """They are there when each partition tells where it ends."""
    names = [f"bench-{next(_numbers)}" for _ in range(topics)]
    admin = _admin(broker)
    for start in range(0, topics, TOPICS_AT_ONCE):
        wanted = [NewTopic(name, partitions, 1) for name in names[start : start + TOPICS_AT_ONCE]]
        for created in admin.create_topics(wanted, request_timeout=MANY_DEADLINE_S).values():
            created.result(MANY_DEADLINE_S)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(name, index): latest for name in names for index in range(partitions)}

    def ask() -> None:
        for told in admin.list_offsets(asked, request_timeout=MANY_DEADLINE_S).values():
            told.result(MANY_DEADLINE_S)

    _insist(ask, MANY_DEADLINE_S)
    return names


def alter_topic(broker: RunningBroker, name: str, **settings: str) -> None:
    _alter(broker, ConfigResource(ResourceType.TOPIC, name, incremental_configs=_entries(settings)))


def alter_broker(broker: RunningBroker, **settings: str) -> None:
    (node_id,) = _admin(broker).list_topics(timeout=DEADLINE_S).brokers
    _alter(broker, ConfigResource(ResourceType.BROKER, str(node_id), incremental_configs=_entries(settings)))


def _entries(settings: dict[str, str]) -> list[ConfigEntry]:
    return [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]


def _alter(broker: RunningBroker, resource: ConfigResource) -> None:
    admin = _admin(broker)
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)


def _insist(ask: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + deadline_s
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
