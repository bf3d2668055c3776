"""A stream gives what the same definition gives as one batch over all records, whatever the definition and the batches.

The definitions and their records are drawn. EQUIVALENCE_CASES sets how many; `make soak` draws 500.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import given

from tests.pipelines.equivalence.checking import Different, check_case
from tests.pipelines.equivalence.drawing import KNOWN_DEFECTS, cases
from tests.pipelines.equivalence.saved import SAVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipelines.equivalence.cases import Case

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("EQUIVALENCE_CASES", "5"))
SETTINGS = hypothesis.settings(
    max_examples=CASES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SAVED)
def test_a_saved_case_gives_what_a_batch_gives(
    quick_spark: SparkSession, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if any(name in shown for shown in KNOWN_DEFECTS.values()):
        request.applymarker(pytest.mark.xfail(raises=Different, strict=True))
    check_case(quick_spark, SAVED[name], tmp_path, ("standard",))


@pytest.mark.timeout(200 * CASES)
@SETTINGS
@given(case=cases())
def test_a_stream_gives_what_a_batch_gives(quick_spark: SparkSession, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="odradek-case-") as folder:
        check_case(quick_spark, case, Path(folder))
