"""A pipeline from its definition to its end: topics looked after, Spark started, an engine run, everything stopped."""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipelines.definition.vocabulary import Connector, Engine
from odradek.pipelines.spark.checkpoints import checkpoint_folder
from odradek.pipelines.spark.connector import ConnectorMissing
from odradek.pipelines.spark.engines.batch import run_batch
from odradek.pipelines.spark.engines.realtime import RealtimeEngine, local_threads
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.failures import PipelineError, plain_message
from odradek.pipelines.spark.session import start_session
from odradek.pipelines.spark.topics import prepare_topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.engines.running import Running
    from odradek.pipelines.spark.progress import BatchReport
    from odradek.pipelines.spark.sources import Range
    from odradek.pipelines.spark.topics import Cluster


@dataclass(frozen=True, slots=True)
class Wishes:
    """When a run ends by itself, and what a batch reads."""

    seconds: float | None = None
    until_caught_up: bool = False
    span: Range | None = None


def run_pipeline(
    pipeline: Pipeline,
    wishes: Wishes,
    is_stopped: Callable[[], bool],
    say: Callable[[str], None],
    report: Callable[[BatchReport], None],
) -> None:
    """In the foreground, with a Spark session of its own."""
    if pipeline.engine is Engine.REALTIME and pipeline.connector is Connector.PYTHON:
        raise PipelineError(
            "the realtime engine cannot use the Python connector: real-time mode reads by Spark's own alone"
        )
    cluster = prepare_topics(pipeline)
    if pipeline.engine is Engine.REALTIME and pipeline.master is None:
        pipeline = dataclasses.replace(pipeline, master=f"local[{local_threads(pipeline, cluster)}]")
    session = begin_session(pipeline, say)
    try:
        if pipeline.engine is Engine.BATCH:
            report(run_batch(session, pipeline, cluster, wishes.span))
            return
        running = start_streams(session, pipeline, cluster, wishes, report)
        say(f"{pipeline.name} runs: {', '.join(running.queries)}")
        ends_at = None if wishes.seconds is None else time.monotonic() + wishes.seconds
        try:
            running.wait(lambda: is_stopped() or (ends_at is not None and time.monotonic() >= ends_at))
        finally:
            running.stop()
    except PySparkException as error:
        raise PipelineError(f"{pipeline.name}: {plain_message(error)}") from error
    finally:
        session.stop()


def begin_session(pipeline: Pipeline, say: Callable[[str], None]) -> SparkSession:
    folder = checkpoint_folder(pipeline)
    log_file = os.devnull
    if "://" not in folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        log_file = str(Path(folder) / "spark.log")
    connector = Connector.JVM if pipeline.engine is Engine.REALTIME else pipeline.connector
    try:
        return start_session(f"odradek {pipeline.name}", pipeline.spark, pipeline.master, say, log_file, connector)
    except ConnectorMissing as error:
        if pipeline.engine is not Engine.REALTIME:
            raise
        raise ConnectorMissing(f"{error}; the realtime engine cannot do without it, --engine standard can") from error
    except PySparkException as error:
        raise PipelineError(
            f"Spark did not start: {plain_message(error)} (is there a Java 17? see {log_file})"
        ) from error


def start_streams(
    session: SparkSession, pipeline: Pipeline, cluster: Cluster, wishes: Wishes, report: Callable[[BatchReport], None]
) -> Running:
    if pipeline.engine is Engine.REALTIME:
        return RealtimeEngine(session, pipeline, cluster, report).start()
    return StandardEngine(session, pipeline, cluster, report).start(until_caught_up=wishes.until_caught_up)
