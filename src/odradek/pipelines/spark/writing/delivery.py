"""The driver's side of `delivery: exactly_once` for topics: splits a batch into transactions.

A split must contain the same records when its batch is replayed, however Spark partitions the replay. Otherwise a
record could move from an uncommitted split to a committed one and be lost. A row is assigned by the partition of its
origin record. Rows without an origin record, and rows whose origin may differ in a replay, are all in one split, so
that their batch is written completely or not at all.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.frames import ORIGIN
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.kafka_records import producer_of, producers_of
from odradek.pipelines.spark.writing.transactional_writer import (
    SPLIT,
    Assignment,
    TakenOver,
    read_mark,
    reader_of,
    refuse_replaced,
    write_split,
)
from odradek.pipelines.spark.writing.warehouse import RunReplaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from confluent_kafka import Consumer
    from pyspark.sql import Column

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.writing.kafka_records import Producer
    from odradek.pipelines.spark.writing.warehouse import BatchNumber

SPLITS = 4  # partitions of the marks topic if this process creates it; one that exists keeps its number
LOOK_S = 10.0
COLUMNS = ("topic", "key", "value", "headers")


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


@dataclass(frozen=True, slots=True)
class Transactions:
    """The Kafka transactions of one batch of a flow."""

    pipeline: Pipeline
    flow: str
    stamp: BatchNumber
    is_spread: bool

    def write(self, producer: Producer, frames: Sequence[DataFrame]) -> None:
        """Writes all records for one cluster and commits every split."""
        assignment = assignment_of(self.pipeline, self.flow, producer, self.stamp)
        splits = splits_of(assignment) if self.is_spread else 1
        every = functools.reduce(DataFrame.unionByName, [self._split(frame, splits) for frame in frames])
        parts = every.repartitionById(splits, F.col(SPLIT))
        parts.mapInArrow(writer_of(assignment), "written BIGINT").collect()

    def _split(self, frame: DataFrame, splits: int) -> DataFrame:
        is_spread = self.is_spread and SPLIT in frame.columns
        split = F.pmod(F.col(SPLIT), F.lit(splits)) if is_spread else F.lit(0)
        return frame.select(*COLUMNS, split.cast("int").alias(SPLIT))


def transactions_of(pipeline: Pipeline, flow: FlowWrites, stamp: BatchNumber | None) -> Transactions | None:
    """The transactions of a batch; None for at-least-once delivery. Raises if a later run of the pipeline writes."""
    if pipeline.delivery is not Delivery.EXACTLY_ONCE:
        return None
    if stamp is None:
        raise ValueError("a batch without an id cannot be recognized in a replay")
    refuse_replaced_run(pipeline, flow.name, stamp)
    return Transactions(pipeline, flow.name, stamp, flow.is_repeatable)


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
