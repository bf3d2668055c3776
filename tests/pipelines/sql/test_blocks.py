"""Queries of WITH and FROM and the parts of UNION ALL, cut out of the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipelines.sql.blocks import blocks_of
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.text import SqlError, parse_query, tokens_of
from tests.pipelines.sql.corpus import columns_of, queries


def outline(sql: str, streams: str = "s t u") -> dict[str, list[str]]:
    """The names of the blocks with the texts of their parts, in which hidden tables stand for the names of queries."""
    made = {}
    for block in blocks_of("step", sql, lambda name: name in streams.split()):
        made[block.name + (" static" if block.is_static else "")] = [
            " ".join(part.renamed.get(word.strip("`").lower(), word) for word in part.text.split())
            for part in block.parts
        ]
    return made


@pytest.mark.parametrize(
    ("sql", "blocks"),
    [
        ("select * from s", {"step": ["select * from s"]}),
        ("((select 1 from s));", {"step": ["select 1 from s"]}),
        (
            "select 1 from s union all (select 2 from t union all (select 3 from u))",
            {"step": ["select 1 from s", "select 2 from t", "select 3 from u"]},
        ),
        (
            "with p as (select 1 from s), q as (select 2 from p) select * from q",
            {"step__p": ["select 1 from s"], "step__q": ["select 2 from step__p"], "step": ["select * from step__q"]},
        ),
        (
            "select * from (select 1 from s)x join (select 2 from t union all select 3 from u) y on true",
            {
                "step__x": ["select 1 from s"],
                "step__y": ["select 2 from t", "select 3 from u"],
                "step": ["select * from `q14____________`x join step__y y on true"],
            },
        ),
        (
            "select * from s, (((select 1 from t))) where k in (select k from (select 1))",
            {
                "step__1": ["select 1 from t"],
                "step": ["select * from s, step__1 where k in (select k from (select 1))"],
            },
        ),
        (
            "with p as (select 1 from s) select * from (with p as (select 2 from t) select * from p) join p",
            {
                "step__p": ["select 1 from s"],
                "step__p_": ["select 2 from t"],
                "step__2": ["select * from step__p_"],
                "step": ["select * from step__2 join step__p"],
            },
        ),
        (
            "with s as (select * from s) select * from s",
            {"step__s": ["select * from s"], "step": ["select * from step__s"]},
        ),
        (
            "with p as (select 1 from k) select * from p",
            {"step static": ["with p as (select 1 from k) select * from p"]},
        ),
        (
            "with p as (select 1 from k union select 2) select * from p join s on a = k",
            {"step__p static": ["select 1 from k union select 2"], "step": ["select * from step__p join s on a = k"]},
        ),
        (
            "select * from s join (values (1, 2)) v on true",
            {"step__v static": ["values (1, 2)"], "step": ["select * from s join step__v v on true"]},
        ),
        ("select * except (a) from s", {"step": ["select * except (a) from s"]}),
        ("select s.* except (a), s.end from s", {"step": ["select s.* except (a), s.end from s"]}),
        ("select a is distinct from (select 1) from s", {"step": ["select a is distinct from (select 1) from s"]}),
        ("select case when a then b end from s", {"step": ["select case when a then b end from s"]}),
    ],
)
def test_queries_become_blocks(sql: str, blocks: dict[str, list[str]]) -> None:
    assert outline(sql) == blocks


@pytest.mark.parametrize(
    ("sql", "offset"),
    [("", 0), ("select a from s join (select 1 from t", 36), ("select * from s; select 1", 0), ("from s select 1", 0)],
)
def test_an_error_has_its_place_in_the_text_of_the_step(sql: str, offset: int) -> None:
    with pytest.raises(SqlError) as error:
        blocks_of("step", sql)
    assert error.value.offset == offset


def test_parts_of_recorded_and_drawn_queries_are_single_selects_at_their_positions() -> None:
    for sql in queries():
        blocks = blocks_of("step", sql)
        assert blocks[-1].name == "step"
        for part in (part for block in blocks for part in block.parts):
            parse_query(part.text)
            for token in tokens_of(part.text):
                text = part.text[token.start : token.end]
                assert token.text in part.renamed or sql[part.start + token.start :].startswith(text)


WORDS = (
    "select", "from", "where", "group by", "having", "union all", "union", "except", "with", "as", "(", ")", ",", ".",
    "*", "join", "on", "using", "left", "semi", "lateral view", "explode", "count", "distinct", "window", "case",
    "when", "then", "end", "and", "between", "in", "s", "t", "k", "v", "1", "'x'", "=", "+", "[", "]", "->", "::int",
    "interval", "`q r`", "order by", "limit", "over", "filter", "--c\n", "/* c */", "current_date", "not", "null",
    "offset", ";",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_text_is_read_or_refused(words: list[str]) -> None:
    sql = "select k from s " + " ".join(words)
    try:
        for part in (part for block in blocks_of("step", sql) for part in block.parts):
            query = Query(part, columns_of)
            assert len(query.items) == len(query.tree.expressions)
    except SqlError as error:
        offset = error.offset
    else:
        offset = 0
    assert 0 <= offset <= len(sql)
