"""Joins that real-time mode does not run are refused before Spark starts; it runs joins by equal columns."""

from __future__ import annotations

import json

import pytest

from tests.pipelines.definition.definitions import reported, reported_for
from tests.pipelines.realtime_queries import REFUSED, RUN, SCHEMAS

HEAD = f"""
pipeline: p
engine: realtime
sources:
  a: {{topic: a, schema: "{SCHEMAS["a"]}"}}
  t: {{files: {{path: t.json, format: json}}, schema: "{SCHEMAS["t"]}"}}
  u: {{files: {{path: u.json, format: json}}, schema: "{SCHEMAS["u"]}"}}
  v: {{files: {{path: v.json, format: json}}}}
"""
JOIN = "step 's': it joins without an equality of columns"
SUBQUERY = "step 's': it has a subquery that Spark does not join by equal columns"


def errors_of(sql: str, head: str = HEAD) -> list[str]:
    text = f"steps: {{s: {{sql: {json.dumps(sql)}}}}}\nsinks: {{o: {{from: s, topic: o}}}}\n"
    return [line for line in reported_for(text, head=head) if line.startswith("error")]


@pytest.mark.parametrize("sql", RUN)
def test_a_join_by_equal_columns_is_accepted(sql: str) -> None:
    assert errors_of(sql) == []


@pytest.mark.parametrize("sql", REFUSED)
def test_other_joins_are_refused(sql: str) -> None:
    errors = errors_of(sql)
    assert errors
    assert all(JOIN in line or SUBQUERY in line for line in errors), errors
    assert errors_of(sql, HEAD.replace("realtime", "standard")) == []


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select a.id from a join v on a.id = v.id", False),
        ("select a.id from a join v on a.id < v.id", True),
        ("select word from a join v on word = title", False),
        ("select a.id from a natural join v", False),
        ("select id from a where exists (select 1 from v where key = word)", False),
        ("select id from a where exists (select 1 from v where v.key < a.word)", True),
    ],
)
def test_a_column_of_a_table_without_a_schema_is_assumed_to_be_of_it(sql: str, is_refused: bool) -> None:
    assert bool(errors_of(sql)) is is_refused


def test_an_error_names_the_place_of_the_join_and_a_way_out() -> None:
    text = """steps:
  s:
    sql: |
      select a.id from a
      join t on a.id = t.id
      join u on a.id < u.uid
      where a.id not in (select id from t) or a.id = 9
sinks: {o: {from: s, topic: o}}
"""
    join, subquery = (line for line in reported(HEAD + text) if "error" in line)
    line = HEAD.count("\n") + 6
    assert join.startswith(f"{line}:12: error: the realtime engine cannot run {JOIN}")
    assert join.endswith("; add a condition such as a.id = b.id, or use engine: standard")
    assert subquery.startswith(f"{line + 1}:33: error: the realtime engine cannot run {SUBQUERY}")
    assert "; write [NOT] EXISTS (SELECT 1 FROM b WHERE b.id = a.id) or a join" in subquery
