"""Tokens, trees and syntax errors of SQL."""

from __future__ import annotations

import pytest

from odradek.pipelines.sql.text import (
    SqlError,
    exp,
    parse_any,
    parse_query,
    position,
    span_of,
    tables_of,
    tokens_of,
)

SELECT_AND_SINK = "write SELECT … FROM …, and a sink for where the rows go"


@pytest.mark.parametrize(
    ("text", "message", "offset", "hint"),
    [
        ("", "the SQL is empty", 0, "write SELECT … FROM …"),
        ("selct 1", "SQL must start with SELECT", 0, "did you mean 'select'?"),
        (
            "  insert into x select 1",
            "SQL must start with SELECT",
            2,
            "write SELECT … FROM …, and a sink for where the rows go",
        ),
        ("select 'abc", "unterminated '", 7, ""),
        ("select 'a' /* b", "unterminated /*", 11, ""),
        ("select a from b where", "the SQL is incomplete after 'where'", 16, ""),
        ("select a b c from t", "unexpected 'c'", 11, ""),
        ("select\n a:b.c from s", "unexpected '.'", 11, "of a VARIANT write variant_get(v, '$.a.b', 'int')"),
        ("select 1; select 2", "expected one query, found 2 statements", 0, ""),
        ("select 1 union all select 2", "expected one SELECT", 0, "write SELECT … FROM …"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(text: str, message: str, offset: int, hint: str) -> None:
    with pytest.raises(SqlError) as error:
        parse_query(text)
    assert (error.value.message, error.value.offset, error.value.hint) == (message, offset, hint)


@pytest.mark.parametrize(
    "expression",
    [
        "substring(a from 1 for 2)", "if(a, b, c)", "a::int", "current_date", "user", "window.end", "`user`", "'it''s'",
        r"r'\d'", "1L + 1.5D", "f(x => 1)", "transform(a, x -> x + 1)", "extract(year from at)", "a is distinct from b",
        "left(a, 1)", "exists(a, x -> x > 1)", "interval 1 hour 30 minutes", "count(distinct a, b)", "any(x)",
        "a like any ('x', 'y')", "timestamp '2026-01-01'", "percentile_cont(0.5) within group (order by a)",
    ],
)  # fmt: skip
def test_spark_expressions_are_read(expression: str) -> None:
    assert parse_query(f"select {expression} from t") is not None


def test_a_second_statement_is_refused_without_a_word_of_sqlglot(caplog: pytest.LogCaptureFixture) -> None:
    for text in ("select k; drop", "select 1; drop table t"):
        with pytest.raises(SqlError, match="expected one query, found 2 statements"):
            parse_query(text)
    assert caplog.records == []
    assert parse_query("select 1;;") is not None


def test_values_alone_are_a_query() -> None:
    assert tables_of(parse_any("values (1, 'a'), (2, 'b')")) == ()


def test_tokens_have_the_span_of_their_text() -> None:
    text = "select /* c */ a.end, 'window', `q``r` -- end\nfrom s"
    assert [text[each.start : each.end] for each in tokens_of(text)] == [
        "select", "a", ".", "end", ",", "'window'", ",", "`q``r`", "from", "s",
    ]  # fmt: skip


def test_tables_are_those_outside_the_query_itself() -> None:
    text = "with p as (select * from a) select * from p join b on p.k in (select k from c.d) join B on true"
    assert tables_of(parse_any(text)) == ("a", "b", "c.d", "B")


def test_a_span_covers_the_names_and_literals_of_a_tree() -> None:
    text = "select upper(a.b) + 1 as x from s"
    span = span_of(parse_query(text).expressions[0])
    assert span is not None
    assert text[slice(*span)] == "upper(a.b) + 1 as x"
    assert span_of(parse_query("select  null ").expressions[0]) == (8, 12)
    assert span_of(exp.Null()) is None


def test_a_position_counts_from_one() -> None:
    assert position("a\nbc", 0) == (1, 1)
    assert position("a\nbc", 3) == (2, 2)
