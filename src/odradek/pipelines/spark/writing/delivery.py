"""The driver's side of `delivery: exactly_once`: splits a batch into transactions, and takes over from earlier runs.

A split must contain the same records when its batch is replayed, however Spark partitions the replay. Otherwise a
record could move from an uncommitted split to a committed one and be lost. A row is assigned by the partition of its
origin record. Rows without an origin record, and rows whose origin may differ in a replay, are all in one split, so
that their batch is written completely or not at all.

Every run has an epoch, which is higher than that of all runs before, whatever their checkpoints. It is stored in the
mark of each split, by a transaction of the split's own transactional id. That fences the writers of earlier runs; one
that opens the split again finds the higher epoch and stops. Databases have it in a table of their own (`RunEpochs`).
"""

from __future__ import annotations

import functools
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, TableTarget, TopicOrigin, TopicTarget
from odradek.pipelines.definition.operations import PythonFunction
from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.frames import ORIGIN
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import database_url
from odradek.pipelines.spark.writing.kafka_records import producer_of, producers_of
from odradek.pipelines.spark.writing.transactional_writer import (
    SPLIT,
    Assignment,
    DeliveryFailed,
    TakenOver,
    claim_split,
    last_mark,
    read_mark,
    reader_of,
    refuse_replaced,
    write_split,
)
from odradek.pipelines.spark.writing.warehouse import BatchNumber, RunReplaced, warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from confluent_kafka import Consumer
    from pyspark.sql import Column

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.plan import Flow, Plan
    from odradek.pipelines.spark.writing.kafka_records import Producer

    Slot = tuple[Assignment, int]

SPLITS = 4  # partitions of the marks topic if this process creates it; one that exists keeps its number
LOOK_S, KNOWN_WITHIN_S = 10.0, 30.0  # the second for the metadata of a topic that was just created
COLUMNS = ("topic", "key", "value", "headers")
AT_ONCE = 8  # splits that are claimed at the same time
PAUSE_S = 0.2
QUERY_ID = "sql.streaming.queryId"  # set by Spark for the thread that runs a batch


class SplitsUnknown(PipelineError):
    """The number of splits cannot be determined. A wrong number would write records twice, so none is assumed."""

    retry = Retry.LIKELY


def marks_topic(pipeline: Pipeline) -> str:
    """The topic whose partitions represent the splits. It has no records; offsets need an existing topic."""
    return f"odradek-batches-{pipeline.name}"


def origin_split() -> Column:
    """The expression that selects a row's split, from its origin record only, so that it is stable across replays."""
    return F.xxhash64(F.col(f"{ORIGIN}.topic"), F.col(f"{ORIGIN}.partition")).alias(SPLIT)


@dataclass(frozen=True, slots=True)
class FlowWrites:
    """What a flow writes exactly once."""

    name: str
    is_repeatable: bool  # a replay derives each row from the same record; state and Python may choose another one
    has_records: bool = False
    databases: tuple[str, ...] = ()  # their URLs
    has_batches: bool = True  # otherwise Spark's file sink writes it


def transactional_write(
    pipeline: Pipeline, flow: FlowWrites, stamp: BatchNumber
) -> Callable[[Producer, Sequence[DataFrame]], None] | None:
    """Writes all records of a batch for one cluster and commits every split; None for at-least-once delivery. Raises if
    a later run of the pipeline writes."""
    if pipeline.delivery is not Delivery.EXACTLY_ONCE:
        return None
    refuse_replaced_run(pipeline, flow.name, stamp)

    def write(producer: Producer, frames: Sequence[DataFrame]) -> None:
        assignment = assignment_of(pipeline, flow.name, producer, stamp)
        splits = splits_of(assignment) if flow.is_repeatable else 1
        every = functools.reduce(DataFrame.unionByName, [with_split(frame, splits) for frame in frames])
        parts = every.repartitionById(splits, F.col(SPLIT))
        parts.mapInArrow(writer_of(assignment), "written BIGINT").collect()

    return write


def with_split(frame: DataFrame, splits: int) -> DataFrame:
    is_spread = splits > 1 and SPLIT in frame.columns
    split = F.pmod(F.col(SPLIT), F.lit(splits)) if is_spread else F.lit(0)
    return frame.select(*COLUMNS, split.cast("int").alias(SPLIT))


def assignment_of(pipeline: Pipeline, flow: str, producer: Producer, stamp: BatchNumber) -> Assignment:
    """A batch of a flow and one of the producers that write it."""
    settings = tuple(sorted(librdkafka_settings(dict(producer.settings)).items()))
    group = group_of(pipeline, flow, None if producer == producer_of(pipeline) else producer)
    marks = marks_topic(pipeline)
    return Assignment(producer.servers, settings, group, marks, stamp.query, stamp.number, stamp.epoch)


def group_of(pipeline: Pipeline, flow: str, own: Producer | None) -> str:
    """The consumer group that records committed batches: one for each flow, cluster and set of client settings."""
    name = f"odradek.{pipeline.name}.{flow}"
    return name if own is None else f"{name}.{hashlib.sha256(repr(own).encode()).hexdigest()[:8]}"


def writer_of(assignment: Assignment) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow  # noqa: PLC0415 - on the worker

        yield pyarrow.RecordBatch.from_pydict({"written": [write_split(assignment, batches)]})

    return write


def splits_of(assignment: Assignment) -> int:
    return count_splits(assignment.bootstrap_servers, assignment.settings, assignment.marks)


@functools.cache
def count_splits(servers: str, settings: tuple[tuple[str, str], ...], marks: str) -> int:
    """The number of splits, looked up once: it must not change while a batch may be replayed."""
    admin = AdminClient({**dict(settings), "bootstrap.servers": servers, "log_level": 0})
    try:
        found = admin.list_topics(marks, LOOK_S).topics[marks]
    except KafkaException as error:
        raise SplitsUnknown(f"topic {marks} cannot be looked up at {servers}: {error.args[0].str()}") from error
    if found.error is not None or not found.partitions:
        reason = "it has no partitions" if found.error is None else found.error.str()
        raise SplitsUnknown(f"topic {marks} of batch splits cannot be looked up at {servers}: {reason}")
    return len(found.partitions)


def refuse_replaced_run(pipeline: Pipeline, flow: str, stamp: BatchNumber) -> None:
    """Raises if a later run has taken over. Workers check the same for each split that they open."""
    producer = next(iter(producers_of(pipeline)), None)
    if producer is None:
        return
    assignment = assignment_of(pipeline, flow, producer, stamp)
    try:
        mark = read_mark(kept_reader(replace(assignment, query="", batch=0, epoch=0)), (assignment.marks, 0))
        refuse_replaced(assignment, mark)
    except TakenOver as error:
        raise RunReplaced(str(error)) from error


@functools.cache
def kept_reader(assignment: Assignment) -> Consumer:
    """A consumer for each group, which is kept open because it is used for every batch."""
    return reader_of(assignment)


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
        raise PipelineError(
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
    give_up_at = time.monotonic() + KNOWN_WITHIN_S
    while True:
        try:
            return splits_of(assignment)
        except SplitsUnknown:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(PAUSE_S)  # a poll's pause


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
