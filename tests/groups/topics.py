"""Topics whose records say where they are: the value of each is its own offset, so that a reader can check it."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import admin

if TYPE_CHECKING:
    from tests.groups.running_member import Partition

PATIENCE_S = 120  # not how long it takes, but how long a busy machine may need


class Topics:
    """Makes topics, fills them, and knows where they end. The one producer of all of them."""

    def __init__(self, servers: str, replicas: int = 1) -> None:
        self.servers = servers
        self._replicas = replicas
        self.ends: dict[Partition, int] = {}
        settings = {
            "bootstrap.servers": servers,
            "log_level": 0,
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
        self._producer: Any = confluent_kafka.Producer(settings)
        self._failures: list[str] = []

    def _admin(self) -> Any:
        """A new one for each question: librdkafka 2.16 keeps a coordinator that is gone after its broker's restart."""
        library: Any = admin
        return library.AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def make(self, **partition_counts: int) -> None:
        library: Any = admin
        wanted = [library.NewTopic(topic, count, self._replicas) for topic, count in partition_counts.items()]
        client = self._admin()
        for future in client.create_topics(wanted).values():
            future.result(PATIENCE_S)
        self.ends |= {(topic, index): 0 for topic, count in partition_counts.items() for index in range(count)}

    def produce(self, count: int, *partitions: Partition) -> None:
        """`count` records to each of the partitions, or to each that there is; returns before they are written."""
        for topic, partition in partitions or tuple(self.ends):
            first = self.ends[topic, partition]
            for offset in range(first, first + count):
                self._producer.produce(topic, b"%d" % offset, partition=partition, on_delivery=self._delivered)
            self.ends[topic, partition] = first + count
        self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failures.append(str(error))
        elif int(message.value()) != message.offset():
            self._failures.append(f"{message.value()} went to offset {message.offset()}")

    def flush(self) -> None:
        assert self._producer.flush(PATIENCE_S) == 0, "not all records were taken"
        assert not self._failures, collections.Counter(self._failures).most_common(3)

    def group_state(self, group: str = "group") -> str:
        """By librdkafka's name: STABLE, PREPARING_REBALANCING, …"""
        client = self._admin()
        (future,) = client.describe_consumer_groups([group]).values()
        state: str = future.result(PATIENCE_S).state.name
        return state

    def committed(self, group: str = "group") -> dict[Partition, int]:
        """What the group has committed, through the admin API; nothing where it has not."""
        library: Any = confluent_kafka
        request = library.ConsumerGroupTopicPartitions(group)
        client = self._admin()
        (future,) = client.list_consumer_group_offsets([request]).values()
        places = future.result(PATIENCE_S).topic_partitions
        return {(each.topic, each.partition): each.offset for each in places if each.offset >= 0}
