"""What a query over streams is."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.sql.blocks import blocks_of
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.joins import Bound, Pairs
from odradek.pipelines.sql.query import Join, Query
from odradek.pipelines.sql.shapes import Refused, Rows, Shape, shape_of
from tests.pipelines.sql.corpus import columns_of as known_columns
from tests.pipelines.sql.corpus import parts

STREAMS = {
    "s": "k STRING, n BIGINT, at TIMESTAMP, l ARRAY<INT>, a STRUCT<b: INT>",
    "t": "k STRING, m BIGINT, at TIMESTAMP, until TIMESTAMP",
    "u": "k STRING, at TIMESTAMP",
    "unknown": None,
}
TABLES = {"d": "k STRING, name STRING", "e": "k STRING, x INT"}


def columns_of(name: str) -> Columns | None:
    ddl = {**STREAMS, **TABLES}.get(name)
    return None if ddl is None else Columns({each.name: each.type for each in parse_ddl(ddl)})


def shape(sql: str) -> Shape:
    """The shape of the last block of a query; the blocks before it are streams without event time."""
    *hidden, block = blocks_of("step", sql, lambda name: name in STREAMS)
    times = dict.fromkeys((*STREAMS, *(each.name.lower() for each in hidden)), "at")
    return shape_of(Query(block.parts[-1], columns_of), times)


@pytest.mark.parametrize(
    ("sql", "streams", "tables", "is_plain"),
    [
        ("select * from s", "s", "", True),
        ("select k, n + 1 as m, m * 2 from s where n > 1", "s", "", True),
        ("select k, explode(l) as x from s", "s", "", True),
        ("select k, x from s lateral view outer explode(l) v as x", "s", "", False),
        ("select k, explode_outer(l) as x from s", "s", "", False),
        ("select k, inline(l) from s", "s", "", False),
        ("select k, stack(2, k, n) from s", "s", "", False),
        ("select k, x from s lateral view stack(2, 'a', 'b') v as x", "s", "", True),
        ("select k, x from s lateral view stack(3, 'a', 'b') v as x", "s", "", False),
        ("select k, size(array(explode(l))) as x from s", "s", "", False),
        ("select k, explode(map(k, n)) as (a, b), posexplode(l) from s", "s", "", False),
        ("select k, x, y from s lateral view explode(l) as x lateral view explode(l) as y", "s", "", False),
        ("select window(at, '1 hour') as w from s", "s", "", False),
        ("select * from s where k in (select k from d)", "s", "d", False),
        ("select *, (select max(x) from e where e.k = s.k) as x from s", "s", "e", False),
        ("select * from s join d using (k)", "s", "d", False),
        ("select * from s, d, e where s.k = d.k and d.k = e.k", "s", "d e", False),
        ("select * from s left join d on s.k = d.k left anti join e on s.k = e.k", "s", "d e", False),
        ("select * from d right join s on s.k = d.k", "s", "d", False),
        ("select * from d full join e using (k) join s using (k)", "s", "d e", False),
        ("select k from s union all select k from t", "t", "", True),
        ("with p as (select k, count(*) from s group by k) select * from p", "step__p", "", True),
        ("select * from (select k, count(*) from s group by k)", "step__1", "", True),
        ("select /*+ repartition(3) */ * from s", "s", "", False),
    ],
)
def test_a_select_without_state_is_row_by_row(sql: str, streams: str, tables: str, is_plain: bool) -> None:
    assert shape(sql) == Rows(tuple(streams.split()), tuple(tables.split()), (), is_plain)


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("condition", "keys", "low", "high", "residual"),
    [
        ("on s.k = t.k and s.at = t.at", [("k", "k"), ("at", "at")], 0, 0, []),
        ("using (k, at)", [("k", "k"), ("at", "at")], 0, 0, []),
        ("on t.k = s.k and t.at between s.at and s.at + interval 1 hour", [("k", "k")], 0, HOUR, []),
        (
            "on n = m and ((t.at >= s.at - interval '2' hours) and (s.at + interval '30 minutes') >= t.at)",
            [("n", "m")],
            -2 * HOUR,
            HOUR // 2,
            [],
        ),
        ("on s.k = t.k and t.at - s.at <= interval 1 hour 30 minutes", [("k", "k")], None, 3 * HOUR // 2, []),
        ("on s.k = t.k and s.at > t.at and s.at < t.at + interval 1 hour", [("k", "k")], (-HOUR,), (0,), []),
        (
            "on s.k = t.k and t.at > s.at and s.at + interval 2 days > t.at and s.at + interval 1 day > t.at",
            [("k", "k")],
            (0,),
            (24 * HOUR,),
            [],
        ),
        ("on s.k = t.k and s.at = t.at + interval 1 hour", [("k", "k")], -HOUR, -HOUR, []),
        ("on s.k = t.k", [("k", "k")], None, None, []),
        ("on true", [], None, None, ["true"]),
        ("on s.k = t.k and t.at between s.at and t.until", [("k", "k")], 0, None, ["t.at between s.at and t.until"]),
        (
            "on s.k = t.k and t.at not between s.at and s.at + interval 1 hour",
            [("k", "k")],
            None,
            None,
            ["t.at not between s.at and s.at + interval 1 hour"],
        ),
        (
            "on s.k = t.k and t.at < s.at + interval 1 month",
            [("k", "k")],
            None,
            None,
            ["t.at < s.at + interval 1 month"],
        ),
        ("on s.k = t.k and t.until > s.at", [("k", "k")], None, None, ["t.until > s.at"]),
        ("on s.k = t.k and t.at > s.at + s.at", [("k", "k")], None, None, ["t.at > s.at + s.at"]),
        ("on s.k <=> t.k and lower(s.k) = t.k", [], None, None, ["s.k <=> t.k", "lower(s.k) = t.k"]),
        ("on s.k = s.k and s.k = 'a' and s.a.b = m", [], None, None, ["s.k = s.k", "s.k = 'a'", "s.a.b = m"]),
        ("on s.k = t.k and (s.n > 1 or m > 1)", [("k", "k")], None, None, ["s.n > 1 or m > 1"]),
        ("on s.k = t.k or s.n = t.m and s.at = t.at", [], None, None, ["s.k = t.k or s.n = t.m and s.at = t.at"]),
        (
            "on case when n > 1 and m > 1 then true end and s.k = t.k",
            [("k", "k")],
            None,
            None,
            ["case when n > 1 and m > 1 then true end"],
        ),
        ("on not (s.k = t.k and n = m)", [], None, None, ["not (s.k = t.k and n = m)"]),
    ],
)
def test_conditions_of_a_join_of_streams_are_keys_bounds_and_others(
    condition: str,
    keys: list[tuple[str, str]],
    low: int | tuple[int] | None,
    high: int | tuple[int] | None,
    residual: list[str],
) -> None:
    sql = f"select s.k from s left join t {condition}"
    found = shape(sql)
    assert isinstance(found, Pairs)
    assert (found.left.table, found.right.table, found.how) == ("s", "t", Join.LEFT)
    assert list(found.keys) == keys
    assert (found.low, found.high) == (_bound(low), _bound(high))
    assert [sql[slice(*each)] for each in found.residual] == residual


def _bound(ms: int | tuple[int] | None) -> Bound | None:
    """A bound that is a tuple is open."""
    if ms is None:
        return None
    return Bound(ms[0], is_open=True) if isinstance(ms, tuple) else Bound(ms)


def test_where_behind_an_outer_join_is_no_condition_of_the_join() -> None:
    found = shape("select * from s left join t on s.k = t.k where s.at = t.at")
    assert isinstance(found, Pairs)
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize(
    ("sql", "clause", "at", "advice"),
    [
        ("select k from s sort by k", "SORT BY", "sort by", "query"),
        ("select k from s tablesample (10 percent)", "TABLESAMPLE", "tablesample", "pmod(xxhash64(id), 10) = 0"),
        (
            "select * from s qualify rank() over (partition by k, n order by at) <= 3",
            "QUALIFY",
            "qualify",
            "slice(sort_array(collect_list(struct(at, …)), false), 1, n)",
        ),
        ("select rank() over w from s window w as (partition by k)", "OVER", "over", "by: [k]"),
        ("select k from s group by k grouping sets ((k), ())", "GROUPING SETS", "grouping sets", "for each set"),
        ("select * from s pivot (sum(n) for k in ('a'))", "PIVOT", "pivot", "filter (where k = 'a')"),
        ("select * from s natural join t", "NATURAL JOIN", "natural", "USING"),
        ("select * from s, lateral (select 1)", "LATERAL (SELECT …)", "lateral", "LATERAL VIEW"),
        ("select first(k) ignore nulls from s group by n", "IGNORE NULLS", "ignore nulls", "max_by"),
        (
            "select * from s where k not in (select k from t)",
            "IN (SELECT …) of the stream 't'",
            "k from t",
            "how: left",
        ),
        (
            "select * from d where not exists (select 1 from s where s.k = d.k)",
            "EXISTS (SELECT …) of the stream 's'",
            "1 from s",
            "how: left",
        ),
        (
            "select (select max(m) from t) as m from s",
            "(SELECT …) of the stream 't'",
            "(select",
            "a step for its value",
        ),
        ("select count(*) from s join t using (k)", "a join and groups in one SELECT", "select", "FROM (SELECT"),
        (
            "select k, count(distinct n, at) from s group by k",
            "count(DISTINCT n, at)",
            "count(",
            "count(DISTINCT struct(n, at))",
        ),
        ("select count(distinct *) from s group by k", "count(DISTINCT *)", "count(", "count(DISTINCT struct(*))"),
        ("select k, sum(distinct n) from s group by k", "sum(DISTINCT n)", "sum(", "`deduplicate` before the step"),
        (
            "select count(*) from s group by window(at, '1 day'), session_window(at, '1 hour')",
            "session_window(at, '1 hour') beside another window, or in an expression",
            "session_window",
            "GROUP BY session_window(at, '1 hour')",
        ),
        (
            "select count(*) from s group by struct(window(at, '1 day'))",
            "window(at, '1 day') beside another window, or in an expression",
            "window",
            "GROUP BY window(at, '1 day')",
        ),
        (
            "select k, sum(n) as n from s group by k having n > 10",
            "HAVING with 'n', a column and an alias,",
            "n > 10",
            "another alias, or in HAVING sum(n) itself",
        ),
        ("select k from s union all select k from t limit 3", "LIMIT", "limit", "query"),
    ],
)
def test_clauses_beside_those_of_the_pages_are_refused_with_what_to_write(
    sql: str, clause: str, at: str, advice: str
) -> None:
    found = shape(sql)
    assert isinstance(found, Refused)
    assert found.clause == clause
    assert found.span[0] == sql.index(at)
    assert advice in found.advice


def test_recorded_and_drawn_queries_have_a_shape() -> None:
    for part in parts():
        query = Query(part, known_columns)
        times = {each.table.lower(): "at" for each in query.tables}
        assert not times or isinstance(shape_of(query, times), Shape)
