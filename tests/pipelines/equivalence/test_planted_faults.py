"""The drawn cases find faults that are planted in the compiler."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import Phase, given

from tests.pipelines.equivalence.checking import Different, check_case
from tests.pipelines.equivalence.drawing import cases
from tests.pipelines.equivalence.faults import FAULTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipelines.equivalence.cases import Case

pytestmark = [pytest.mark.spark, pytest.mark.soak]

MOST_CASES = 100


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(quick_spark: SparkSession, fault: str) -> None:
    tried = 0

    @hypothesis.settings(
        max_examples=MOST_CASES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @given(case=cases())
    def search(case: Case) -> None:
        nonlocal tried
        tried += 1
        with tempfile.TemporaryDirectory(prefix="odradek-case-") as folder:
            check_case(quick_spark, case, Path(folder), ("standard",))

    with FAULTS[fault](), pytest.raises(Different):
        search()
    print(f"{fault}: found after {tried} cases")
