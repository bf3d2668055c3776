"""Names that an alias gives to the columns of groups: which column each stands for."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for
from tests.pipelines.planning.test_group_columns import refusals
from tests.pipelines.planning.test_query_checks import HEAD

COUNTED = "(select id, count(*) from a group by id)"


@pytest.mark.parametrize(
    ("key", "sql", "refused"),
    [
        ("[k]", f"with x(k, m) as {COUNTED} select k, m from x", None),
        ("[k]", f"with x(k, m) as {COUNTED} select k, m from x where k > 1", None),
        ("[k]", f"with x(k, m) as {COUNTED} select k, m from x where m > 1", "filters groups by 'm'"),
        ("[m]", f"with x(k, m) as {COUNTED} select k, m from x", "has 'm', which changes"),
        ("[k]", "with x(m) as (select count(*) from a) select 1 as k, m from x where m < 9", "filters groups by 'm'"),
        ("[k]", f"select q.k, q.m from {COUNTED} as q(k, m) where q.k > 1", None),
        ("[m]", f"select q.k, q.m from {COUNTED} as q(k, m)", "has 'm', which changes"),
        ("[id]", "select q.i as id, count(*) n from a as q(i, e, y) where q.e is not null group by q.i", None),
        ("[id]", "select a.id, count(*) n from a join values (1) as v(i) on a.id = v.i group by a.id", None),
        ("[k]", f"with x(k, m) as (select * from {COUNTED}) select k, m from x where k > 1", None),
        ("[k]", f"with x(k, m) as (select * from {COUNTED}) select k, m from x where m > 1", "filters groups by 'm'"),
    ],
)
def test_names_that_an_alias_gives_to_columns_stand_for_them(key: str, sql: str, refused: str | None) -> None:
    found = refusals(f"key: {key}", sql)
    assert len(found) == (refused is not None), found
    assert refused is None or refused in found[0]


PAIRS = "select id, x, count(*) n from a group by id, x"
WITH_STAR = "with y(k, u, m) as (select * from q1) select * from y"
OF_TABLE = "select * from q1 as y(k, u, m)"
OF_QUERY = "select * from (select * from q1) as y(k, u, m)"


@pytest.mark.parametrize("sql", [WITH_STAR, OF_TABLE, OF_QUERY])
def test_names_that_an_alias_gives_to_the_columns_of_a_star_stand_for_them(sql: str) -> None:
    assert refusals("key: [k, u]", PAIRS, sql) == []
    assert refusals("key: [k, u]", PAIRS, f"{sql} where k > 1") == []
    for end, said in (("[k]", "tells x apart"), ("[u]", "tells id apart"), ("[m]", "has 'm', which changes")):
        (refused,) = refusals(f"key: {end}", PAIRS, sql)
        assert said in refused
    (refused,) = refusals("key: [k, u]", PAIRS, f"{sql} where m > 1")
    assert "filters groups by 'm'" in refused


@pytest.mark.parametrize(
    "sql",
    [
        WITH_STAR.replace("* from q1", "* from q1 join t using (id)").replace("m)", "m, o)"),
        OF_TABLE.replace("q1 as", "(q1 join t on q1.id = t.id) as").replace("m)", "m, i, o)"),
        OF_TABLE.replace("q1 as", "((select id, n from q1) l join (select name, id from t) r using (id)) as"),
    ],
)
def test_columns_of_groups_whose_order_a_join_decides_are_refused_behind_other_names(sql: str) -> None:
    for key in ("[k]", "[k, u]", "[m]"):
        (refused,) = refusals(f"key: {key}", PAIRS, sql)
        assert "which changes" in refused
    listed = "select q1.id as k, q1.x as u, q1.n as m from q1 join t on q1.id = t.id"
    assert refusals("key: [k, u]", PAIRS, f"with y(k, u, m) as (select * from ({listed})) select * from y") == []


COUNT_FIRST = "select count(*) n, id from a group by id"


@pytest.mark.parametrize(
    "sql",
    [
        "select * from q1 left semi join t using (id)",
        "select * from q1 left anti join t using (id)",
        "select q1.* from q1 join t using (id)",
        "select q1.* from q1 left join t using (id)",
    ],
)
def test_a_column_of_using_comes_first_so_that_its_order_is_not_known(sql: str) -> None:
    for key in ("[p]", "[q]"):
        (refused,) = refusals(f"key: {key}", COUNT_FIRST, f"with y(p, q) as ({sql}) select * from y")
        assert "which changes" in refused
    plain = sql.replace("using (id)", "on q1.id = t.id")
    assert refusals("key: [q]", COUNT_FIRST, f"with y(p, q) as ({plain}) select * from y") == []


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_column_of_a_declared_join_comes_first_so_that_its_order_is_not_known(how: str) -> None:
    definition = f"""
steps:
  g: {{sql: "{COUNT_FIRST}"}}
  j: {{from: g, join: {{table: t, on: [id], how: {how}}}}}
  s: {{sql: "with y(p, q) as (select * from j) select * from y"}}
warehouse: sqlite:///w.db
sinks: {{o: {{from: s, table: o, key: [q]}}}}
"""
    (refused,) = [line for line in reported_for(definition, head=HEAD) if line.startswith("error")]
    assert "which changes" in refused


@pytest.mark.parametrize("selected", ["id, sum(x), max(x)", "id, count(*), count(*)", "id, count(*), sum(x) + 1"])
def test_several_aggregates_have_only_the_names_of_the_alias(selected: str) -> None:
    for sql in (
        f"with y(k, s, m) as (select {selected} from a group by id) select * from y",
        f"select * from (select {selected} from a group by id) as y(k, s, m)",
    ):
        assert refusals("key: [k]", sql) == []
        (refused,) = refusals("key: [s]", sql)
        assert "has 's', which changes" in refused


@pytest.mark.parametrize(
    ("key", "said"),
    [("[k]", "tells window apart"), ("[since]", "tells id apart"), ("[n]", "has 'n', which"), ("[until, k]", None)],
)
def test_windows_of_an_aggregation_are_before_the_columns_that_it_groups_by(key: str, said: str | None) -> None:
    definition = f"""
steps:
  w: {{from: a, by: [id], window: {{column: at, size: 5 minutes}}, aggregate: {{m: count(*)}}}}
  s: {{sql: "with y(since, until, k, n) as (select * from w) select k, since, until, n from y"}}
warehouse: sqlite:///w.db
sinks: {{o: {{from: s, table: o, key: {key}}}}}
"""
    found = [line for line in reported_for(definition, head=HEAD) if line.startswith("error")]
    assert len(found) == (said is not None), found
    assert said is None or said in found[0]


NESTED = HEAD.replace("x DOUBLE", "x DOUBLE, payload STRUCT<n: INT, id: INT>, items ARRAY<STRING>")


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select payload.n as n, count(*) c from a group by n", False),
        ("select a.payload.n as n, count(*) c from a group by n", False),
        ("select upper(payload.n) as n, count(*) c from a group by n", False),
        ("select upper(p.n) as n, count(*) c from (select payload.n from a) p group by n", True),
        ("select e.n as n, count(*) c from a lateral view explode(items) e as n group by n", False),
        ("select upper(e.n) as n, count(*) c from a lateral view explode(items) e as n group by n", True),
        ("select payload.n as payload, count(*) c from a group by payload", True),
        ("select max(payload.n) as n, count(*) c from (select payload, x as n from a) group by n", True),
    ],
)
def test_a_field_that_an_alias_names_is_what_is_grouped_by(sql: str, is_refused: bool) -> None:
    key = "payload" if "as payload" in sql else "n"
    found = refusals(f"key: [{key}]", sql, head=NESTED)
    assert len(found) == is_refused, found
