"""Spark's verdicts are those recorded, and hold for newly generated queries."""

from __future__ import annotations

import os

import pyspark
import pytest

from tests.pipelines.analysis.corpus import TABLES
from tests.pipelines.analysis.generated import generated
from tests.pipelines.analysis.record_verdicts import read_verdicts
from tests.pipelines.analysis.spark_answers import create_tables, plain_session, refusal
from tests.pipelines.analysis.test_verdicts import found_in

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1800)]


def test_the_recorded_verdicts_and_new_queries() -> None:
    seed = int(os.environ.get("ANALYSIS_SEED", "1"))
    with plain_session() as session:
        create_tables(session, TABLES)
        recorded = {query: verdicts[pyspark.__version__] for query, verdicts in read_verdicts().items()}
        assert {query: refusal(session, query) for query in recorded} == recorded
        drawn = generated(2000, seed)
        alarms = [query for query in drawn if found_in(query) and refusal(session, query) is None]
    assert alarms == [], f"seed {seed}"
