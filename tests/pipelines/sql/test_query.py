"""What one SELECT has, and where it is."""

from __future__ import annotations

import pytest

from odradek.pipelines.sql.query import Join, Query
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
    ("select", "names", "texts"),
    [
        ("k", ["k"], ["k"]),
        ("k as x, n + 1 y, upper( k )", ["x", "y", ""], ["k", "n + 1", "upper( k )"]),
        ("a.b.c, s.k, (n), cast(n as int), n::int", ["c", "k", "n", "n", "n"], None),
        ("a.b.c + 1, struct(k).col1, l[0], 1, current_date, cast(n + 1 as int)", [""] * 6, None),
        (
            "case when n > 1 then k end as x, a.`b`.c `the end`",
            ["x", "the end"],
            ["case when n > 1 then k end", "a.`b`.c"],
        ),
        ("/*+ broadcast(s) */ k, -- a, b\n n", ["k", "n"], ["k", "n"]),
        ("'a, b', map('x', array(1, 2)) m", ["", "m"], ["'a, b'", "map('x', array(1, 2))"]),
        ("n as offset, offset as `limit`", ["offset", "limit"], ["n", "offset"]),
        ("n is distinct from offset as x, k", ["x", "k"], ["n is distinct from offset", "k"]),
        ("transform(l, (x, i) -> x + i) as y", ["y"], ["transform(l, (x, i) -> x + i)"]),
    ],
)
def test_items_have_names_and_the_text_of_their_expressions(
    select: str, names: list[str], texts: list[str] | None
) -> None:
    query = read(f"select {select} from s", **TABLES)
    assert [each.name for each in query.items] == names
    assert texts is None or [query.text(each.span) for each in query.items] == texts


def test_generators_have_several_names() -> None:
    query = read("select posexplode(l) as (i, x), json_tuple(k, 'a') (b), explode(l) e from s", **TABLES)
    assert [each.names for each in query.items] == [("i", "x"), ("b",), ("e",)]
    assert query.text(query.items[1].span) == "json_tuple(k, 'a')"


def test_stars_say_whose_columns_they_are() -> None:
    query = read("select *, s.*, a.* except (k), * except (n, at) from s", **TABLES)
    assert [(each.star_of, each.excepted) for each in query.items] == [
        ("", ()), ("s", ()), ("a", ("k",)), ("", ("n", "at")),
    ]  # fmt: skip


def test_tables_have_their_joins() -> None:
    query = read(
        "with p as (select * from t) select * from s as x left join p on x.k = p.k and left(x.k, 1) = 'a' "
        "inner join t using (k, at) left semi join db.u on true, v cross join w full outer join y on a.left = y.k",
        **TABLES,
    )
    assert [(each.table, each.alias, each.join) for each in query.tables] == [
        ("s", "x", None), ("step__p", "p", Join.LEFT), ("t", "t", Join.INNER), ("db.u", "u", Join.SEMI),
        ("v", "v", Join.CROSS), ("w", "w", Join.CROSS), ("y", "y", Join.FULL),
    ]  # fmt: skip
    assert [query.text(each.span) for each in query.tables] == ["s", "p", "t", "db.u", "v", "w", "y"]
    assert [query.text(query.span(each.on)) for each in query.tables if each.on] == [
        "x.k = p.k and left(x.k, 1) = 'a'", "true", "a.left = y.k",
    ]  # fmt: skip
    assert query.tables[2].using == ("k", "at")


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


@pytest.mark.parametrize(
    ("group", "texts"),
    [
        ("k, n + 1", ["k", "n + 1"]),
        ("1, y", ["k", "n % 2"]),
        ("all", ["k", "n % 2"]),
        ("k, window(at, '1 hour')", ["k", "window(at, '1 hour')"]),
        ("n having z > 1", ["n"]),
    ],
)
def test_groups_are_resolved_to_expressions(group: str, texts: list[str]) -> None:
    query = read(f"select k, n % 2 as y, count(*) as z from s group by {group}", **TABLES)
    assert [query.text(each.span) for each in query.group] == texts


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


def test_names_that_are_calls_without_parentheses_are_calls_unless_they_are_columns() -> None:
    sql = "select current_date, 'current_timestamp', `user` from s"
    assert [each.name for each in read(sql, s="user STRING").calls] == ["current_date"]
    assert [each.name for each in read(sql, s="current_date DATE, user STRING").calls] == []


def test_a_column_with_the_name_of_a_function_gives_its_name_to_the_result() -> None:
    sql = "select user, current_date from s"
    assert [each.name for each in read(sql, s="user STRING").items] == ["user", ""]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("window(at, '1 hour 30 minutes')", ("window", "at")),
        ("k, window(s.at, '2 hours', '1 hour')", ("window", "at")),
        ("session_window(at, '5 minutes')", ("session_window", "at")),
        ("session_window(to_timestamp(k), if(n > 1, '1 day', k))", ("session_window", None)),
        ("w", ("window", "at")),
    ],
)
def test_the_window_of_groups_is_read(group: str, expected: tuple[object, ...]) -> None:
    select = "window(at, '1 hour') as w" if group == "w" else "k"
    found = read(f"select {select}, count(*) from s group by {group}", **TABLES).window
    assert found is not None
    assert (found.function, found.time) == expected


@pytest.mark.parametrize(
    ("sql", "clauses"),
    [
        ("select k from s where n > 1 group by k having count(*) > 1", set()),
        ("select s.k from s join t using (k) lateral view explode(l) x as c where c > 1", set()),
        ("select k from s order by k limit 3 offset 1", {"ORDER BY", "LIMIT", "OFFSET"}),
        ("select k from s distribute by k", {"DISTRIBUTE BY"}),
        ("select rank() over (partition by k order by n) as r from s qualify r = 1", {"OVER", "QUALIFY"}),
        ("select rank() over w from s window w as (partition by k)", {"OVER", "WINDOW"}),
        ("select k from s group by k with cube", {"CUBE"}),
        ("select * from (s join t on true)", {"parentheses around a join"}),
        ("select * from s, range(10)", {"a table function"}),
        ("select * from s x(a, b)", {"names for the columns of a table"}),
        ("select listagg(k, ',') within group (order by n) from s", {"WITHIN GROUP"}),
    ],
)
def test_clauses_that_are_not_row_by_row_are_named(sql: str, clauses: set[str]) -> None:
    assert read(sql, **TABLES).clauses == clauses


def test_spans_count_in_the_text_of_the_step() -> None:
    sql = "with p as (select k from s) select p.k from p where p.k > 1"
    query = read(sql, **TABLES)
    assert sql[slice(*query.items[0].span)] == "p.k"
    assert query.where is not None
    assert sql[slice(*query.where)] == "p.k > 1"


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
