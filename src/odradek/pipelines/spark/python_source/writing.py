"""Writes rows to topics on a worker. A task is done when the brokers have acknowledged each of its records."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import KafkaException, Producer

from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame

ROOM_S = 1.0
# The defaults of Kafka's Java producer: its partitioner, and idempotence.
SETTINGS = {
    "partitioner": "murmur2_random",
    "enable.idempotence": "true",
    "message.max.bytes": "1048576",
    "delivery.timeout.ms": "120000",
    "linger.ms": "0",
    "log_level": "0",
}


class NotDelivered(PipelineError):
    """A record was not delivered."""


def write_topics(frame: DataFrame, servers: str, settings: Iterable[tuple[str, str]]) -> None:
    """Writes rows of `topic`, `key`, `value` and `headers`."""
    client = tuple(sorted({**librdkafka_settings(dict(settings)), "bootstrap.servers": servers}.items()))
    chosen = frame.select("topic", "key", "value", "headers")
    chosen.mapInArrow(writer_of(client), "records BIGINT").collect()


def writer_of(client: tuple[tuple[str, str], ...]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"records": [write_batches(client, batches)]})

    return write


@functools.cache
def producer_of(client: tuple[tuple[str, str], ...]) -> Producer:
    """The producer of a cluster, cached per worker process."""
    return Producer({**SETTINGS, **dict(client)})


def write_batches(client: tuple[tuple[str, str], ...], batches: Iterable[pa.RecordBatch]) -> int:
    producer = producer_of(client)
    task = Task(producer)
    try:
        for batch in batches:
            for row in batch.to_pylist():
                task.send(**row)
        return task.finish()
    except BaseException:
        producer_of.cache_clear()  # drops the records in its queue
        producer.purge()
        raise


class Task:
    """The records of one task, and the first delivery error."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._count = 0
        self._failure: str | None = None

    def send(self, topic: str, key: bytes | None, value: bytes | None, headers: list[dict[str, Any]] | None) -> None:
        pairs = [(each["key"], each["value"]) for each in headers or ()]
        while True:
            try:
                self._producer.produce(topic, value, key, headers=pairs, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(ROOM_S)
                self._raise_failure()
            except KafkaException as error:
                raise NotDelivered(f"a record for topic {topic} was not written: {error.args[0].str()}") from None
            else:
                break
        self._count += 1
        self._producer.poll(0)

    def finish(self) -> int:
        self._producer.flush()  # each record is acknowledged or fails within delivery.timeout.ms
        self._raise_failure()
        return self._count

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = f"a record for topic {message.topic()} was not written: {error.str()}"

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise NotDelivered(self._failure)
