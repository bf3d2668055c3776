"""Dead letters of late rows (`late: dead_letters`): those that an operator with state drops in a batch.

Spark drops rows by the watermark that the previous batch started with, which its offset log has. The records of a batch
are read again, and the rows of the operator's input are selected by the operator's own rule. A replayed batch has the
same records and the same watermark, and so the same dead letters.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.operations import Aggregation, StreamJoin
from odradek.pipelines.definition.vocabulary import StartAt, StreamJoinKind
from odradek.pipelines.operating.spark_progress import merged
from odradek.pipelines.planning.late_rows import late_inputs
from odradek.pipelines.planning.streams import Streams
from odradek.pipelines.spark.checkpoints import checkpoint_uri
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.dead_letters import dead_letters
from odradek.pipelines.spark.event_time import actual_name
from odradek.pipelines.spark.hadoop_files import HadoopFiles
from odradek.pipelines.spark.hidden_columns import REJECTED, quoted
from odradek.pipelines.spark.record_files import folder_of, read_records
from odradek.pipelines.spark.sources import Range, read_once, servers_of
from odradek.pipelines.spark.steps import span_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Source
    from odradek.pipelines.planning.flow import Flow
    from odradek.pipelines.planning.late_rows import LateInput
    from odradek.pipelines.spark.sources import PartitionCount

SPAN = "__window"


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """An entry of Spark's offset log: the watermark that a batch starts with, and the offsets at its end."""

    watermark_ms: int
    ends: Mapping[str, Mapping[str, int]]
    last_file: int  # of a folder in place of a cluster


class LateRows:
    """The dead letters of late rows in the batches of a flow."""

    def __init__(self, pipeline: Pipeline, graph: Graph, flow: Flow, partitions: PartitionCount) -> None:
        self._pipeline = pipeline
        self._graph = graph
        self._flow = flow
        self._partitions = partitions
        is_written = pipeline.dead_letters is not None  # a rebuild writes none
        self._inputs = late_inputs(pipeline, graph, Streams.of(pipeline, graph), flow) if is_written else []

    def __bool__(self) -> bool:
        return bool(self._inputs)

    def of_batch(self, session: SparkSession, number: int) -> list[DataFrame]:
        """The dead letters of a batch; none if it has no records. Those of the first batch are not known: its rows that
        are before 1970, where the watermark begins."""
        files = HadoopFiles(session, checkpoint_uri(self._pipeline, self._flow.name)) if number and self else None
        if files is None:
            return []
        before, now = (parsed_entry(files.read(f"offsets/{each}")) for each in (number - 1, number))
        if before is None or now is None:
            return []
        return [frame for late in self._inputs for frame in self._of_input(session, late, before, now)]

    def _of_input(
        self, session: SparkSession, late: LateInput, before: OffsetEntry, now: OffsetEntry
    ) -> list[DataFrame]:
        records = self._records(session, late.source, before, now)
        if records is None:
            return []

        def load(source: Source) -> DataFrame:
            is_again = source == late.source
            return records if is_again else read_once(session, source, self._pipeline, self._partitions)

        rows = Tables(session, self._pipeline, self._graph, load).rows(late.input)
        pipeline, found = self._pipeline, late_rows(rows, late, before.watermark_ms)
        return [dead_letters(found, pipeline.name, late.step.name, pipeline.dead_letters or "")]

    def _records(
        self, session: SparkSession, source: Source, before: OffsetEntry, now: OffsetEntry
    ) -> DataFrame | None:
        """The records of a source that a batch has read; None if there are none."""
        origin: Any = source.origin
        folder = folder_of(servers_of(origin, self._pipeline))
        if folder is not None:
            numbers = range(before.last_file + 1, now.last_file + 1)
            return read_records(session, folder, source.name, numbers) if numbers else None
        span = new_records(source, before, now)
        return None if span is None else read_once(session, source, self._pipeline, self._partitions, span)


def parsed_entry(text: str | None) -> OffsetEntry | None:
    if text is None:
        return None
    _version, about, *sources = text.splitlines()
    watermark_ms = int(json.loads(about).get("batchWatermarkMs") or 0)
    files = [json.loads(each).get("logOffset", -1) for each in sources if each.startswith("{")]
    return OffsetEntry(watermark_ms, merged(sources), max(files, default=-1))


def new_records(source: Source, before: OffsetEntry, now: OffsetEntry) -> Range | None:
    """The range of the source's topics that a batch has read; None if it is empty. A new partition starts at 0."""
    topics = {topic: ends for topic, ends in now.ends.items() if is_topic_of(source, topic)}
    starts = {
        topic: {int(number): before.ends.get(topic, {}).get(number, 0) for number in ends}
        for topic, ends in topics.items()
    }
    ends = {topic: {int(number): at for number, at in each.items()} for topic, each in topics.items()}
    if starts == ends:
        return None
    return Range(Start(StartAt.OFFSETS, offsets=starts), Start(StartAt.OFFSETS, offsets=ends), only_named=True)


def is_topic_of(source: Source, topic: str) -> bool:
    origin: Any = source.origin
    return topic in origin.topics or (origin.pattern is not None and re.fullmatch(origin.pattern, topic) is not None)


def late_rows(rows: DataFrame, late: LateInput, watermark_ms: int) -> DataFrame:
    """The rows that the step's operator drops, with the reason."""
    time = F.col(quoted(actual_name(rows, late.event_time)))
    watermark = F.timestamp_millis(F.lit(watermark_ms))
    operation = late.step.operation
    reason = F.concat(
        F.lit("late: event time "), time.cast("string"), F.lit(" is before the watermark "), watermark.cast("string")
    )
    if isinstance(operation, Aggregation) and operation.window is not None:
        spans = rows.withColumn(SPAN, span_of(operation.window))
        found = spans.where(F.col(f"{SPAN}.end") <= watermark).drop(SPAN)
    else:
        found = rows.where(time <= watermark)
    if isinstance(operation, StreamJoin) and not is_kept(operation, late.input):
        for name in operation.on:  # such rows match nothing, and are removed before the join
            found = found.where(F.col(quoted(actual_name(rows, name))).isNotNull())
    return found.withColumn(REJECTED, reason)


def is_kept(operation: StreamJoin, name: str) -> bool:
    """Whether a join keeps the rows of this input that have no match."""
    kept = StreamJoinKind.LEFT if name == operation.input else StreamJoinKind.RIGHT
    return operation.how in {kept, StreamJoinKind.FULL}
