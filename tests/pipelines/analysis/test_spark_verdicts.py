"""Spark's verdicts are those recorded, and hold for newly generated queries."""

from __future__ import annotations

import os
from typing import Any

import pyspark
import pytest

from odradek.pipelines.definition.spark_functions import aggregate_names
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


def test_the_aggregate_functions_are_those_of_spark() -> None:
    """By the classes of the functions; some are made by a builder, whose class says nothing."""
    with plain_session() as session:
        java: Any = session._jvm
        kinds = [
            java.java.lang.Class.forName(f"org.apache.spark.sql.catalyst.expressions.{each}")
            for each in ("aggregate.AggregateFunction", "RuntimeReplaceableAggregate", "WindowFunction")
        ]
        listed = java.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.expressions().valuesIterator()
        found = set()
        while listed.hasNext():
            info = listed.next()._1()
            made = java.java.lang.Class.forName(info.getClassName())
            is_aggregate, is_replaced, is_window = (each.isAssignableFrom(made) for each in kinds)
            found |= {info.getName()} if (is_aggregate or is_replaced) and not is_window else set()
    assert found
    assert found <= aggregate_names()
