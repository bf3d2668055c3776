"""Checks that the engine can run the pipeline and that its sinks can keep the delivery guarantee.

The limits of real-time mode were determined by experiment on Spark 4.3.0. It runs projections, filters, unions and
joins with static tables. It does not run Python (UDFs, keyed state), deduplication within a watermark, joins of
streams, `foreachBatch` or file sinks, and its only output mode is `update`. Spark itself can aggregate in real-time
mode, but this engine cannot: it computes the output records of all sinks from each input record in one projection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import (
    ConsoleTarget,
    FileOrigin,
    FilesTarget,
    LakehouseTarget,
    PythonTarget,
    SparkTarget,
    TableTarget,
    TopicOrigin,
    TopicTarget,
)
from odradek.pipelines.definition.operations import KeyedState
from odradek.pipelines.definition.spark_version import REALTIME_HINT, realtime_refusal
from odradek.pipelines.definition.vocabulary import Connector, Delivery, Engine, Otherwise

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problems

STANDARD_HINT = "use engine: standard"
BATCH_WRITTEN = {
    FilesTarget: "files are written once per batch",
    TableTarget: "tables are written once per batch, in one transaction",
    LakehouseTarget: "lakehouse tables are written once per batch, in one commit",
    SparkTarget: "other formats are written once per batch",
    PythonTarget: "its function takes a batch, and real-time mode has no batches",
}


def check_engine(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.engine is Engine.REALTIME:
        if refusal := realtime_refusal():
            problems.error(pipeline.place, refusal, REALTIME_HINT)
        if pipeline.connector is Connector.PYTHON:
            problems.error(
                pipeline.place,
                "the realtime engine cannot use the Python connector: real-time mode needs Spark's own connector",
                "use connector: jvm, or engine: standard",
            )
        check_realtime_streams(pipeline, problems)
        check_realtime_ends(pipeline, problems)
    if pipeline.engine is Engine.BATCH:
        check_timers(pipeline, problems)
    if pipeline.delivery is Delivery.EXACTLY_ONCE:
        check_exactly_once(pipeline, problems)
    check_quarantine(pipeline, problems)


def add_realtime_error(problems: Problems, thing: object, kind: str, reason: str) -> None:
    problems.error(thing.place, f"the realtime engine cannot run {kind} '{thing.name}': it {reason}", STANDARD_HINT)  # type: ignore[attr-defined]  # all parts of a definition have a name and a place


def check_realtime_streams(pipeline: Pipeline, problems: Problems) -> None:
    for source in pipeline.sources:
        if not source.is_stream:
            continue
        if isinstance(source.origin, FileOrigin):
            add_realtime_error(
                problems, source, "source", "reads files as a stream, and real-time mode streams from topics only"
            )
        elif isinstance(source.origin, TopicOrigin) and source.origin.max_records_per_batch is not None:
            problems.error(
                place_of(source, "max_records_per_batch"),
                f"the realtime engine cannot limit the records of a batch of source '{source.name}': real-time mode "
                "handles each record as it arrives",
                f"remove max_records_per_batch, or {STANDARD_HINT}",
            )


def check_realtime_ends(pipeline: Pipeline, problems: Problems) -> None:
    for sink in pipeline.sinks:
        reason = next((why for kind, why in BATCH_WRITTEN.items() if isinstance(sink.target, kind)), None)
        if reason is not None:
            add_realtime_error(problems, sink, "sink", f"is not a topic: {reason}")
        elif isinstance(sink.target, ConsoleTarget) and len(pipeline.sinks) > 1:
            add_realtime_error(
                problems,
                sink,
                "sink",
                "writes to the console, and this engine writes either to the console or to topics",
            )
        elif isinstance(sink.target, ConsoleTarget) and loses_rows(pipeline):
            add_realtime_error(
                problems, sink, "sink", "writes to the console, so that rejected rows would have no output"
            )
        elif isinstance(sink.target, TopicTarget) and (sink.target.bootstrap_servers or sink.target.kafka):
            add_realtime_error(
                problems, sink, "sink", "has its own brokers or settings, and this engine writes with a single producer"
            )
    for view in pipeline.views:
        add_realtime_error(problems, view, "view", "is written once per batch, in one transaction")


def loses_rows(pipeline: Pipeline) -> bool:
    """Whether rejected records or rows go to the dead-letter topic or stop the pipeline."""
    kinds = {each.otherwise for step in pipeline.steps for each in step.expectations}
    return pipeline.dead_letters is not None or Otherwise.FAIL in kinds


def check_timers(pipeline: Pipeline, problems: Problems) -> None:
    for step in pipeline.steps:
        if isinstance(step.operation, KeyedState) and step.operation.has_timers:
            problems.warning(
                step.place,
                f"the timers of step '{step.name}' do not fire in the batch engine, which ends after the last row",
                STANDARD_HINT,
            )


def check_exactly_once(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.engine is Engine.REALTIME:
        problems.error(
            pipeline.place,
            "the realtime engine cannot deliver exactly once: records are sent before their batch is committed",
            "use delivery: at_least_once, which gives each record an id, or engine: standard",
        )
    for sink in pipeline.sinks:
        if isinstance(sink.target, PythonTarget | SparkTarget):
            kind = f"the format '{sink.target.format}'" if isinstance(sink.target, SparkTarget) else "a function"
            problems.warning(
                sink.place,
                f"sink '{sink.name}' may receive a batch again after a failure: exactly_once covers topics, files and "
                f"tables, not {kind}",
                "store batch.checkpoint and the number of each batch with its rows, and skip batches that are stored"
                if isinstance(sink.target, PythonTarget)
                else "write to a topic, files or a table",
            )


def check_quarantine(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.dead_letters is not None:
        return
    for step in pipeline.steps:
        for each in step.expectations:
            if each.otherwise is Otherwise.QUARANTINE:
                problems.error(
                    place_of(step, "expect", each.name, "otherwise"),
                    f"expectation '{each.name}' of step '{step.name}' quarantines rows, and dead_letters is not set",
                    "add dead_letters: TOPIC to the pipeline",
                )
