"""The columns of results, and names that no table has."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.sql.blocks import blocks_of
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.results import result_columns, unknown_names

TABLES = {
    "t": "a INT, b STRING, s STRUCT<x: INT, y: STRUCT<z: DATE>>, at TIMESTAMP, l ARRAY<INT>, `the end` DATE",
    "u": "a INT, c DOUBLE",
    "v": "A BIGINT, window STRUCT<start: TIMESTAMP, end: TIMESTAMP>",
}


def columns_of(name: str) -> Columns | None:
    return Columns({each.name: each.type for each in parse_ddl(TABLES[name])}) if name in TABLES else None


def read(sql: str) -> Query:
    return Query(blocks_of("step", sql)[-1].parts[0], columns_of)


def outline(sql: str) -> str | None:
    found = result_columns(read(sql))
    return (
        None
        if found is None
        else ", ".join(f"{name} {kind.ddl if kind else '?'}" for name, kind in found.types.items())
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a, b as bee, upper(b) up from t", "a INT, bee STRING, up ?"),
        ("select * from u", "a INT, c DOUBLE"),
        ("select s.* from t", "x INT, y STRUCT<z: DATE>"),
        ("select q.s.y.*, q.s.x, s.y.z as d from t q", "z DATE, x INT, d DATE"),
        ("select q.*, c from u q join t on q.a = t.a", "a INT, c DOUBLE"),
        ("select * from u join v using (A)", "a INT, c DOUBLE, window STRUCT<start: TIMESTAMP, end: TIMESTAMP>"),
        ("select * from v left semi join u on v.a = u.a", "A BIGINT, window STRUCT<start: TIMESTAMP, end: TIMESTAMP>"),
        ("select * except (s, at, L, `the end`) from t", "a INT, b STRING"),
        ("select *, i from u lateral view explode(array(1)) l as i", "a INT, c DOUBLE, i ?"),
        ("select l.* from u lateral view explode(array(1)) l as i", "i ?"),
        ("select posexplode(l) as (i, v) from t", "i ?, v ?"),
        ("select a + 1 as m, m as o, a as p, p as q from t", "m INT, o INT, p INT, q INT"),
        (
            "select int(a) i, b::decimal(10,2), try_cast(a as array<struct<x: int>>) l, date '2020-1-1' d from t",
            "i INT, b DECIMAL(10,2), l ARRAY<STRUCT<x: INT>>, d DATE",
        ),
        (
            "select 1 as i, 5000000000 as j, 'x' as s, true as b, 1.5 as f, null as n from t",
            "i INT, j ?, s STRING, b BOOLEAN, f ?, n ?",
        ),
        (
            "select a > 1 and b is null as x, not b like 'a' as y, (a in (1, 2)) as z from t",
            "x BOOLEAN, y BOOLEAN, z BOOLEAN",
        ),
        (
            "select b, count(*) as n, count(distinct a) as m, sum(a) as s from t group by b",
            "b STRING, n BIGINT, m BIGINT, s ?",
        ),
        (
            "select window.start, window.end as u, window as w, w.start as s from t group by window(at, '1 hour')",
            "start TIMESTAMP, u TIMESTAMP, w STRUCT<start: TIMESTAMP, end: TIMESTAMP>, s TIMESTAMP",
        ),
        ("select window(t.at, '1 hour').end as e from t group by window(at, '1 hour')", "e TIMESTAMP"),
        (
            "select session_window.*, count(*) n from t group by session_window(at, '1 hour')",
            "start TIMESTAMP, end TIMESTAMP, n BIGINT",
        ),
        ("select window.end from v group by window(window, '1 day')", "end TIMESTAMP"),
        ("select cast(a as interval day) as i from t", "i ?"),
        ("select * from dark", None),
        ("select a + 1 from t", None),
        ("select dark.* from t join dark", None),
        ("select b.* from t", None),
        ("select * from u lateral view explode(array(1)) l", None),
        ("select a, count(*) from t group by a", None),
    ],
)
def test_columns_of_a_query(sql: str, expected: str | None) -> None:
    assert outline(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a, t.b, s.y.z, `the end`, current_date from t", []),
        ("select bb from t", ["bb: there is no column 'bb' (did you mean 'b'?)"]),
        ("select t.cc from t join u using (a)", ["t.cc: there is no column 'cc' (known: a, b, s, at, l, the end)"]),
        ("select T.s.zz from t", ["T.s.zz: there is no field 'zz' (known: x, y)"]),
        ("select s.y.zz, s.x.q, b.q from t", ["s.y.zz: there is no field 'zz' (did you mean 'z'?)"]),
        ("select a, u.c, c from t join u on t.a = u.a", []),
        ("select a from t join u using (a) where c > 1", []),
        ("select a from t semi join u on t.a = u.a", []),
        ("select q from t where transform(l, x -> x + y) is null", ["q: there is", "y: there is no column 'y'"]),
        ("select i, j from t lateral view explode(l) as i", ["j: there is no column 'j'"]),
        ("select count(*), to_json(struct(*)), to_json(struct(t.*)) from t", []),
        ("select a as z, z + 1 from t where z > 1", ["z: there is no column 'z'"]),
        ("select window.end, win.end from t group by window(at, '1 day')", ["win.end: there is no column 'win'"]),
        ("select b, count(*) as n from t group by b having n > 1 and m > 1", ["m: there is no column 'm'"]),
        ("select date_add(day, 1, at), (select max(q) from u) from t", []),
        ("select zz from t join dark", []),
        ("select zz from t lateral view explode(l)", []),
    ],
)
def test_names_that_no_table_has_are_found(sql: str, expected: list[str]) -> None:
    query = read(sql)
    found = [f"{query.text(each.span)}: {each.message} ({each.hint})" for each in unknown_names(query)]
    assert len(found) == len(expected)
    assert all(one.startswith(other) for one, other in zip(found, expected, strict=True)), found


def test_names_are_compared_without_case() -> None:
    columns = Columns({"A": None, "b": None})
    assert "a" in columns
    assert columns.without(["a"]).names == ["b"]
