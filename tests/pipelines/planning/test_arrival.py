"""The order of arrival, by which a table without `order_by` keeps a row of each key."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for
from tests.pipelines.planning.test_query_checks import HEAD

STATIC_TOPIC = '  u: {topic: u, schema: "id BIGINT, name STRING", stream: false}\n'
TABLE = "warehouse: sqlite:///w.db\nsinks: {o: {from: s, table: o, key: [id]}}\n"


@pytest.mark.parametrize(
    ("steps", "is_refused"),
    [
        ("s: {sql: 'select a.id, name from a join u using (id)'}", False),
        ("v: {sql: 'select id, name from u'}, s: {sql: 'select a.id, name from a join v using (id)'}", False),
        ("s: {sql: 'select id, x from a where id in (select id from u)'}", False),
        ("s: {from: a, join: {table: u, on: [id]}}", False),
        ("s: {sql: 'select a.id, name from a join (select * from u) u using (id)'}", True),
    ],
)
def test_rows_joined_with_a_static_topic_keep_the_offset_of_the_stream(steps: str, is_refused: bool) -> None:
    lines = reported_for(f"steps: {{{steps}}}\n{TABLE}", head=HEAD + STATIC_TOPIC)
    assert [line for line in lines if "error" in line and "are not in the order of their arrival" not in line] == []
    assert bool([line for line in lines if "are not in the order of their arrival" in line]) is is_refused, lines


SPLIT = "select *, 'big' as kind from a where x > 1 union all select *, 'small' as kind from a where x <= 1"


def arrival_errors(steps: str, end: str = TABLE, head: str = HEAD) -> list[str]:
    """What is said of the order of rows; other errors fail the test."""
    lines = [line for line in reported_for(f"steps:\n{steps}{end}", head=head) if line.startswith("error")]
    found = [line for line in lines if "are not in the order of their arrival; " in line]
    assert found == lines, lines
    return found


def sql_step(sql: str) -> str:
    return f'  s: {{sql: "{sql}"}}\n'


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (SPLIT, False),
        ("select a.*, t.name from a join t using (id) union all select b.*, 'b' from b", False),
        ("select a.id, to_json(struct(a.*)) as j, t.name from a join t on a.id = t.id", True),
        ("select id, to_json(struct(v.*)) as j from a v", False),
        ("select id, to_json(struct(v.*)) as j from a v union all select id, 'b' from b", True),
    ],
)
def test_rows_have_an_offset_if_it_can_be_added_to_the_query(sql: str, is_refused: bool) -> None:
    assert len(arrival_errors(sql_step(sql))) == is_refused
    assert arrival_errors(sql_step(sql), TABLE.replace("[id]", "[id], order_by: id")) == []
