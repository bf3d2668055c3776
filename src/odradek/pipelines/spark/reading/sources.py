"""Reads sources: topics, files and databases, as a stream or once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import FileOrigin, Start, TopicOrigin
from odradek.pipelines.definition.vocabulary import Delivery, FileFormat, OnDataLoss, StartAt
from odradek.pipelines.spark.reading.jdbc import read_jdbc
from odradek.pipelines.spark.reading.record_files import folder_of, read_record_stream, read_records
from odradek.pipelines.spark.reading.table_copies import refreshed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from odradek.pipelines.definition.model import JdbcOrigin, Pipeline, Source

    PartitionCount = Callable[[str, TopicOrigin], int]  # looks up a topic's partitions on its source's cluster

FETCH_WAIT_MS = "20"  # at the end of a log Spark waits for this long; Kafka's default of 500 ms would add latency
EARLIEST_OFFSET, LATEST_OFFSET = -2, -1
MOST_IN_TRANSACTION = 500_000
NOTHING_OFFSET = 0  # sentinels for start and end


@dataclass(frozen=True, slots=True)
class Range:
    """The range of the topics that a batch reads; by default from each source's start to the end."""

    start: Start | None = None
    end: Start | None = None
    only_named: bool = False  # partitions without an offset are not read


def read_stream(session: SparkSession, source: Source, pipeline: Pipeline, partitions: PartitionCount) -> DataFrame:
    origin = source.origin
    if not isinstance(origin, TopicOrigin):
        assert isinstance(origin, FileOrigin)  # a database is no stream
        return read_files(session.readStream, source, origin, pipeline)
    folder = folder_of(servers_of(origin, pipeline))
    if folder is not None:
        return read_record_stream(session, folder, source.name)
    options = {**topic_options(origin, pipeline), **start_options(origin, origin.start, partitions, "starting")}
    most = record_limit(origin, pipeline)
    if most is not None:
        options["maxOffsetsPerTrigger"] = str(most)
    return session.readStream.format("kafka").options(**options).load()


def read_once(
    session: SparkSession,
    source: Source,
    pipeline: Pipeline,
    partitions: PartitionCount,
    span: Range | None = None,
) -> DataFrame:
    """Reads all existing rows, or a range of a topic."""
    origin = source.origin
    if isinstance(origin, FileOrigin):
        return read_files(session.read, source, origin, pipeline)
    if not isinstance(origin, TopicOrigin):
        return read_table(session, origin, pipeline)
    folder = folder_of(servers_of(origin, pipeline))
    if folder is not None:
        return read_records(session, folder, source.name)
    chosen = span or Range()
    only_named = chosen.only_named and chosen.start is not None  # the start of a definition names some partitions
    options = {
        **topic_options(origin, pipeline),
        **start_options(origin, chosen.start or origin.start, partitions, "starting", only_named),
        **start_options(origin, chosen.end or Start(StartAt.LATEST), partitions, "ending", chosen.only_named),
    }
    return session.read.format("kafka").options(**options).load()


def read_files(
    reader: DataFrameReader | DataStreamReader, source: Source, origin: FileOrigin, pipeline: Pipeline
) -> DataFrame:
    defaults = {"header": "true"} if origin.format is FileFormat.CSV else {}
    made = reader.format(str(origin.format)).options(**{**defaults, **origin.options})
    schema = source.format.schema
    return (made if schema is None else made.schema(schema.ddl)).load(pipeline.below(origin.path))


def read_table(session: SparkSession, origin: JdbcOrigin, pipeline: Pipeline) -> DataFrame:
    url = resolved_jdbc_url(pipeline, origin.url)
    if origin.refresh is None:
        return read_jdbc(session, origin, url)
    return refreshed(session, replace(origin, url=url), origin.refresh, lambda: read_jdbc(session, origin, url))


def source_at(source: Source, start: Start | None) -> Source:
    """The source with another start; unchanged if `start` is None."""
    origin = source.origin
    if start is None or not isinstance(origin, TopicOrigin) or not source.is_stream:
        return source
    is_named = start.at is not StartAt.OFFSETS or any(topic in start.offsets for topic in origin.topics)
    return replace(source, origin=replace(origin, start=start)) if is_named else source


def servers_of(origin: TopicOrigin, pipeline: Pipeline) -> str:
    return origin.bootstrap_servers or pipeline.bootstrap_servers


def record_limit(origin: TopicOrigin, pipeline: Pipeline) -> int | None:
    """The record limit of a batch. An exactly-once batch must be written within the transaction timeout."""
    is_bounded = pipeline.delivery is Delivery.EXACTLY_ONCE
    return origin.max_records_per_batch or (MOST_IN_TRANSACTION if is_bounded else None)


def topic_options(origin: TopicOrigin, pipeline: Pipeline) -> dict[str, str]:
    chosen = {"pattern": origin.pattern} if origin.pattern is not None else {"topics": ",".join(origin.topics)}
    subscription = {"subscribePattern" if key == "pattern" else "subscribe": value for key, value in chosen.items()}
    client = {"fetch.max.wait.ms": FETCH_WAIT_MS, **pipeline.kafka, **origin.kafka}
    if pipeline.delivery is Delivery.EXACTLY_ONCE:  # aborted transactions are not read
        client.setdefault("isolation.level", "read_committed")
    return {
        **subscription,
        "includeHeaders": "true",
        "failOnDataLoss": "true" if origin.on_data_loss is OnDataLoss.FAIL else "false",
        "kafka.bootstrap.servers": servers_of(origin, pipeline),
        **{f"kafka.{key}": value for key, value in client.items()},
    }


def start_options(
    origin: TopicOrigin, start: Start, partitions: PartitionCount, which: str, only_named: bool = False
) -> dict[str, str]:
    """The options `starting…` or `ending…`. Spark needs an offset for every partition; a definition may name some."""
    if start.at is StartAt.TIME:
        timestamp = {f"{which}Timestamp": str(start.time_ms)}
        return {**timestamp, "startingOffsetsByTimestampStrategy": "latest"} if which == "starting" else timestamp
    if start.at is not StartAt.OFFSETS:
        return {f"{which}Offsets": str(start.at)}
    other = NOTHING_OFFSET if only_named else EARLIEST_OFFSET if which == "starting" else LATEST_OFFSET
    topics = origin.topics or tuple(start.offsets)
    return {
        f"{which}Offsets": json.dumps(
            all_offsets(topics, start.offsets, lambda topic: partitions(topic, origin), other)
        )
    }


def all_offsets(
    topics: tuple[str, ...],
    offsets: Mapping[str, Mapping[int, int]],
    partitions: Callable[[str], int],
    other: int,
) -> dict[str, dict[str, int]]:
    return {
        topic: {str(index): offsets.get(topic, {}).get(index, other) for index in range(partitions(topic))}
        for topic in topics
    }


def resolved_jdbc_url(pipeline: Pipeline, url: str) -> str:
    """The JDBC URL with the path of a SQLite file resolved from the definition's folder."""
    prefix = "jdbc:sqlite:"
    is_file = url.startswith(prefix) and not url.startswith((f"{prefix}:", f"{prefix}file:"))
    return prefix + pipeline.below(url.removeprefix(prefix)) if is_file else url
