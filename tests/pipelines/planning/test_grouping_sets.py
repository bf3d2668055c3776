"""Expressions of GROUP BY that are null in the groups of some grouping set."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.planning.grouping_sets import partial_expressions


@pytest.mark.parametrize(
    ("groups", "partial"),
    [
        ("", []),
        ("group by a, b", []),
        ("group by all", []),
        ("group by a, rollup(b, c)", ["b", "c"]),
        ("group by rollup(1, d), b", ["a", "c + 1"]),
        ("group by cube((a, B), t.c), T.b", ["a", "t.c"]),
        ("group by a, b with cube", ["a", "b"]),
        ("group by grouping sets ((a, b), a, (c, a))", ["b", "c"]),
        ("group by grouping sets (a, ())", ["a"]),
        ("group by a, b grouping sets ((a, b), (a))", ["b", "b"]),
        ("group by grouping sets (grouping sets ((a, b), (a)), (a, c))", ["b", "c"]),
    ],
)
def test_expressions_that_each_set_has_are_not_partial(groups: str, partial: list[str]) -> None:
    query = parse_query(f"select a, c + 1 as d, count(*) n from t {groups}")
    assert [each.sql() for each in partial_expressions(query, ("t",))] == partial


def test_columns_of_several_tables_are_told_apart() -> None:
    query = parse_query("select count(*) n from t join u on t.a = u.a group by t.a, rollup(u.a)")
    assert [each.sql() for each in partial_expressions(query, ("t", "u"))] == ["u.a"]
