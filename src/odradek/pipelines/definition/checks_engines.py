"""Checks that the engine can run the pipeline and that its sinks can keep the delivery guarantee.

What the realtime engine does not run is in `planning.realtime_checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import PythonTarget, SparkTarget, place_of
from odradek.pipelines.definition.operations import KeyedState
from odradek.pipelines.definition.spark_version import REALTIME_HINT, realtime_refusal
from odradek.pipelines.definition.vocabulary import Delivery, Engine, Otherwise

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problems

STANDARD_HINT = "use engine: standard"


def check_engine(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.engine is Engine.REALTIME and (refusal := realtime_refusal()):
        problems.error(pipeline.place, refusal, REALTIME_HINT)
    if pipeline.engine is Engine.BATCH:
        check_timers(pipeline, problems)
    if pipeline.delivery is Delivery.EXACTLY_ONCE:
        check_exactly_once(pipeline, problems)
    check_quarantine(pipeline, problems)


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
