"""Computes the rows of a source or step from the last records of its topics: once, or as records arrive.

Nothing is written. A query that follows new records has a temporary checkpoint. It shows each group that has changed;
rows that Spark writes once they are final, such as those of sessions, are shown when the watermark has passed them.
"""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from odradek.pipelines.definition.model import Start, TopicOrigin
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.planning.plan import Flow, OutputMode
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.frames import without_internal
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.engines.flow_queries import settings_of
from odradek.pipelines.spark.engines.settings import query_settings
from odradek.pipelines.spark.functions import register_functions
from odradek.pipelines.spark.query_frames import answer_of
from odradek.pipelines.spark.reading.sources import read_once, read_source
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.sessions.user_code import ship_modules
from odradek.pipelines.spark.writing.topics import TIMEOUT_S, BrokersUnavailable, check_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.small_reads import Answer
    from odradek.pipelines.spark.writing.topics import Cluster

POLL_S = 0.2
INTERVAL = "500 milliseconds"


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
        error = query.exception()
        if error is not None:
            raise PipelineError(plain_message(error)) from error


@contextmanager
def prepared(
    pipeline: Pipeline, name: str, records: int, settings: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[tuple[SparkSession, Plan, str, Cluster]]:
    """A Spark session, and a plan whose sources start at their last records."""
    chosen = checked_name(pipeline, name)
    cluster = check_topics(pipeline)
    recent = with_recent_start(plan_again(pipeline), chosen, cluster, records)
    session = start_session(f"odradek preview {pipeline.name}", {**settings, **pipeline.spark}, pipeline.master, say)
    try:
        ship_modules(session, pipeline)
        register_functions(session, pipeline)
        yield session, recent, chosen, cluster
    except SPARK_ERRORS as error:
        raise PipelineError(plain_message(error)) from error
    finally:
        session.stop()


def with_recent_start(plan: Plan, name: str, cluster: Cluster, records: int) -> Plan:
    """The plan with sources that start at their last records."""
    pipeline, needed = plan.pipeline, set(plan.upstream(name))

    def recent(source: Source) -> Source:
        origin = source.origin
        if source.name not in needed or not isinstance(origin, TopicOrigin):
            return source
        return replace(source, origin=replace(origin, start=recent_start(origin, pipeline, cluster, records)))

    return plan_again(replace(pipeline, sources=tuple(map(recent, pipeline.sources))))


def checked_name(pipeline: Pipeline, name: str) -> str:
    names = [each.name for each in pipeline.sources] + [each.name for each in pipeline.steps]
    known = {each.lower(): each for each in names}
    if name.lower() not in known:
        hint = suggestion(name, names, what="it has")
        raise PipelineError(f"{pipeline.name} has no source or step '{name}'; {hint}")
    return known[name.lower()]


def rows_of(session: SparkSession, plan: Plan, name: str, cluster: Cluster) -> DataFrame:
    def load(source: Source) -> DataFrame:
        return read_once(session, source, plan.pipeline, cluster.partitions_of)

    return without_internal(Tables(session, plan, load).rows(name))


@contextmanager
def following(
    session: SparkSession, plan: Plan, name: str, cluster: Cluster, show: Callable[[Answer], None]
) -> Iterator[StreamingQuery]:
    """A running query that calls `show` with the rows of each batch, on a thread of Spark."""
    if not plan.is_stream(name):
        raise PipelineError(f"'{name}' reads no stream, so that it has no new rows; omit --follow")
    mode = OutputMode.UPDATE if plan.path(name).can_change else OutputMode.APPEND

    def load(source: Source) -> DataFrame:
        return read_source(session, source, plan.pipeline, cluster.partitions_of)

    rows = without_internal(Tables(session, plan, load, mode).rows(name))
    settings = settings_of(session, plan, Flow(f"preview of {name}", name, mode))
    with tempfile.TemporaryDirectory(prefix="odradek-preview-", ignore_cleanup_errors=True) as folder:
        writer = rows.writeStream.queryName(f"preview of {name}").outputMode(str(mode))
        writer = writer.option("checkpointLocation", folder).trigger(processingTime=INTERVAL)
        with query_settings(session, settings):
            query = writer.foreachBatch(lambda batch, _number: show(answer_of(batch))).start()
        try:
            yield query
        finally:
            query.stop()


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
