"""What one SELECT has, and where it is."""

from __future__ import annotations

import pytest

from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.text import SqlError
from tests.pipelines.sql.corpus import columns_of, parts, read

S = "k STRING, n BIGINT, at TIMESTAMP, day DATE, offset BIGINT, l ARRAY<INT>, a STRUCT<b: STRUCT<c: INT>, k: INT>"
TABLES = {"s": S, "t": "k STRING, m BIGINT, at TIMESTAMP, x STRING"}


def named(sql: str) -> list[str]:
    """The references of a query: the text, and what it stands for."""
    query = read(sql, **TABLES)
    return [
        f"{query.text(each.span)} = {'' if each.item is None else '(' + query.text(each.item.span) + ') '}"
        f"{each.table}:{'.'.join(each.parts)}"
        for each in sorted(query.references(), key=lambda each: each.span)
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select k, s.n, A.b.c from s", ["k = s:k", "s.n = s:n", "A.b.c = s:A.b.c"]),
        ("select x.k, k from s x", ["x.k = x:k", "k = x:k"]),
        ("select a.k, a.b from s a", ["a.k = a:k", "a.b = a:a.b"]),
        ("select s.k, m, s.z, z from s join t on s.k = t.k where t.n > 1", [
            "s.k = s:k", "m = t:m", "s.z = None:s.z", "z = None:z", "s.k = s:k", "t.k = t:k", "t.n = None:t.n",
        ]),
        ("select n + 1 as m, m * 2, n as at, at from s", ["n = s:n", "m = (n + 1) None:m", "n = s:n", "at = s:at"]),
        ("select a as q, q.b.c from s", ["a = s:a", "q.b.c = (a) None:q.b.c"]),
        ("select n as m from s where m > 1", ["n = s:n", "m = None:m"]),
        ("select date_add(day, 1, at), date_add(day, 1), day from s", ["at = s:at", "day = s:day", "day = s:day"]),
        ("select k, c, x.c, x.* from s lateral view explode(l) x as c", ["k = s:k", "c = x:c", "x.c = x:c", "l = s:l"]),
        ("select transform(l, x -> x + n), to_json(struct(*)), to_json(struct(s.*)), count(*) from s", [
            "l = s:l", "n = s:n", "* = None:*", "s.* = s:*",
        ]),
        ("select k, window.start, window from s group by k, window(at, '1 hour')", [
            "k = s:k", "window.start = window:start", "window = window:window", "k = s:k", "at = s:at",
        ]),
        ("select k from s where n in (select m from t where t.k = s.k) and exists (select 1)", ["k = s:k", "n = s:n"]),
        ("select k as x, sum(n) as m from s group by x having m > 1 and k <> 'a'", [
            "k = s:k", "n = s:n", "x = (k) None:x", "m = (sum(n)) None:m", "k = s:k",
        ]),
        ("select current_date, now() from s", ["current_date = None:current_date"]),
        ("select k, u.k, m as n, n from u", ["k = u:k", "u.k = u:k", "m = u:m", "n = (m) None:n"]),
        ("select k, m from u join t", ["k = t:k", "m = t:m"]),
    ],
)  # fmt: skip
def test_references_say_whose_column_they_name(sql: str, expected: list[str]) -> None:
    assert named(sql) == expected


def test_calls_have_their_arguments_and_their_parents() -> None:
    query = read(
        "select size(collect_set(n) filter (where n > 1)), count(distinct k, n), max_by(k, struct(at, n)) from s "
        "where n > (select max(m) from t)",
        **TABLES,
    )
    found = [(each.name, [query.text(span) for span in each.arguments], each.parent) for each in query.calls]
    assert found == [
        ("size", ["collect_set(n) filter (where n > 1)"], ""), ("collect_set", ["n"], "size"),
        ("count", ["k", "n"], ""), ("max_by", ["k", "struct(at, n)"], ""), ("struct", ["at", "n"], "max_by"),
        ("max", ["m"], ""),
    ]  # fmt: skip
    assert [each.is_distinct for each in query.calls] == [False, False, True, False, False, False]
    assert query.text(query.calls[1].filter or (0, 0)) == "n > 1"
    assert query.text(query.calls[1].span) == "collect_set(n) filter (where n > 1)"
    assert len(query.subqueries) == 1


def test_an_expression_has_spans_in_its_own_text() -> None:
    query = Query.of_expression("n + 1 -- one", "a table", lambda _: None)
    assert [each.span for each in query.references()] == [(0, 1)]
    assert query.items[0].span == (0, 5)
    with pytest.raises(SqlError) as error:
        Query.of_expression("n +", "s", lambda _: None)
    assert error.value.offset <= 4


def test_every_name_of_recorded_and_drawn_queries_has_the_span_of_its_text() -> None:
    for part in parts():
        query = Query(part, columns_of)
        for each in query.references():
            text = query.text(each.span).replace("`", "").replace(" ", "").lower()
            assert text.split(".")[-len(each.parts) :] == [name.lower() for name in each.parts]
