"""A definition as DataFrames: pure functions of the sources' frames, the same for streams and for batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.spark.expectations import judged, kept
from odradek.pipelines.spark.failures import PipelineError, is_from_java, plain_message, told_with_place
from odradek.pipelines.spark.records import decoded, rows_of
from odradek.pipelines.spark.sources import is_topic
from odradek.pipelines.spark.steps import StepBroken, run_step, watermarked

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step, Watermark
    from odradek.pipelines.definition.vocabulary import Duration


class Tables:
    """The rows of every source and step by name, each made when it is first asked for.

    `load` reads a source: Spark's Kafka columns of a topic, the rows of anything else. A frame that is already there,
    such as that of a batch, is given by one of the `give_…`. Watermarks of sources wait for `least_delay` at least.
    """

    def __init__(
        self,
        session: SparkSession,
        pipeline: Pipeline,
        graph: Graph,
        load: Callable[[Source], DataFrame],
        mode: SinkMode = SinkMode.APPEND,
        least_delay: Duration | None = None,
    ) -> None:
        self._session = session
        self._pipeline = pipeline
        self._graph = graph
        self._load = load
        self._mode = mode
        self._least_delay = least_delay
        self._sources = {each.name: each for each in pipeline.sources}
        self._steps = {each.name: each for each in pipeline.steps}
        self._rows: dict[str, DataFrame] = {}
        self._decoded: dict[str, DataFrame] = {}
        self._unjudged: dict[str, DataFrame] = {}
        self._judged: dict[str, DataFrame] = {}

    def give_decoded(self, name: str, frame: DataFrame) -> None:
        self._decoded[name] = frame

    def give_unjudged(self, name: str, frame: DataFrame) -> None:
        self._unjudged[name] = frame

    def give_rows(self, name: str, frame: DataFrame) -> None:
        self._rows[name] = frame

    def rows(self, name: str) -> DataFrame:
        """What goes on from a source or step to those that read it."""
        if name not in self._rows:
            if name in self._sources:
                self._rows[name] = self._source_rows(self._sources[name])
            else:
                step = self._steps[name]
                self._rows[name] = (
                    kept(self.judged(name), step.expectations) if step.expectations else self.unjudged(name)
                )
        return self._rows[name]

    def decoded(self, name: str) -> DataFrame:
        """The records of a topic, parsed or with the reason why not."""
        if name not in self._decoded:
            source = self._sources[name]
            self._decoded[name] = decoded(self._load(source), source)
        return self._decoded[name]

    def unjudged(self, name: str) -> DataFrame:
        """A step's rows before its expectations."""
        if name not in self._unjudged:
            step = self._steps[name]
            inputs = {each: self.rows(each) for each in self._graph.inputs.get(name, ())}
            with told_of(step):
                self._unjudged[name] = run_step(self._session, step, inputs, self._mode, self._pipeline.directory)
        return self._unjudged[name]

    def judged(self, name: str) -> DataFrame:
        if name not in self._judged:
            step = self._steps[name]
            with told_of(step):
                self._judged[name] = judged(self.unjudged(name), step.expectations)
        return self._judged[name]

    def _source_rows(self, source: Source) -> DataFrame:
        with told_of(source):
            frame = rows_of(self.decoded(source.name), source) if is_topic(source) else self._load(source)
            for each in source.columns:
                frame = frame.withColumn(each.name, F.expr(each.expression))
            return watermarked(frame, at_least(source.watermark, self._least_delay))


def at_least(watermark: Watermark | None, delay: Duration | None) -> Watermark | None:
    """Spark forgets ids after the delay of the watermark: it must be as long as they are to be remembered."""
    if watermark is None or delay is None or delay <= watermark.delay:
        return watermark
    return replace(watermark, delay=delay)


class told_of:  # noqa: N801 - read as a word of the sentence `with told_of(step)`
    """What Spark finds wrong, or the user's own code, is told with the step and its line."""

    def __init__(self, thing: Source | Step) -> None:
        self._thing = thing

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, PipelineError):
            return
        noun = "source" if isinstance(self._thing, Source) else "step"
        is_of_spark = isinstance(error, PySparkException) or is_from_java(error)
        words = plain_message(error) if is_of_spark else told_with_place(error)
        raise StepBroken(f"{self._thing.place}: {noun} '{self._thing.name}': {words}") from error
