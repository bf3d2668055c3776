"""Writes records to clusters: the producers of a pipeline with their client settings, and a job for each of them."""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame

from odradek.pipelines.definition.model import TopicTarget
from odradek.pipelines.spark.reading.record_files import append_written, folder_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from odradek.pipelines.definition.model import Pipeline

LARGEST_REQUEST_BYTES = str(32 * 1024 * 1024)  # the topic's limit applies
# A micro-batch is complete when all of it is flushed, so that large requests save CPU and add no latency.
MICRO_BATCH_SETTINGS = {"linger.ms": "100", "batch.size": str(128 * 1024)}
# Each producer setting, and the setting that bounds it.
LIMITS = {"linger.ms": "delivery.timeout.ms", "batch.size": "buffer.memory"}


class Producer(NamedTuple):
    """A cluster and client settings; records with equal producers are written together."""

    servers: str
    settings: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """A short name, the same in every process."""
        return hashlib.sha256(repr((self.servers, self.settings)).encode()).hexdigest()[:8]


def producer_of(pipeline: Pipeline, target: TopicTarget | None = None) -> Producer:
    own: Mapping[str, str] = {} if target is None else target.kafka
    servers = (target.bootstrap_servers if target is not None else None) or pipeline.bootstrap_servers
    settings = {"max.request.size": LARGEST_REQUEST_BYTES, **pipeline.kafka, **own}
    return Producer(servers, tuple(sorted(settings.items())))


def producers_of(pipeline: Pipeline) -> list[Producer]:
    """The producers of a pipeline: each cluster that it writes to, with its settings."""
    found = [producer_of(pipeline, sink.target) for sink in pipeline.sinks if isinstance(sink.target, TopicTarget)]
    if pipeline.dead_letters is not None:
        found.append(producer_of(pipeline))
    return list(dict.fromkeys(found))


def producer_options(producer: Producer, defaults: Mapping[str, str] | None = None) -> dict[str, str]:
    own = dict(producer.settings)
    if defaults is None:
        defaults = {key: value for key, value in MICRO_BATCH_SETTINGS.items() if LIMITS[key] not in own}
    client = {**defaults, **own, "bootstrap.servers": producer.servers}
    return {f"kafka.{key}": value for key, value in client.items()}


def by_producer(frames: Iterable[tuple[Producer, DataFrame]]) -> dict[Producer, list[DataFrame]]:
    """The records by cluster and client settings; those of one producer are written by one job."""
    found: dict[Producer, list[DataFrame]] = {}
    for producer, frame in frames:
        found.setdefault(producer, []).append(frame)
    return found


def write_to_cluster(producer: Producer, frames: Sequence[DataFrame]) -> None:
    """Writes the records of one producer by one job, at least once."""
    every = functools.reduce(DataFrame.unionByName, frames)
    folder = folder_of(producer.servers)
    if folder is not None:
        append_written(every, folder)
    else:
        every.write.format("kafka").options(**producer_options(producer)).save()


def streamed_to_topics(writer: DataStreamWriter, producer: Producer) -> DataStreamWriter:
    """A query that writes its rows as records with Spark's Kafka sink."""
    folder = folder_of(producer.servers)
    if folder is not None:
        return writer.foreachBatch(lambda batch, _number: append_written(batch, folder))
    return writer.format("kafka").options(**producer_options(producer))
