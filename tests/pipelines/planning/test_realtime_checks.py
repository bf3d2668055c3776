"""What the realtime engine cannot run is refused before Spark starts, in one message."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
engine: realtime
sources:
  a: {topic: a, schema: "id BIGINT, xs ARRAY<INT>"}
"""
TABLE = '  t: {files: {path: t.csv, format: csv}, schema: "id BIGINT, name STRING"}\n'
SINK = "sinks: {o: {from: s, topic: o}}\n"


def errors(text: str, head: str = HEAD) -> list[str]:
    return [line for line in reported_for(text, head=head) if line.startswith("error")]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("from: a, join: {table: t, on: [id], how: left}", "has a join"),
        ("sql: 'select a.id from a join t on a.id = t.id'", "has a join"),
        ("sql: 'select a.id from a, t where a.id = t.id'", "has a join"),
        ("sql: 'with q as (select id from a) select id from q'", "has WITH: write its queries as steps"),
        ("sql: 'select id from (select id from a)'", "has a subquery"),
        ("sql: 'select id from a where id in (select id from t)'", "has a subquery"),
        ("sql: 'select id from a union all select id from a'", "has UNION"),
        ("sql: 'select 1 as id'", "has no FROM"),
        ("sql: 'select id, explode(xs) as x from a'", "has explode() among its columns: write LATERAL VIEW"),
        ("sql: 'select id, count(*) as n from a group by id'", "aggregates records"),
        ("sql: 'select distinct id from a'", "aggregates records"),
        ("from: a, by: [id], aggregate: {n: count(*)}", "aggregates records"),
        ("from: a, deduplicate: {key: [id]}", "deduplicates records"),
        ("from: a, python: 'json:loads'", "is a Python function"),
        ("sql: 'select id, x from a lateral view explode(xs) as x'", None),
        ("sql: 'select id from a where id > 3', expect: {low: {check: id < 5, otherwise: fail}}", None),
    ],
)
def test_steps_that_do_not_work_row_by_row_are_refused(operation: str, reason: str | None) -> None:
    found = errors(f"{TABLE if ' t' in operation else ''}steps: {{s: {{{operation}}}}}\n{SINK}")
    said = [line for line in found if "the realtime engine cannot run step 's': it" in line]
    assert [f"it {reason}" in line for line in said] == [True] * (reason is not None), found


@pytest.mark.parametrize(
    "source",
    [
        'b: {topic: b, schema: "id BIGINT"}',
        TABLE.strip(),
        "f: {files: {path: f, format: csv}, schema: id INT, stream: true}",
    ],
)
def test_another_source_is_refused(source: str) -> None:
    found = errors("sinks: {o: {from: a, topic: o}}\n", head=f"{HEAD}  {source}\n")
    assert [line for line in found if f"source '{source[0]}': it is not the topic that this engine reads" in line], (
        found
    )


@pytest.mark.parametrize("target", ["console: true", "files: {path: o, format: json}", "table: o"])
def test_an_end_that_is_not_a_topic_is_refused(target: str) -> None:
    found = errors(f"warehouse: sqlite:///w.db\nsinks: {{o: {{from: a, {target}}}}}\n")
    assert [line for line in found if "sink 'o': it is not a topic" in line], found
