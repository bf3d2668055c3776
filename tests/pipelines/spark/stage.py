"""An environment for pipelines: topics with unique names on a real broker, and engines that run until caught up."""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.standard import StandardEngine, run_batch
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.clients.wire.connection import Connection
from tests.clients.wire.waiting import await_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Start
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.engines.running import Running

PATIENCE_S = 60.0  # for a response of a broker
WAIT_S = 300.0  # a limit for a busy machine, not the expected time


@dataclass(frozen=True)
class Written:
    """A record of a topic."""

    key: str | None
    value: bytes | None
    headers: dict[str, str]
    place: str

    @property
    def json(self) -> Any:
        return json.loads(self.value or b"null")


@dataclass
class Stage:
    spark: SparkSession
    bootstrap_servers: str
    folder: Path
    prefix: str = field(default_factory=lambda: "t" + uuid.uuid4().hex[:8])  # never a number

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def create(self, name: str, partitions: int = 2) -> str:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for future in admin.create_topics([NewTopic(self.topic(name), partitions, 1)]).values():
            future.result(PATIENCE_S)
        await_partitions(self.bootstrap_servers, self.topic(name), partitions)
        return self.topic(name)

    def produce(
        self, name: str, values: Iterable[Any], *, partition: int = 0, key: str | None = None, timestamp: int = 0
    ) -> None:
        """Produces values: bytes and None unchanged, anything else as JSON."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "message.max.bytes": 10_000_000})
        for value in values:
            data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            producer.produce(
                self.topic(name), data, key, partition=partition, timestamp=timestamp, headers=[("sent", b"by test")]
            )
        assert producer.flush(PATIENCE_S) == 0

    def delete_records(self, name: str, before: int) -> None:
        """Deletes records of the first partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for future in admin.delete_records([TopicPartition(self.topic(name), 0, before)]).values():
            future.result(PATIENCE_S)

    def read(self, name: str) -> list[Written]:
        """All records of a topic, in order within each partition; may include records of concurrent producers."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "none", "fetch.wait.max.ms": 20})
        try:
            topic = self.topic(name)
            partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
            ends = {
                index: consumer.get_watermark_offsets(TopicPartition(topic, index), PATIENCE_S) for index in partitions
            }
            consumer.assign([TopicPartition(topic, index, low) for index, (low, _) in ends.items()])
            wanted = sum(high - low for low, high in ends.values())
            found: list[Written] = []
            give_up_at = time.monotonic() + WAIT_S
            while len(found) < wanted and time.monotonic() < give_up_at:
                for message in consumer.consume(1000, 0.2):
                    assert message.error() is None
                    found.append(written(message))
            assert len(found) >= wanted
            return found
        finally:
            consumer.close()

    def pipeline(self, text: str, name: str = "p") -> Pipeline:
        """The definition of a text, in which topics are written as `@name`."""
        file = self.folder / "pipeline.yml"
        head = f"pipeline: {name}\nbootstrap_servers: {self.bootstrap_servers}\ncheckpoints: checkpoints\n"
        body = textwrap.dedent(text).replace("@", f"{self.prefix}-")
        file.write_text(head + body)
        definition = load_yaml(str(file), os.environ)
        assert definition.is_sound, definition.problems
        assert definition.pipeline is not None
        return definition.pipeline

    def run(
        self, pipeline: Pipeline, wait_s: float = WAIT_S, starts: Mapping[str, Start] | None = None
    ) -> list[BatchReport]:
        """Runs on the standard engine until all existing records are processed."""
        reports: list[BatchReport] = []
        cluster = prepare_topics(pipeline)
        catch_up(StandardEngine(self.spark, plan_again(pipeline), cluster, reports.append, starts), wait_s)
        return reports

    def run_once(self, pipeline: Pipeline) -> BatchReport:
        """Runs on the batch engine."""
        return run_batch(self.spark, plan_again(pipeline), prepare_topics(pipeline))


def await_partitions(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Polls with raw requests, because a client library would cache the number of partitions."""
    with Connection(bootstrap_servers) as connection:
        await_topic(connection, topic, partitions)


def catch_up(engine: StandardEngine, wait_s: float = WAIT_S) -> None:
    caught_up(engine.start(until_caught_up=True), wait_s)


def caught_up(running: Running, wait_s: float = WAIT_S) -> None:
    """Waits until all existing records are processed."""
    give_up_at = time.monotonic() + wait_s
    try:
        running.wait(lambda: time.monotonic() > give_up_at)
        assert not running.is_active
    finally:
        running.stop()


def written(message: Any) -> Written:
    headers = {name: (value or b"").decode() for name, value in message.headers() or ()}
    key = message.key()
    place = f"{message.partition()}:{message.offset()}"
    return Written(None if key is None else key.decode(), message.value(), headers, place)


def renamed(pipeline: Pipeline, **changes: Any) -> Pipeline:
    return dataclasses.replace(pipeline, **changes)
