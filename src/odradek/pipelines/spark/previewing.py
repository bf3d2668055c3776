"""Computes the rows of a source or step from the last records of its topics. Nothing is written."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__

from odradek.pipelines.definition.model import Start, TopicOrigin
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.frames import without_internal
from odradek.pipelines.spark.query_frames import answer_of
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.sessions.user_code import ship_modules
from odradek.pipelines.spark.writing.topics import BrokersUnavailable, check_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.query_tables import Answer
    from odradek.pipelines.spark.writing.topics import Cluster


@contextmanager
def preview(
    pipeline: Pipeline, name: str, records: int, settings: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[Answer]:
    """The rows of a source or step, from the last records of every partition."""
    with prepared(pipeline, name, records, settings, say) as (session, recent, chosen, cluster):
        yield answer_of(rows_of(session, recent, chosen, cluster))


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
        return replace(source, origin=replace(origin, start=recent_start(origin, cluster, records)))

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


def recent_start(origin: TopicOrigin, cluster: Cluster, records: int) -> Start:
    home = cluster.at(origin)
    topics = {*home.topics_of(origin)}
    try:
        firsts, ends = (home.offsets(topics, each) for each in (OffsetSpec.earliest(), OffsetSpec.latest()))  # type: ignore[no-untyped-call]  # confluent_kafka has no types here
    except (KafkaException, TimeoutError) as error:
        raise BrokersUnavailable(f"no broker answers at {home.bootstrap_servers}: {error}") from None
    offsets = {
        topic: {each: max(first, ends[topic][each] - records) for each, first in found.items()}
        for topic, found in firsts.items()
    }
    return Start(StartAt.OFFSETS, offsets=offsets)
