"""Takes over a pipeline that delivers exactly once: after that, earlier runs of it can write nothing.

Every run has an epoch, which is higher than that of all runs before, whatever their checkpoints. It is stored in the
mark of each split, by a transaction of the split's own transactional id. That fences the writers of earlier runs; one
that opens the split again finds the higher epoch and stops. Databases have it in a table of their own (`run_epochs`).
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from odradek.pipelines.definition.model import Source, TableTarget, TopicOrigin, TopicTarget
from odradek.pipelines.definition.operations import PythonFunction
from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.delivery import FlowWrites, SplitsUnknown, assignment_of, group_of, splits_of
from odradek.pipelines.spark.writing.kafka_records import producers_of
from odradek.pipelines.spark.writing.transactional_writer import DeliveryFailed, TakenOver, claim_split, last_mark
from odradek.pipelines.spark.writing.warehouse import BatchNumber, RunReplaced, warehouse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.writing.transactional_writer import Assignment

    Slot = tuple[Assignment, int]

AT_ONCE = 8  # splits that are claimed at the same time
LOOK_S = 30.0  # for the metadata of a topic that was just created
PAUSE_S = 0.2


class TakeoverFailed(PipelineError):
    """No transaction could be committed. Brokers without transactions fail like those that are unavailable."""

    retry = Retry.PERHAPS


def take_over(pipeline: Pipeline, flows: Sequence[FlowWrites], cluster: str | None) -> int:
    """Stops earlier runs, and returns the epoch of this one; 0 if the pipeline does not deliver exactly once."""
    if pipeline.delivery is not Delivery.EXACTLY_ONCE:
        return 0
    slots = sorted(slots_of(pipeline, flows), key=lambda each: (each[0].group, each[1]))
    stored = [(warehouse(url), run_of(pipeline, each.name, cluster)) for each in flows for url in each.databases]
    if not slots and not stored:
        return 0
    try:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            epochs = [mark.epoch for mark in threads.map(lambda each: last_mark(*each), slots)]
            epoch = max([*epochs, *(database.last_epoch(run) for database, run in stored)]) + 1
            # One of several concurrent starts gets the first split, and the others stop here.
            for assignment, split in slots[:1]:
                claim_split(replace(assignment, epoch=epoch), split)
            list(threads.map(lambda each: claim_split(replace(each[0], epoch=epoch), each[1]), slots[1:]))
            for database, run in stored:
                database.claim(run, epoch)
    except TakenOver as error:
        raise RunReplaced(str(error)) from error
    except (DeliveryFailed, KafkaException) as error:
        raise TakeoverFailed(
            f"{pipeline.name} cannot take over from earlier runs: {error}; use `delivery: at_least_once`, or a broker "
            "with transactions"
        ) from error
    return epoch


def writes_of(plan: Plan, flow: Flow) -> FlowWrites:
    """What a flow writes, whose rows are derived from the same records in a replay if its batches are records."""
    has_records = any(isinstance(each.target, TopicTarget) for each in flow.ends) or bool(flow.owned)
    urls = (each.target.url for each in flow.ends if isinstance(each.target, TableTarget))
    databases = sorted({database_url(plan.pipeline, url) for url in urls})
    root = plan.tables.get(flow.root.lower())
    is_topic = root is not None and isinstance(root.made_by, Source) and isinstance(root.made_by.origin, TopicOrigin)
    has_python = any(isinstance(plan.table(each).made_by, PythonFunction) for each in flow.after)
    return FlowWrites(
        flow.name, is_topic and not has_python, has_records, tuple(databases), has_batches=flow.files is None
    )


def run_of(pipeline: Pipeline, flow: str, cluster: str | None) -> str:
    """The name under which databases store the epoch of a flow; pipelines of other clusters may write there, too."""
    if pipeline.delivery is not Delivery.EXACTLY_ONCE:
        return ""
    name = group_of(pipeline, flow, None)
    return name if cluster is None else f"{name}@{cluster}"


def slots_of(pipeline: Pipeline, flows: Sequence[FlowWrites]) -> Iterator[Slot]:
    """The splits that the flows may write, and the first split of each flow, which every batch reads."""
    for flow in flows:
        for producer in producers_of(pipeline) if flow.has_batches else ():
            assignment = assignment_of(pipeline, flow.name, producer, BatchNumber("", 0))
            splits = known_splits(assignment) if flow.has_records and flow.is_repeatable else 1
            yield from ((assignment, split) for split in range(splits))


def known_splits(assignment: Assignment) -> int:
    give_up_at = time.monotonic() + LOOK_S
    while True:
        try:
            return splits_of(assignment)
        except SplitsUnknown:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(PAUSE_S)  # a poll's pause


QUERY_ID = "sql.streaming.queryId"  # set by Spark for the thread that runs a batch


class BatchUnidentified(PipelineError):
    """Spark did not report the query id of a batch."""

    retry = Retry.NEVER


def number_of(batch: DataFrame, flow: str, number: int, epoch: int = 0, run: str = "") -> BatchNumber:
    """The batch's number with the query id of its checkpoint.

    Spark numbers batches per checkpoint. Without the query id, the first batches after a reset would look like those
    before it, and would be skipped.
    """
    query = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if not query:
        raise BatchUnidentified(
            f"Spark did not report the query id ({QUERY_ID}) of batch {number} of flow {flow}: a replayed batch cannot "
            "be distinguished from a new one, so nothing was written; use PySpark 4.1.1 or 4.3.0, which report it"
        )
    return BatchNumber(query, number, epoch, run)
