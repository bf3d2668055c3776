"""The drawn cases find faults that are planted in the compiler. `-rP` prints after how many cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipelines.equivalence.constructs import constructs_of
from tests.pipelines.equivalence.drawing import case_of
from tests.pipelines.equivalence.faults import FAULTS
from tests.pipelines.equivalence.searching import Search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.soak]

MOST_CASES = 100


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(own_spark: SparkSession, name: str) -> None:
    fault = FAULTS[name]
    search = Search(own_spark, ("standard",))
    with fault.plant():
        for seed in range(MOST_CASES):
            case = case_of(seed)
            if fault.may_show_in(constructs_of(case)):
                search.check(seed, case)
            if search.differences:
                shown = search.differences[0].splitlines()[-1].strip()
                print(f"{name}: found after {seed + 1} cases, of which {search.checked} have its constructs: {shown}")
                return
    pytest.fail(f"{name} is not found in {MOST_CASES} cases")
