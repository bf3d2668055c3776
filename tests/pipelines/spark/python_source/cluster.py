"""Topics on a real cluster, for tests of the source without Spark."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.pipelines.spark.python_source.offsets import OffsetRange, Partition
from odradek.pipelines.spark.python_source.options import TopicOptions
from odradek.pipelines.spark.python_source.reading import read_range
from tests.pipelines.spark.stage import PATIENCE_S, await_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass
class Topics:
    bootstrap_servers: str
    prefix: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def name(self, topic: str) -> str:
        return f"{self.prefix}-{topic}"

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        made = NewTopic(self.name(topic), partitions, 1, config=dict(config or {}))
        self.admin.create_topics([made])[self.name(topic)].result(PATIENCE_S)
        await_partitions(self.bootstrap_servers, self.name(topic), partitions)
        return self.name(topic)

    def grow(self, topic: str, partitions: int) -> None:
        wanted = NewPartitions(self.name(topic), partitions)
        self.admin.create_partitions([wanted])[self.name(topic)].result(PATIENCE_S)
        await_partitions(self.bootstrap_servers, self.name(topic), partitions)

    def delete_records(self, topic: str, before: int) -> None:
        for future in self.admin.delete_records([TopicPartition(self.name(topic), 0, before)]).values():
            future.result(PATIENCE_S)

    def produce(self, topic: str, values: Iterable[bytes | None], partition: int = 0, **others: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "message.max.bytes": 2_000_000})
        refused: list[str] = []

        def note(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                refused.append(str(error))

        for value in values:
            producer.produce(self.name(topic), value, partition=partition, on_delivery=note, **others)
        assert (producer.flush(PATIENCE_S), refused) == (0, [])

    def options(self, topic: str = "t", **others: str) -> TopicOptions:
        settings = {"kafka.bootstrap.servers": self.bootstrap_servers, "kafka.fetch.max.wait.ms": "20"}
        subscription = {} if "subscribePattern" in others else {"subscribe": self.name(topic)}
        return TopicOptions.of({"includeHeaders": "true", **settings, **subscription, **others})

    def rows(self, options: TopicOptions, first: int, end: int, topic: str = "t") -> list[dict[str, Any]]:
        wanted = OffsetRange(Partition(self.name(topic), 0), first, end)
        return [row for batch in read_range(options, wanted) for row in batch.to_pylist()]
