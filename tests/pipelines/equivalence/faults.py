"""Faults that can be planted in the compiler, so that a test can show that the drawn cases find them."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Duration
from odradek.pipelines.planning import flows
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.spark import compiling, steps
from odradek.pipelines.spark.hidden_columns import VIOLATED
from odradek.pipelines.spark.one_pass import passing
from odradek.pipelines.spark.one_pass.selecting import select_rows
from odradek.pipelines.spark.steps_sql import run_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import Step, Watermark


def without_state(kind: State) -> Iterator[None]:
    """Steps with this kind of state are computed for each micro-batch."""

    def changed(step: Step, streaming: Collection[str]) -> State:
        return state_of(step, streaming) & ~kind

    with mock.patch.object(flows, "state_of", changed):
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


FAULTS = {
    each.__name__: contextmanager(each)
    for each in (
        aggregate_per_batch,
        deduplicate_per_batch,
        join_per_batch,
        explode_drops_third,
        early_watermark,
        null_is_met,
    )
}
