"""Spark's functions, and those whose results depend on more than the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.pipelines.sql.functions import (
    CLOCK,
    MAY_FAIL,
    ORDERLESS_PARENTS,
    UNDETERMINED,
    Kind,
    kind_of,
    kinds,
    reads_clock,
    undetermined,
)

RECORDED = Path(__file__).with_name("recorded")
OPERATORS = {"and", "between", "in", "or"}  # which are never read as calls
# An aggregate that a version of Spark adds must be put here or among the undetermined ones.
DETERMINED = """
    any approx_count_distinct avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and
    bool_or corr count count_if covar_pop covar_samp every grouping grouping_id kurtosis max max_by mean measure
    median min min_by percentile percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop
    stddev_samp sum try_avg try_sum var_pop var_samp variance vector_avg vector_sum
"""


@pytest.mark.parametrize("file", sorted(RECORDED.glob("functions-*.json")), ids=lambda file: file.stem)
def test_all_functions_of_spark_are_known(file: Path) -> None:
    recorded = json.loads(file.read_text())
    assert recorded.keys() - kinds().keys() <= OPERATORS
    generators = {name for name, group in recorded.items() if group == "generator_funcs"}
    assert {kind_of(name) for name in generators} <= {Kind.GENERATOR, Kind.TABLE}
    aggregates = {name for name, group in recorded.items() if group == "agg_funcs"}
    assert {name for name in aggregates if kind_of(name) is not Kind.AGGREGATE} == set()


@pytest.mark.parametrize("name", ["mod", "LIKE", "ilike", "rlike", "div", "when", "try_cast", "timestampdiff"])
def test_functions_of_the_grammar_are_known(name: str) -> None:
    assert kind_of(name) is Kind.SCALAR


def test_every_name_that_the_rules_use_is_a_function() -> None:
    used = {*UNDETERMINED, *ORDERLESS_PARENTS, *CLOCK, *(name for name in MAY_FAIL if name.isidentifier())}
    assert {name for name in used if kind_of(name) is None} == set()


def test_every_aggregate_is_determined_or_not() -> None:
    aggregates = {name for name, kind in kinds().items() if kind is Kind.AGGREGATE}
    assert {name for name in aggregates if undetermined(name) is None} == set(DETERMINED.split())


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("first", "max_by(x, at) or min_by(x, at)"),
        ("approx_top_k", "an exact aggregate"),
        ("kll_sketch_agg_double", "an exact aggregate"),
        ("java_method", "a Python step"),
        ("reflect", "a Python step"),
        ("rand", "xxhash64"),
        ("monotonically_increasing_id", "offset"),
        ("mode", "by: [x]"),
    ],
)
def test_what_the_rows_do_not_determine_has_a_better_spelling(name: str, advice: str) -> None:
    assert advice in (undetermined(name) or "")


@pytest.mark.parametrize(
    ("name", "parent", "is_determined"),
    [
        ("collect_list", "", False),
        ("collect_list", "sort_array", True),
        ("collect_set", "size", True),
        ("array_agg", "array_contains", True),
        ("collect_list", "array_join", False),
        ("first", "size", False),
        ("hll_sketch_estimate", "", True),
        ("hll_sketch_agg", "", False),
    ],
)
def test_lists_are_determined_where_their_order_does_not_matter(name: str, parent: str, is_determined: bool) -> None:
    assert (undetermined(name, parent) is None) is is_determined


def test_clocks_are_known() -> None:
    assert reads_clock("now", 0)
    assert reads_clock("unix_timestamp", 0)
    assert not reads_clock("unix_timestamp", 1)
