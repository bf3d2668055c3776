"""`delivery: exactly_once` to topics, the driver's side: how a batch is split into transactions.

A split must hold the same records when its batch comes again, however Spark cuts the batch up then: otherwise a record
could move from a split that is not written yet to one that is. Rows of a record go by the partition that it was read
from. Rows that have no such record, or that a step may make of other records the next time, are all of one split, so
that their batch is written whole or not at all.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import PythonFunction
from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.spark.client_settings import librdkafka_settings
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.hidden_columns import ORIGIN
from odradek.pipelines.spark.sources import is_topic
from odradek.pipelines.spark.transactional_writer import SPLIT, Assignment, write_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.flows import Flow
    from odradek.pipelines.spark.producers import Producer
    from odradek.pipelines.spark.sinks.warehouse import BatchNumber

SPLITS = 4  # when we make the topic that stands for them; whoever makes it first may choose another number
LOOK_S = 10.0
COLUMNS = ("topic", "key", "value", "headers")


class SplitsUnknown(PipelineError):
    """Another number of splits than before would write records twice, so none is guessed."""


def marks_topic(pipeline: Pipeline) -> str:
    """A topic without records. Its partitions stand for the splits: offsets are committed for topics that exist."""
    return f"odradek-batches-{pipeline.name}"


def origin_split() -> Column:
    """What a row's split is found by: the same whatever the row has become, and whoever reads the record."""
    return F.xxhash64(F.col(f"{ORIGIN}.topic"), F.col(f"{ORIGIN}.partition")).alias(SPLIT)


@dataclass(frozen=True, slots=True)
class Transactions:
    """Those of one batch of a flow."""

    pipeline: Pipeline
    flow: str
    stamp: BatchNumber
    is_spread: bool

    def write(self, producer: Producer, frames: Sequence[DataFrame], *, is_common: bool) -> None:
        """All records for one cluster; returns when every split is committed. `is_common`: no sink's own producer."""
        servers = producer.servers
        settings = tuple(sorted(librdkafka_settings(dict(producer.settings)).items()))
        marks = marks_topic(self.pipeline)
        group = group_of(self.pipeline, self.flow, None if is_common else producer)
        assignment = Assignment(servers, settings, group, marks, self.stamp.query, self.stamp.number)
        splits = count_splits(servers, settings, marks) if self.is_spread else 1
        every = functools.reduce(DataFrame.unionByName, [self._split(frame, splits) for frame in frames])
        parts = every.repartitionById(splits, F.col(SPLIT))
        parts.mapInArrow(writer_of(assignment), "written BIGINT").collect()

    def _split(self, frame: DataFrame, splits: int) -> DataFrame:
        is_spread = self.is_spread and SPLIT in frame.columns
        split = F.pmod(F.col(SPLIT), F.lit(splits)) if is_spread else F.lit(0)
        return frame.select(*COLUMNS, split.cast("int").alias(SPLIT))


def transactions_of(pipeline: Pipeline, flow: Flow, stamp: BatchNumber | None) -> Transactions | None:
    """None where records are delivered at least once."""
    if pipeline.delivery is not Delivery.EXACTLY_ONCE:
        return None
    if stamp is None:
        raise ValueError("a batch without a number cannot be told apart when it comes again")
    return Transactions(pipeline, flow.name, stamp, is_repeatable(pipeline, flow))


def is_repeatable(pipeline: Pipeline, flow: Flow) -> bool:
    """Whether a row is made of the same record each time: state may keep another of two, as may a user's function."""
    functions = {each.name for each in pipeline.steps if isinstance(each.operation, PythonFunction)}
    is_read = any(each.name == flow.root and is_topic(each) for each in pipeline.sources)
    return is_read and flow.aggregate is None and not functions.intersection(flow.after)


def group_of(pipeline: Pipeline, flow: str, own: Producer | None) -> str:
    """One for each flow, cluster and set of client settings."""
    name = f"odradek.{pipeline.name}.{flow}"
    return name if own is None else f"{name}.{hashlib.sha256(repr(own).encode()).hexdigest()[:8]}"


def writer_of(assignment: Assignment) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow  # noqa: PLC0415 - on the worker

        yield pyarrow.RecordBatch.from_pydict({"written": [write_split(assignment, batches)]})

    return write


@functools.cache
def count_splits(servers: str, settings: tuple[tuple[str, str], ...], marks: str) -> int:
    """Asked for once: the number must not change while a batch may come again."""
    admin = AdminClient({**dict(settings), "bootstrap.servers": servers, "log_level": 0})
    try:
        found = admin.list_topics(marks, LOOK_S).topics[marks]
    except KafkaException as error:
        raise SplitsUnknown(f"no broker at {servers} tells of topic {marks}: {error.args[0].str()}") from error
    if found.error is not None or not found.partitions:
        reason = "it has no partitions" if found.error is None else found.error.str()
        raise SplitsUnknown(f"topic {marks} on {servers}, which a batch is split by, cannot be looked up: {reason}")
    return len(found.partitions)
