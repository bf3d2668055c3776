"""Queries that people may write are read, but for a few, each with its reason."""

from __future__ import annotations

import pytest

from odradek.pipelines.sql.blocks import blocks_of
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.text import SqlError
from tests.pipelines.sql.corpus import columns_of, hand_written

NOT_READ = {
    "select id from orders intersect select name from customers": "INTERSECT",
    "select id from orders except select tags from customers": "EXCEPT",
    "with t(a, b) as (select id, customer from orders) select a, upper(b) from t": "WITH t(…)",
}


def reason(sql: str) -> str | None:
    """Why a query over streams is not read."""
    try:
        for block in blocks_of("step", sql):
            for part in block.parts:
                Query(part, columns_of)
    except SqlError as error:
        return error.message
    return None


def test_recorded_queries_are_read_over_streams() -> None:
    written = hand_written()
    assert len(written) > 500
    assert {sql: why for sql in written if (why := reason(sql)) is not None} == NOT_READ


def test_recorded_queries_are_read_over_static_tables() -> None:
    for sql in hand_written():
        (block,) = blocks_of("step", sql, lambda _: False)
        assert block.is_static
        assert block.parts[0].text == sql


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("v:b.c", "unexpected '.'"),
        ("v:b[0]::int", "unexpected '['"),
    ],
)
def test_spellings_that_spark_reads_and_sqlglot_does_not(expression: str, why: str) -> None:
    assert reason(f"select {expression} from orders") == why
