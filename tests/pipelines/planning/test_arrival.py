"""The order of arrival behind joins with tables that are topics."""

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
