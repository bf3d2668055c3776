"""Topics for runs: created, and deleted until their files are removed from the disk."""

import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
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
TOPICS_AT_ONCE = 25  # of 100 partitions: Apache Kafka rejects requests that need 10,000 metadata records
ALLOWED_REMAINDER_BYTES = 16_000_000

_numbers = itertools.count(1)
_quiet = logging.getLogger("bench.librdkafka")
_quiet.disabled = True


def _admin(broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.address}, logger=_quiet)


def create(broker: RunningBroker, partitions: int = PARTITIONS, replication: int = 1, **configs: str) -> str:
    """Create a topic and wait until every partition serves: Apache Kafka responds earlier, and clients then back off.
    Settings are written with underscores."""
    configs = {key.replace("_", "."): value for key, value in configs.items()}
    name = f"bench-{next(_numbers)}"
    admin = _admin(broker)  # futures complete only while the client is referenced
    topic = NewTopic(name, partitions, replication, config=configs)
    _retry(lambda: admin.create_topics([topic])[name].result(DEADLINE_S))
    _wait_for_leaders(broker, name, partitions)
    return name


def create_on(broker: RunningBroker, replicas: Sequence[Sequence[int]]) -> str:
    """As `create`, with the given replicas of each partition."""
    name = f"bench-{next(_numbers)}"
    admin = _admin(broker)
    assignment = [list(each) for each in replicas]
    topic = NewTopic(name, len(replicas), replica_assignment=assignment)
    _retry(lambda: admin.create_topics([topic])[name].result(DEADLINE_S))
    _wait_for_leaders(broker, name, len(replicas))
    return name


def _wait_for_leaders(broker: RunningBroker, name: str, partitions: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench"}, logger=_quiet)
    for index in range(partitions):
        _retry(partial(consumer.get_watermark_offsets, TopicPartition(name, index), DEADLINE_S))
    consumer.close()


def create_many(broker: RunningBroker, topics: int, partitions: int, replication: int = 1) -> list[str]:
    """Returns when ListOffsets succeeds for every partition."""
    names = [f"bench-{next(_numbers)}" for _ in range(topics)]
    admin = _admin(broker)
    for start in range(0, topics, TOPICS_AT_ONCE):
        requests = [NewTopic(name, partitions, replication) for name in names[start : start + TOPICS_AT_ONCE]]
        for created in admin.create_topics(requests, request_timeout=MANY_DEADLINE_S).values():
            created.result(MANY_DEADLINE_S)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # no types
    requested = {TopicPartition(name, index): latest for name in names for index in range(partitions)}

    def list_offsets() -> None:
        for listed in admin.list_offsets(requested, request_timeout=MANY_DEADLINE_S).values():
            listed.result(MANY_DEADLINE_S)

    _retry(list_offsets, MANY_DEADLINE_S)
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


def _retry(call: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            call()
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
def fresh_topic(broker: RunningBroker, replication: int = 1) -> Iterator[str]:
    """A new topic. It is deleted at the end, and its files are removed before the next run begins."""
    before_bytes = disk_usage_bytes(broker.directory)
    name = create(broker, replication=replication)
    yield name
    delete(broker, name)
    deadline = time.monotonic() + DEADLINE_S
    while disk_usage_bytes(broker.directory) > before_bytes + ALLOWED_REMAINDER_BYTES:
        if time.monotonic() > deadline:
            raise BrokerError(f"{broker.title} has not removed the files of a deleted topic after {DEADLINE_S} s")
        time.sleep(0.05)
