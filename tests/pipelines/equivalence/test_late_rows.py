"""Rows that the watermark declares late are the only difference between a stream and a batch, and they are counted."""

from __future__ import annotations

import datetime
import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipelines.equivalence.cases import START_S, Aggregate, Case, Record, Sink, Source, Step
from tests.pipelines.equivalence.oracle import Oracle
from tests.pipelines.equivalence.outcomes import described, differences
from tests.pipelines.equivalence.streams import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("EQUIVALENCE_CASES", "8")) // 8
SIZE, LATER = 10, 600
ROWS = st.lists(st.tuples(st.integers(0, 59), st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=4)


def record(offset: int, minute: int, key: str, number: int) -> Record:
    at = datetime.datetime.fromtimestamp(START_S + minute * 60, datetime.UTC)
    values: dict[str, Any] = {"id": offset, "k": key, "n": number, "at": at, "tags": None}
    return Record(0, offset, tuple(values.items()))


@st.composite
def cases_with_late_rows(draw: st.DrawFn) -> Case:
    """Two batches move the watermark far past the rows of the last batch that are late."""
    offset = iter(range(1000))
    first = [record(next(offset), *each) for each in draw(ROWS)]
    moved = [record(next(offset), LATER, "a", 1)]
    again = [record(next(offset), LATER + 1, "b", 1)]
    late = [record(next(offset), *each) for each in draw(ROWS)]
    timely = [record(next(offset), minute + LATER, key, number) for minute, key, number in draw(ROWS)]
    batches = tuple({"a": tuple(each)} for each in (first, moved, again, [*late, *timely]))
    groups = ("window_start", "window_end", "k")
    sinks = (Sink("final", "counted", "topic"), Sink("changing", "counted", "table", "upsert", groups))
    step = Step("counted", Aggregate("a", ("k",), SIZE))
    late_places = frozenset(("a", each.partition, each.offset) for each in late)
    return Case((Source("a", 5),), (step,), sinks, (), batches, late_places)


@pytest.mark.timeout(300 * max(CASES, 1))
@hypothesis.settings(max_examples=max(CASES, 1), derandomize=True, database=None, deadline=None)
@given(case=cases_with_late_rows())
def test_only_late_rows_are_missing_and_they_are_counted(quick_spark: SparkSession, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="odradek-case-") as folder:
        with closing(Run(quick_spark, case, Path(folder))) as run:
            run.feed()
            run.finish()
        reported = differences(Oracle(quick_spark, case).outcome(), run.outcome())
        late = [each for each in case.batches[-1]["a"] if ("a", 0, each.offset) in case.late]
        rows: list[dict[str, Any]] = [dict(each.values) for each in late]
        groups = {(row["k"], row["at"].timestamp() // (SIZE * 60)) for row in rows}  # Spark counts them once per group
        assert not reported, described(case, "", reported)
        assert dict(+run.late_rows) == {"counted": len(groups), "counted-changes": len(groups)}
