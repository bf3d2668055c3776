"""The drawn cases find faults that are planted in the compiler. `-rP` prints after how many cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipelines.equivalence.faults import FAULTS
from tests.pipelines.equivalence.searching import Search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.soak]

MOST_CASES = 100


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(quick_spark: SparkSession, fault: str) -> None:
    search = Search(quick_spark, ("standard",))
    with FAULTS[fault]():
        for seed in range(MOST_CASES):
            search.check(seed)
            if search.differences:
                break
    assert search.differences
    print(f"{fault}: found after {search.checked} cases: {search.differences[0].splitlines()[-1].strip()}")
