"""Computes the rows of a step from the last records of its topics, as a batch; nothing is written."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import Start, TopicOrigin
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.following import following, raise_failure
from odradek.pipelines.spark.hidden_columns import without_hidden
from odradek.pipelines.spark.query_frames import answer_of
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.sessions.user_code import ship_modules
from odradek.pipelines.spark.writing.topics import TIMEOUT_S, BrokersUnavailable, Cluster, check_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.spark.small_reads import Answer

POLL_S = 0.2


@contextmanager
def preview(
    pipeline: Pipeline, name: str, records: int, settings: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[Answer]:
    """The rows of a source or step, from the last records of every partition."""
    with prepared(pipeline, name, records, settings, say) as (session, recent, chosen, cluster):
        yield answer_of(rows_of(session, recent, chosen, cluster))


def follow(
    pipeline: Pipeline, name: str, records: int, settings: Mapping[str, str], say: Callable[[str], None],
    show: Callable[[Answer], None],
) -> None:  # fmt: skip
    """Calls `show` with the rows of the last records, and of records as they arrive, until it is interrupted."""
    with (
        prepared(pipeline, name, records, settings, say) as (session, recent, chosen, cluster),
        following(session, recent, chosen, cluster, show) as query,
    ):
        say("showing rows as records arrive; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            while query.isActive:
                time.sleep(POLL_S)
        raise_failure(query)


@contextmanager
def prepared(
    pipeline: Pipeline, name: str, records: int, settings: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[tuple[SparkSession, Pipeline, str, Cluster]]:
    """A Spark session, and the pipeline with sources that start at their last records."""
    chosen = checked_name(pipeline, name)
    cluster = check_topics(pipeline)
    recent = with_recent_start(pipeline, chosen, cluster, records)
    session = start_session(f"odradek preview {pipeline.name}", {**settings, **pipeline.spark}, pipeline.master, say)
    try:
        ship_modules(session, pipeline)
        yield session, recent, chosen, cluster
    except SPARK_ERRORS as error:
        raise PipelineError(plain_message(error)) from error
    finally:
        session.stop()


def checked_name(pipeline: Pipeline, name: str) -> str:
    names = [each.name for each in pipeline.sources] + [each.name for each in pipeline.steps]
    known = {each.lower(): each for each in names}
    if name.lower() not in known:
        hint = suggestion(name, names, what="it has")
        raise PipelineError(f"{pipeline.name} has no source or step '{name}'; {hint}")
    return known[name.lower()]


def rows_of(session: SparkSession, pipeline: Pipeline, name: str, cluster: Cluster) -> DataFrame:
    def load(source: Source) -> DataFrame:
        return read_once(session, source, pipeline, cluster.partitions_of)

    return without_hidden(Tables(session, pipeline, build_graph(pipeline), load).rows(name))


def with_recent_start(pipeline: Pipeline, name: str, cluster: Cluster, records: int) -> Pipeline:
    """The pipeline with sources that start at their last records."""
    needed = build_graph(pipeline).upstream(name)
    sources = tuple(
        replace(each, origin=replace(each.origin, start=recent_start(each.origin, pipeline, cluster, records)))
        if each.name in needed and isinstance(each.origin, TopicOrigin)
        else each
        for each in pipeline.sources
    )
    return replace(pipeline, sources=sources)


def recent_start(origin: TopicOrigin, pipeline: Pipeline, cluster: Cluster, records: int) -> Start:
    home = cluster.at(origin)
    pattern = origin.pattern
    matching = [] if pattern is None else [topic for topic in home.partitions if re.fullmatch(pattern, topic)]
    consumer = Consumer({
        **librdkafka_settings({**pipeline.kafka, **origin.kafka}),
        "bootstrap.servers": home.bootstrap_servers, "group.id": "odradek-preview", "log_level": 0,
    })  # fmt: skip
    try:
        return Start(
            StartAt.OFFSETS,
            offsets={
                topic: {
                    index: recent_offset(consumer, topic, index, records) for index in range(home.partitions_of(topic))
                }
                for topic in origin.topics or matching
            },
        )
    except KafkaException as error:
        message = f"no broker answers at {home.bootstrap_servers}: {error.args[0].str()}"
        raise BrokersUnavailable(message) from None
    finally:
        consumer.close()


def recent_offset(consumer: Consumer, topic: str, partition: int, records: int) -> int:
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
    return max(first, end - records)
