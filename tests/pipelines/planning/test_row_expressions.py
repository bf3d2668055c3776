"""Expressions outside of SQL steps have one value for each row, which depends on that row alone."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, k STRING, n BIGINT, r ARRAY<BIGINT>", columns: {more: n + 1}}
  t: {files: {path: t.csv, format: csv}, schema: "id BIGINT"}
"""
OVER = "row_number() over (order by id)"


def errors(text: str, head: str = HEAD, engine: Engine | None = None) -> list[str]:
    return [each for each in reported_for(text, head=head, engine=engine) if each.startswith("error")]


@pytest.mark.parametrize(
    "ends",
    [
        f"sinks: {{o: {{from: a, topic: o, key: '{OVER}'}}}}",
        f"sinks: {{o: {{from: a, topic: o, headers: {{h: '1 + {OVER}'}}}}}}",
        f"sinks: {{o: {{from: a, topic: o, format: text, value: '{OVER}'}}}}",
        f"sinks: {{o: {{from: a, topic: o, key: id, deletes: '{OVER} = 1'}}}}",
        f"sinks: {{o: {{from: a, table: o, changes: {{key: [id], sequence: n, deletes: '{OVER} = 1'}}}}}}",
        f"steps: {{s: {{sql: select id from a, expect: {{e: '{OVER} < 3'}}}}}}\nsinks: {{o: {{from: s, topic: o}}}}",
    ],
)
def test_over_is_refused_where_it_would_see_one_batch_only(ends: str) -> None:
    assert [each for each in errors(ends) if "uses OVER, which would be computed over the rows of each batch" in each]
    assert errors(ends, engine=Engine.BATCH) == []


def test_over_is_refused_in_columns_of_sources() -> None:
    head = HEAD.replace("n + 1", OVER)
    assert [
        each for each in errors("sinks: {o: {from: a, topic: o}}", head) if "column 'more' of source 'a' uses" in each
    ]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("sinks: {o: {from: a, topic: o, key: (select max(id) from t)}}", "key of sink 'o': a subquery is used"),
        ("sinks: {o: {from: a, topic: o, key: explode(r)}}", "key of sink 'o': explode returns several rows"),
        ("steps: {s: {sql: select id from a, expect: {e: id in (select id from t)}}}\nsinks: {o: {from: s, table: o}}",
         "expectation 'e' of step 's': a subquery is used outside"),
        ("sinks: {o: {from: a, topic: o, key: id, deletes: n}}", "deletes of sink 'o' is BIGINT, not a condition"),
        ("sinks: {o: {from: a, table: o, changes: {key: [id], sequence: n, deletes: n}}}", "'o' is BIGINT, not a cond"),
        ("sinks: {o: {from: a, table: o, changes: {key: [id], sequence: ID}}}", "has 'ID' in its key"),
    ],
)  # fmt: skip
def test_what_has_no_value_for_a_row_is_refused(ends: str, said: str) -> None:
    found = errors(ends)
    assert [each for each in found if said in each and "; " in each], found
