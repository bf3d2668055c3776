"""The tables and columns of queries; no SQL makes the analysis fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition.column_types import Column, Primitive, Struct
from odradek.pipelines.definition.sql_columns import query_columns, unknown_columns, unknown_in_expression
from odradek.pipelines.definition.sql_text import SqlError, is_aggregation, parse_expression, parse_query, tables_read
from odradek.pipelines.definition.table_columns import Columns

INNER = Struct((Column("x", Primitive("INT")), Column("y", Primitive("INT"))))
TABLES = {
    "t": Columns({"a": Primitive("INT"), "b": Primitive("STRING"), "s": INNER}),
    "u": Columns({"a": Primitive("INT"), "c": None}),
    "dark": None,
}


def look(name: str) -> Columns | None:
    return TABLES.get(name.lower())


def names(sql: str) -> list[str] | None:
    found = query_columns(parse_query(sql), look)
    return None if found is None else found.names


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a, b as bee, upper(b) up from t", ["a", "bee", "up"]),
        ("select * from t", ["a", "b", "s"]),
        ("select s.* from t", ["x", "y"]),
        ("select q.s.x from t q", ["x"]),
        ("select q.* from t q join u on q.a = u.a", ["a", "b", "s"]),
        ("select * from t join u using (a)", ["a", "b", "s", "c"]),
        ("select * except (s) from t", ["a", "b"]),
        ("with q as (select s as z from t) select z.* from q", ["x", "y"]),
        ("select * from (select b from t)", ["b"]),
        ("select a from t union all select c from u", ["a"]),
        ("select posexplode(array(1)) as (i, v) from t", ["i", "v"]),
        ("from t select b", ["b"]),
        ("select *, a + 1 as next from t", ["a", "b", "s", "next"]),
        ("select * from dark", None),
        ("select a + 1 from t", None),
        ("select *, i from t lateral view explode(array(1)) l as i", None),
        ("select dark.* from t join dark", None),
        ("with q(z) as (select a from t) select * from q", None),
        ("select * from t pivot (sum(a) for b in ('x'))", None),
    ],
)
def test_columns_of_a_query(sql: str, expected: list[str] | None) -> None:
    assert names(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", []),
        ("select * from t join U on true", ["t", "U"]),
        ("with t as (select * from u) select * from t", ["u"]),
        ("select * from db.t", ["db.t"]),
        ("select * from range(3)", []),
        ("select (select max(a) from u) m from t where a in (select a from dark)", ["u", "t", "dark"]),
    ],
)
def test_tables_that_a_query_reads(sql: str, expected: list[str]) -> None:
    assert [each.name for each in tables_read(parse_query(sql))] == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a from t", False),
        ("select distinct a from t", True),
        ("select count(*) from t", True),
        ("select a from t group by a", True),
        ("select sum(a) over (partition by b) from t", False),
        ("select a from (select max(a) a from t)", True),
    ],
)
def test_aggregations_are_reported_from_the_rest(sql: str, expected: bool) -> None:
    assert is_aggregation(parse_query(sql)) is expected


def test_places_of_unknown_columns() -> None:
    (found,) = unknown_columns(parse_query("select a,\n       s.zz\nfrom t"), look)
    assert (found.name, found.line, found.column, found.known) == ("zz", 2, 10, ("x", "y"))


WORDS = st.sampled_from([
    "select", "from", "where", "group by", "order by", "having", "union all", "join", "lateral view explode(", "over",
    "partition by", "with", "as", "t", "u", "dark", "a", "b", "s.x", "t.*", "*", "q", "(", ")", ",", ".", "'x'",
    "`a b`", "1", "+", "=", "->", "case when", "then", "end", "null", "distinct", "pivot (", "values", "on", "using",
    "count(", "sum(", "window(", "window", "limit", "cast(", "array(", "struct(", "exists(", "interval", "between",
    "and", "in (", "not", "${v}", ";", "--", "/*", "*/", "[", "]", "{", "}", ":", "::", "?", "@", "\n",
])  # fmt: skip


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_no_query_breaks_the_looking(text: str) -> None:
    try:
        query = parse_query("select " + text)
    except SqlError as error:
        assert error.line >= 1  # noqa: PT017 - both outcomes are fine, a crash is not
        return
    query_columns(query, look)
    list(unknown_columns(query, look))
    tables_read(query)
    is_aggregation(query)


@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_no_expression_breaks_the_looking(text: str) -> None:
    try:
        expression = parse_expression(text)
    except SqlError as error:
        assert error.column >= 1  # noqa: PT017
        return
    list(unknown_in_expression(expression, Columns({"a": None})))
