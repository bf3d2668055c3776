"""Sinks and views of a query with two columns of one name."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, k STRING, n BIGINT"}
  t: {files: {path: t.csv, format: csv}, schema: "id BIGINT, label STRING"}
"""


def errors(sql: str, end: str) -> list[str]:
    found = reported_for(f"steps: {{s: {{sql: '{sql}'}}}}\n{end}", head=HEAD)
    return [each for each in found if each.startswith("error")]


@pytest.mark.parametrize(
    "sql",
    [
        "select a.*, t.* from a join t on a.id = t.id",
        "select * from a join t on a.id = t.id",
        "select id, n as ID from a",
        "with x as (select a.*, t.id as other from a join t on a.id = t.id) select x.*, x.other from x",
        "select a.*, id from a union all select a.*, id from a",
    ],
)
@pytest.mark.parametrize(
    "end", ["sinks: {o: {from: s, topic: o}}", "sinks: {o: {from: s, table: o}}", "views: {o: {from: s, key: [k]}}"]
)
def test_two_columns_of_one_name_are_not_written(sql: str, end: str) -> None:
    found = errors(sql, end)
    assert [each for each in found if "step 's' has two columns 'id'" in each or "columns 'other'" in each], found


@pytest.mark.parametrize(
    ("sql", "end"),
    [
        ("select a.*, t.label from a join t on a.id = t.id", "sinks: {o: {from: s, topic: o}}"),
        ("select * from a join t using (id)", "sinks: {o: {from: s, topic: o}}"),
        ("select * from a left semi join t on a.id = t.id", "sinks: {o: {from: s, topic: o}}"),
        ("select a.*, _key from a", "sinks: {o: {from: s, topic: o}}"),
        ("select a.*, t.* from a join t on a.id = t.id", "sinks: {o: {from: s, topic: o, value: [label]}}"),
        ("select a.*, t.* except (id) from a join t on a.id = t.id", "sinks: {o: {from: s, topic: o}}"),
    ],
)
def test_columns_of_different_names_are_written(sql: str, end: str) -> None:
    assert errors(sql, end) == []
