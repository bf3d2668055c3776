"""Compiles a definition to DataFrames: pure functions of the sources' frames, the same for streams and batches."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipelines.definition.model import Source
from odradek.pipelines.definition.operations import Deduplication, StreamJoin
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.streams import Streams, streaming_names
from odradek.pipelines.spark.event_time import with_window_ends
from odradek.pipelines.spark.expectations import judged, kept
from odradek.pipelines.spark.hidden_columns import user_expression
from odradek.pipelines.spark.observed_counts import OBSERVED, observing
from odradek.pipelines.spark.reading.records import decoded, rows_of
from odradek.pipelines.spark.reading.sources import is_topic
from odradek.pipelines.spark.sessions.failures import PipelineError, is_from_java, message_with_location, plain_message
from odradek.pipelines.spark.steps import StepBroken, run_step, watermarked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.spark.observed_counts import Count


class Tables:
    """The frames of all sources and steps by name, each built on first use.

    `load` reads a source: Spark's Kafka columns for a topic, rows for other sources. The `give_…` methods set frames
    that already exist, such as that of a batch.
    """

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        graph: Graph,
        load: Callable[[Source], DataFrame],
        mode: SinkMode = SinkMode.APPEND,
        counts: Mapping[str, Sequence[Count]] | None = None,  # of decoded records and judged rows, by source and step
    ) -> None:
        self._counts = counts or {}
        self._session = session
        self._pipeline = pipeline
        self._graph = graph
        self._load = load
        self._mode = mode
        self._sources = {each.name: each for each in pipeline.sources}
        self._steps = {each.name: each for each in pipeline.steps}
        self._rows: dict[str, DataFrame] = {}
        self._decoded: dict[str, DataFrame] = {}
        self._unjudged: dict[str, DataFrame] = {}
        self._judged: dict[str, DataFrame] = {}

    def give_decoded(self, name: str, frame: DataFrame) -> None:
        self._decoded[name] = frame

    def give_rows_before_expectations(self, name: str, frame: DataFrame) -> None:
        self._unjudged[name] = frame

    def give_rows(self, name: str, frame: DataFrame) -> None:
        self._rows[name] = frame

    def rows(self, name: str) -> DataFrame:
        """The rows of a source or step that its readers see: parsed, and without rows that expectations remove."""
        if name not in self._rows:
            if name in self._sources:
                self._rows[name] = self._source_rows(self._sources[name])
            else:
                step = self._steps[name]
                self._rows[name] = (
                    kept(self.judged(name), step) if step.expectations else self.rows_before_expectations(name)
                )
        return self._rows[name]

    def decoded(self, name: str) -> DataFrame:
        """The records of a topic, each parsed or with the reason why it was rejected."""
        if name not in self._decoded:
            source = self._sources[name]
            self._decoded[name] = self._observing(name, decoded(self._load(source), source))
        return self._decoded[name]

    def rows_before_expectations(self, name: str) -> DataFrame:
        """The rows of a step before its expectations are applied."""
        if name not in self._unjudged:
            step = self._steps[name]
            inputs = {each: self.rows(each) for each in self._graph.inputs.get(name, ())}
            with errors_naming(step):
                frame = run_step(
                    self._session, step, inputs, self._mode, self._pipeline.directory, self._event_times(step),
                    self._static_inputs(step),
                )  # fmt: skip
                if frame.isStreaming:
                    frame = with_window_ends(frame, inputs.values(), self._streams.times[name].ends)
                self._unjudged[name] = frame
        return self._unjudged[name]

    def judged(self, name: str) -> DataFrame:
        if name not in self._judged:
            step = self._steps[name]
            with errors_naming(step):
                frame = judged(self.rows_before_expectations(name), step.expectations)
                self._judged[name] = self._observing(name, frame)
        return self._judged[name]

    def _observing(self, name: str, frame: DataFrame) -> DataFrame:
        return observing(frame, self._counts.get(name, ()), f"{OBSERVED} of {name}")

    def _source_rows(self, source: Source) -> DataFrame:
        with errors_naming(source):
            frame = rows_of(self.decoded(source.name), source) if is_topic(source) else self._load(source)
            for each in source.columns:
                frame = frame.withColumn(each.name, user_expression(frame, each.expression))
            return watermarked(frame, source.watermark)

    @cached_property
    def _streams(self) -> Streams:
        return Streams.of(self._pipeline, self._graph)

    @cached_property
    def _streaming(self) -> frozenset[str]:
        return streaming_names(self._pipeline, self._graph)

    def _static_inputs(self, step: Step) -> list[str]:
        """The inputs that are not streams, of a step that reads a stream."""
        streaming, inputs = self._streaming, self._graph.inputs.get(step.name, ())
        return [each for each in inputs if each not in streaming] if step.name in streaming else []

    def _event_times(self, step: Step) -> list[str]:
        """The columns of event time that `within` compares; the checks guarantee that each input has one."""
        operation = step.operation
        if isinstance(operation, StreamJoin):
            return [min(self._streams.watermarks[name]) for name in (operation.input, operation.stream)]
        if not isinstance(operation, Deduplication) or operation.within is None:
            return []
        return [min(self._streams.of_inputs(step, self._graph))]


class errors_naming:  # noqa: N801 - used as a context manager, like a function
    """Adds the step or source and its place to errors of Spark and of user code."""

    def __init__(self, thing: Source | Step) -> None:
        self._thing = thing

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, PipelineError):
            return
        noun = "source" if isinstance(self._thing, Source) else "step"
        is_of_spark = isinstance(error, PySparkException) or is_from_java(error)
        words = plain_message(error) if is_of_spark else message_with_location(error)
        raise StepBroken(f"{self._thing.place}: {noun} '{self._thing.name}': {words}") from error
