"""Each function of Spark is either refused, or has the same result in one pass as in plain Spark SQL."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from odradek.pipelines.spark.one_pass.expressions import INFIX_WORDS, parse_expression
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.one_pass.safe_functions import CLOCK, SAFE_FUNCTIONS
from tests.pipelines.spark.one_pass.lifting import lifted, plain, results
from tests.pipelines.spark.one_pass.recording import FILE, is_same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Call(NamedTuple):
    """An expression over the columns c0, c1, …, and their literals."""

    text: str
    values: list[str]


pytestmark = pytest.mark.spark

CALLS = {name: Call(each["call"], each["values"]) for name, each in json.loads(FILE.read_text()).items()}
CLOCKS = set(CLOCK.split())
UNSAFE_GROUPS = ("agg_funcs", "generator_funcs", "window_funcs")
GRAMMAR = {*INFIX_WORDS, "case", "in", "not"}  # operators, of which the function list has some
CHUNK = 100


def functions_of(session: SparkSession) -> set[str]:
    return {row[0] for row in session.sql("show functions").collect()}


def test_each_safe_function_is_called_or_a_clock(spark: SparkSession) -> None:
    assert SAFE_FUNCTIONS & functions_of(spark) - CLOCKS - set(CALLS) == set()


def test_safe_functions_are_neither_aggregates_nor_generators(spark: SparkSession) -> None:
    catalog = spark._jsparkSession.sessionState().catalog()
    assert spark._jvm is not None
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    for name in SAFE_FUNCTIONS & functions_of(spark):
        info = catalog.lookupFunctionInfo(identifier(name))
        assert info.getGroup() not in UNSAFE_GROUPS, name


def test_other_functions_are_refused(spark: SparkSession) -> None:
    others = functions_of(spark) - SAFE_FUNCTIONS - GRAMMAR
    for name in others:
        if name.isidentifier():
            with pytest.raises(NotLiftable):
                parse_expression(f"{name}(a)")


def test_functions_have_the_same_results_in_one_pass(spark: SparkSession) -> None:
    names = sorted(functions_of(spark) & set(CALLS))
    for start in range(0, len(names), CHUNK):
        columns, calls = [], []
        for name in names[start : start + CHUNK]:
            text, values = CALLS[name]
            for number in reversed(range(len(values))):
                columns.append(f"{values[number]} as {name}_{number}")
                text = re.sub(rf"\bc{number}\b", f"{name}_{number}", text)
            calls.append(f"{text} as {name}_")
        frame = spark.sql(f"select {', '.join(columns)}").coalesce(1)
        query = f"select {', '.join(calls)} from readings"
        expected = plain(frame, query)
        assert expected._jdf.queryExecution().analyzed().deterministic()
        assert results(lifted(frame, query)) == results(expected)


@pytest.mark.parametrize("name", sorted(CLOCKS & {"now", "current_date", "localtimestamp"}))
def test_the_clock_is_the_same_in_all_columns(spark: SparkSession, name: str) -> None:
    queries = f"select {name}() as a, id from readings", f"select a, {name}() as b from step0"
    assert all(row.a == row.b for row in lifted(spark.range(3), *queries).collect())


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_each_function_has_the_same_result_alone(spark: SparkSession) -> None:
    different = [name for name, call in CALLS.items() if name in functions_of(spark) and not is_same(spark, *call)]
    assert different == []
