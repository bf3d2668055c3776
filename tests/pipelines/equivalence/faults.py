"""Faults that can be planted in the compiler, so that a test can show that the drawn cases find them."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Duration, SinkMode
from odradek.pipelines.planning import flows
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.spark import compiling, steps, stream_joins
from odradek.pipelines.spark.engines import standard
from odradek.pipelines.spark.expectations import kept
from odradek.pipelines.spark.hidden_columns import VIOLATED
from odradek.pipelines.spark.one_pass import passing
from odradek.pipelines.spark.one_pass.selecting import select_rows
from odradek.pipelines.spark.steps import keep_state
from odradek.pipelines.spark.steps_sql import run_query
from odradek.pipelines.spark.stream_joins import condition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Step, Watermark
    from odradek.pipelines.definition.operations import KeyedState, StreamJoin


def without_state(kind: State) -> Iterator[None]:
    """Steps with this kind of state are computed for each micro-batch, and the check at the start does not see it."""

    def changed(step: Step, streaming: Collection[str]) -> State:
        return state_of(step, streaming) & ~kind

    with mock.patch.object(flows, "state_of", changed), mock.patch.object(standard, "keeps_state", return_value=False):
        yield


def aggregate_per_batch() -> Iterator[None]:
    yield from without_state(State.AGGREGATION)


def deduplicate_per_batch() -> Iterator[None]:
    yield from without_state(State.DEDUPLICATION)


def join_per_batch() -> Iterator[None]:
    yield from without_state(State.STREAM_JOIN)


def explode_drops_third() -> Iterator[None]:
    """The third row of an explode is lost, in both ways to compute it."""

    def shortened(function: Callable[..., Any], position: int) -> Callable[..., Any]:
        def changed(*arguments: Any) -> Any:
            given = list(arguments)
            given[position] = given[position].replace("explode(tags)", "explode(slice(tags, 1, 2))")
            return function(*given)

        return changed

    with (
        mock.patch.object(steps, "run_query", shortened(run_query, 1)),
        mock.patch.object(passing, "select_rows", shortened(select_rows, 2)),
    ):
        yield


def explode_multiplies_siblings() -> Iterator[None]:
    """A query that keeps `tags` has a row for each of them, as a step beside it that explodes them."""

    def multiplied(function: Callable[..., Any], position: int) -> Callable[..., Any]:
        def changed(*arguments: Any) -> Any:
            given = list(arguments)
            if given[position].startswith("select id, k, n, at, tags"):
                query, where, condition = given[position].partition(" where ")
                given[position] = f"{query} lateral view explode(tags) as hidden{where}{condition}"
            return function(*given)

        return changed

    with (
        mock.patch.object(steps, "run_query", multiplied(run_query, 1)),
        mock.patch.object(passing, "select_rows", multiplied(select_rows, 2)),
    ):
        yield


def expectations_after_state() -> Iterator[None]:
    """Rows that do not meet an expectation are not removed from the streaming query, and so reach its state."""

    def changed(frame: DataFrame, step: Step) -> DataFrame:
        return frame.drop(VIOLATED) if frame.isStreaming else kept(frame, step)

    with mock.patch.object(compiling, "kept", changed):
        yield


def join_bound_doubled() -> Iterator[None]:
    """Rows of two streams match that are up to twice `within` apart."""

    def changed(operation: StreamJoin, left_time: str, right_time: str) -> Any:
        assert operation.within is not None
        longer = dataclasses.replace(operation, within=Duration(operation.within.milliseconds * 2))
        return condition(longer, left_time, right_time)

    with mock.patch.object(stream_joins, "condition", changed):
        yield


def early_watermark() -> Iterator[None]:
    """Watermarks are a minute later than declared, so that rows are dropped that are on time."""
    real = steps.watermarked

    def changed(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
        if watermark is None:
            return frame
        early = Duration(max(0, watermark.delay.milliseconds // 2 - 60_000))
        return real(frame, dataclasses.replace(watermark, delay=early))

    with mock.patch.object(steps, "watermarked", changed), mock.patch.object(compiling, "watermarked", changed):
        yield


def numbers_bounded() -> Iterator[None]:
    """Keyed state numbers rows up to two."""

    def changed(frame: DataFrame, operation: KeyedState, mode: SinkMode, directory: str) -> DataFrame:
        return keep_state(frame, operation, mode, directory).withColumn("i", F.least("i", F.lit(2)))

    with mock.patch.object(steps, "keep_state", changed):
        yield


def null_is_met() -> Iterator[None]:
    """A check that is null counts as met, where expectations are judged batch by batch."""

    def changed(frame: DataFrame, found: Any) -> DataFrame:
        bits = [
            F.when(F.coalesce(F.expr(each.check), F.lit(True)), F.lit(0)).otherwise(F.lit(1 << number))
            for number, each in enumerate(found)
        ]
        total = F.lit(0).cast("bigint")
        for bit in bits:
            total += bit.cast("bigint")
        return frame.withColumn(VIOLATED, total)

    with mock.patch.object(compiling, "judged", changed):
        yield


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault, and the constructs that it changes: a case without one of each kind cannot show it."""

    plant: Callable[[], AbstractContextManager[None]]
    constructs: tuple[tuple[str, ...], ...]

    def may_show_in(self, constructs: Collection[str]) -> bool:
        return all(any(each.startswith(kinds) for each in constructs) for kinds in self.constructs)


WINDOWS = ("window", "sliding window", "sessions")
STATE = (*WINDOWS, "aggregate without", "deduplicate", "join of streams", "keyed state", "Python step: tallied")
CONSTRUCTS: dict[Callable[[], Iterator[None]], tuple[tuple[str, ...], ...]] = {
    aggregate_per_batch: ((*WINDOWS, "aggregate without"),),
    deduplicate_per_batch: (("deduplicate",), ("record: duplicate",)),
    join_per_batch: (("join of streams",),),
    explode_drops_third: (("explode: select", "explode: lateral"),),
    explode_multiplies_siblings: (("explode",), ("filter", "projection")),
    expectations_after_state: (("expect: drop", "expect: quarantine"), STATE),
    join_bound_doubled: (("join of streams: ",),),
    early_watermark: (WINDOWS,),
    null_is_met: (("expect",),),
    numbers_bounded: (("keyed state",),),
}
FAULTS = {each.__name__: Fault(contextmanager(each), kinds) for each, kinds in CONSTRUCTS.items()}
