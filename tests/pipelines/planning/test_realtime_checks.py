"""What the realtime engine cannot run is refused before Spark starts."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
engine: realtime
sources:
  a: {topic: a, schema: "id BIGINT, xs ARRAY<INT>"}
  t: {files: {path: t.csv, format: csv}, schema: "id BIGINT, name STRING"}
"""
SINK = "sinks: {o: {from: s, topic: o}}\n"


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("from: a, join: {table: t, on: [id], how: left}", "step 's' has a join"),
        ("sql: 'select a.id from a join t on a.id = t.id'", "step 's' has a join, a union or a subquery"),
        ("sql: 'with q as (select id from a) select id from q'", "step 's' has a join, a union or a subquery"),
        ("sql: 'select id from a where id in (select id from t)'", "step 's' has a join, a union or a subquery"),
        ("sql: 'select id, explode(xs) as x from a'", "step 's' has explode() among its columns"),
        ("sql: 'select id, x from a lateral view explode(xs) as x'", None),
        ("sql: 'select id from a where id > 3'", None),
    ],
)
def test_a_row_that_stops_the_pipeline_needs_one_pass(operation: str, reason: str | None) -> None:
    expect = "expect: {low: {check: id < 5, otherwise: OTHERWISE}}"
    text = f"steps: {{s: {{{operation}, {expect}}}}}\n{SINK}"
    errors = [line for line in reported_for(text.replace("OTHERWISE", "fail"), head=HEAD) if line.startswith("error")]
    said = "the realtime engine cannot stop at rows of step 's' that do not meet 'low'"
    assert [f"{said}: {reason}, so" in line for line in errors] == [True] * (reason is not None), errors
    dropped = reported_for(text.replace("OTHERWISE", "drop"), head=HEAD)
    assert [line for line in dropped if line.startswith("error")] == []


@pytest.mark.parametrize(
    ("steps", "is_refused"),
    [
        ("s: {sql: 'select id from a where id > 1 union all select -id as id from a'}", True),
        ("q: {sql: 'select id from a'}, s: {sql: 'select id from q union all select -id as id from a'}", True),
        ("s: {sql: 'with c as (select id from a) select id from c union all select -id as id from c'}", True),
        ("s: {sql: 'with c as (select id from a) select id from c'}", False),
        ("s: {sql: 'select id from a union all select id from b'}", False),
        ("s: {sql: 'select a.id from a join t on a.id = t.id where a.id not in (select id from t)'}", False),
    ],
)
def test_a_union_of_one_stream_is_refused(steps: str, is_refused: bool) -> None:
    head = HEAD + '  b: {topic: b, schema: "id BIGINT"}\n'
    errors = [line for line in reported_for(f"steps: {{{steps}}}\n{SINK}", head=head) if line.startswith("error")]
    assert ["cannot run step 's': it reads the stream 'a' twice" in line for line in errors] == [True] * is_refused


def test_two_streams_are_two_branches() -> None:
    head = HEAD + '  b: {topic: b, schema: "id BIGINT"}\n'
    step = "steps: {s: {sql: 'select id from a', expect: {low: {check: id < 5, otherwise: fail}}}}\n"
    text = f"{step}sinks: {{o: {{from: s, topic: o}}, p: {{from: b, topic: p}}}}\n"
    assert [line for line in reported_for(text, head=head) if "it reads the streams a and b" in line]
