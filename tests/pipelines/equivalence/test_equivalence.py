"""A stream gives what the same definition gives as one batch over all records, whatever the definition and the batches.

The definitions and their records are drawn from seeds. EQUIVALENCE_CASES sets how many, EQUIVALENCE_SEED the first;
`make soak` draws 500. With ODRADEK_PIPELINES=new, those that the rules accept run by their plan.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.loading import Way, way
from tests.pipelines.equivalence.checking import check_case
from tests.pipelines.equivalence.constructs import constructs_of
from tests.pipelines.equivalence.definitions import write_definition
from tests.pipelines.equivalence.drawing import case_of
from tests.pipelines.equivalence.saved import REFUSED, SAVED
from tests.pipelines.equivalence.searching import Search
from tests.pipelines.equivalence.streams import Refused, checked

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = int(os.environ.get("EQUIVALENCE_CASES", "1"))
SHOWN_HERE_ONLY = (  # no other test has these
    "late_rows_of_windows",
    "late_rows_of_a_join_with_two_topics",
    "all_columns_of_records",
)
FIRST_SEED = int(os.environ.get("EQUIVALENCE_SEED", "0"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", [name if name in SHOWN_HERE_ONLY else pytest.param(name, marks=pytest.mark.soak) for name in SAVED]
)
def test_a_saved_case_gives_what_a_batch_gives(own_spark: SparkSession, name: str, tmp_path: Path) -> None:
    check_case(own_spark, SAVED[name], tmp_path, ("standard",))


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in SAVED if name not in REFUSED])
def test_a_saved_case_gives_it_by_its_plan(own_spark: SparkSession, name: str, tmp_path: Path) -> None:
    check_case(own_spark, SAVED[name], tmp_path, way=Way.NEW)


@pytest.mark.parametrize("name", REFUSED)
def test_a_saved_case_is_refused_by_the_rules(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=REFUSED[name]):
        checked(write_definition(SAVED[name], tmp_path), Way.NEW)


@pytest.mark.timeout(300 * CASES)
def test_a_stream_gives_what_a_batch_gives(own_spark: SparkSession) -> None:
    search = Search(own_spark, way=way(os.environ))
    began_at = time.perf_counter()
    for seed in range(FIRST_SEED, FIRST_SEED + CASES):
        search.check(seed, case_of(seed))
    print(search.report(time.perf_counter() - began_at))
    assert not search.differences, "\n\n".join(search.differences)
    assert not search.unfinished, "\n".join(search.unfinished)


@pytest.mark.soak
def test_the_seeds_draw_every_construct() -> None:
    """Without Spark: 500 seeds have every construct, and each seed another definition."""
    cases = [case_of(seed) for seed in range(500)]
    assert len({repr(case) for case in cases}) > 490
    assert len(set().union(*map(constructs_of, cases))) >= 60
