"""A stream gives what the same definition gives as one batch, whatever the definition, the records and their batches.

EQUIVALENCE_CASES sets how many seeds are drawn, EQUIVALENCE_SEED the first; `make soak` draws 500.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.pipelines.generated.drawing import case_of
from tests.pipelines.generated.faults import FAULTS
from tests.pipelines.generated.searching import Search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("EQUIVALENCE_CASES", "1"))
FIRST_SEED = int(os.environ.get("EQUIVALENCE_SEED", "0"))
MOST_CASES = 100


@pytest.fixture(scope="module")
def own_spark(spark: SparkSession) -> SparkSession:
    """A session whose settings these tests change."""
    return spark.newSession()


@pytest.mark.timeout(600 * CASES)
def test_a_stream_gives_what_a_batch_gives(own_spark: SparkSession) -> None:
    search = Search(own_spark)
    began_at = time.perf_counter()
    for seed in range(FIRST_SEED, FIRST_SEED + CASES):
        search.check(seed)
    print(search.report(time.perf_counter() - began_at))
    assert not search.differences, "\n\n".join(search.differences)
    assert not search.unfinished, "\n".join(search.unfinished)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(own_spark: SparkSession, name: str) -> None:
    search = Search(own_spark, ("standard",))
    with FAULTS[name].plant():
        for seed in range(MOST_CASES):
            if FAULTS[name].may_show_in(case_of(seed).constructs()):
                search.check(seed)
            if search.differences:
                shown = search.differences[0].splitlines()[-1].strip()
                print(f"{name}: found after {seed + 1} cases, of which {search.checked} have its constructs: {shown}")
                return
    pytest.fail(f"{name} is not found in {MOST_CASES} cases")
