"""SQL over streams that is refused, with its place and a way out."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported, reported_for

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, at TIMESTAMP, x DOUBLE", watermark: {column: at, delay: 1 minute}}
  b: {topic: b, schema: "id BIGINT, at TIMESTAMP, y DOUBLE", watermark: {column: at, delay: 1 minute}}
  bare: {topic: c, schema: "id BIGINT, at TIMESTAMP"}
  t: {files: {path: t.csv, format: csv}, schema: "id BIGINT, name STRING"}
"""
OUT = "sinks: {o: {from: s, console: true}}\n"
BOUND = "b.at between a.at and a.at + interval 5 minutes"


def errors(sql: str, end: str = OUT) -> list[str]:
    lines = reported_for(f'steps: {{s: {{sql: "{sql}"}}}}\n{end}', head=HEAD)
    return [line.removeprefix("error: ") for line in lines if line.startswith("error")]


@pytest.mark.parametrize(
    "sql",
    [
        "select a.id from a join b on a.id = b.id",
        "select a.id from a, b where a.id = b.id",
        f"select a.id from a left join b on a.id = b.id and {BOUND}",
        f"select a.id from a full join b on a.id = b.id and {BOUND}",
        f"select a.id from a full join b on cast(a.id as string) = b.id and {BOUND}",
        f"select a.id from a left join b on try_cast(a.x as int) = try_cast(b.y as int) and {BOUND}",
        "select x.id from a x left join a y on x.id = y.id and y.at > x.at and y.at <= x.at + interval 1 minute",
        "select a.id, b.y from a left join b on a.id = b.id and a.at = b.at",
        f"select a.id from a left join b on lower(a.id) = lower(b.id) and {BOUND}",
        "select a.id from a left semi join b on a.id = b.id and b.at >= a.at and b.at < a.at + interval 1 minute",
        "select a.id, name from a left join t using (id)",
        "select a.id, name from t right join a using (id)",
        "select a.id, name from t join a using (id)",
        "select id from a where id not in (select id from t)",
        "select id from a union all select id from b",
        "select a.id from a join (select id from t union all select 1 as id) u on a.id = u.id",
        "select a.id from a join (select id, row_number() over (order by name) p from t) u on a.id = u.id and p <= 10",
        "select a.id from a join (select id from t order by name limit 3) u on a.id = u.id",
        "select id from a where id in (select id from t order by name limit 3)",
        "select a.id from a join (select id from t except select 5) u on a.id = u.id",
        "select a.id from a join (select id, n from t, lateral explode(array(1, 2)) as e(n)) u on a.id = u.id",
    ],
)
def test_joins_that_run(sql: str) -> None:
    assert errors(sql) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select a.id from a left join b on a.id = b.id", "no bound of event time"),
        ("select a.id, b.y from a left join b using (id, at)", "rows whose event time is null; write the condition"),
        (f"select a.id from a full join b on lower(a.id) = lower(b.id) and {BOUND}", "takes two nulls of it for equal"),
        (f"select a.id from a full join b on (a.id = b.id and upper(a.x) = upper(b.y)) and ({BOUND})",
         "compares UPPER(a.x)"),
        (f"select a.id from a full join b on try_cast(a.x as int) = try_cast(b.y as int) and {BOUND}",
         "compares TRY_CAST(a.x AS INT)"),
        (f"select /*+ MERGE(b) */ a.id from a left join b on a.id = b.id and {BOUND}", "has a left join of streams"),
        ("select a.id from a full join b using (id)", "no bound of event time"),
        ("select a.id from a left join bare b on a.id = b.id and b.at > a.at + interval 1 minute", "no bound of event"),
        ("select x.id from a x left join a y on x.id = y.id", "no bound of event time"),
        ("select id from a where id in (select id from b)", "write LEFT SEMI JOIN"),
        (f"select id from a where exists (select 1 from b where a.id = b.id and {BOUND})", "write LEFT SEMI JOIN"),
        ("select a.id from a left anti join b on a.id = b.id", "a match may arrive at any time"),
        ("select id from a where id not in (select id from b)", "a match may arrive at any time"),
        ("select id from a where not exists (select 1 from a z where z.id = a.id)", "a match may arrive at any time"),
        ("select a.id from a cross join b", "without an equality"),
        ("select a.id from a join b on a.x > b.y", "without an equality"),
        ("select id, (select max(y) from b) m from a", "one value of a subquery over a stream"),
        ("select id from a where x > (select avg(x) from a)", "one value of a subquery over a stream"),
        ("select a.id, x from a, lateral explode(array(1)) as e(x)", "joins the rows of a stream with LATERAL"),
        ("select a.id, x from a left join lateral explode(array(1)) as e(x)", "of a stream with LATERAL"),
        ("select id, v from a cross join lateral (select id + 1 as v)", "joins the rows of a stream with LATERAL"),
        ("select a.id, name from a, lateral (select name from t where t.id = a.id)", "of a stream with LATERAL"),
        ("select t.id, name from t left join a using (id)", "keeps rows of a static table"),
        ("select a.id, name from a full join t using (id)", "keeps rows of a static table"),
        ("select a.id, name from a right join t using (id)", "keeps rows of a static table"),
        ("select id from t where id in (select id from a)", "keeps rows of a static table"),
        ("select id from t where not exists (select 1 from a where a.id = t.id)", "keeps rows of a static table"),
        ("select id from a union all select id from t", "which every batch would have again"),
        ("select id from (select 1 as id union all select id from a) u", "which every batch would have again"),
        ("with u as (select id from t union select id from b) select id from u", "which every batch would have again"),
        ("select id from a tablesample (10 percent)", "samples a stream"),
        ("select id from a limit 10 offset 5", "skips rows of a stream"),
        ("select id, row_number() over (order by id) n from a", "uses OVER on a stream"),
        ("select a.id from a join (select id from t limit 3) u on a.id = u.id", "each batch may take others"),
        ("select id from a where id in (select id from t order by name offset 3)", "takes some rows of a static table"),
        ("select id from a where id in (select id from t order by name) order by id", "sorts a stream"),
        ("select id from a intersect select id from b", "INTERSECT"),
        ("with u as (select id from t union all select 1) select a.id from a join (select * from u limit 1) using (id)",
         "each batch may take others"),
    ],
)  # fmt: skip
def test_joins_and_subqueries_that_are_refused(sql: str, said: str) -> None:
    found = errors(sql)
    assert [line for line in found if said in line and "; " in line], found


def test_a_refused_join_has_its_place() -> None:
    text = HEAD + "steps:\n  s:\n    sql: |\n      select a.id from a\n      left join b on a.id = b.id\n" + OUT
    assert [line for line in reported(text) if line.startswith("12:17: error: step 's' writes rows of a left join")]


def test_joined_streams_are_not_updated() -> None:
    sql = "select a.id, count(*) n from a join b using (id) group by a.id"
    found = errors(sql, "sinks: {o: {from: s, table: o, key: [id], mode: upsert}}\nwarehouse: sqlite:///w.db\n")
    assert [line for line in found if "Spark joins streams in mode: append only" in line], found


def test_a_view_does_not_aggregate_updated_rows() -> None:
    sql = "select id, count(*) n from a group by id"
    view = "views: {v: {from: s, by: [id], aggregate: {m: max(n)}}}\nwarehouse: sqlite:///w.db\n"
    assert [line for line in errors(sql, view) if "view 'v' keeps state over the updated rows of 's'" in line]


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select id, count(*) n from a group by id", True),
        ("select id, count(*) n from a group by 1", True),
        ("select id, at, count(*) n from a group by 1, 2", False),
        ("select floor(x / 10) f, count(*) n from a group by floor(x / 10)", True),
        ("select id, at as seen, count(*) n from a group by all", False),
        ("select distinct id from a", True),
        ("select distinct id, at from a", False),
        ("select distinct * from a", False),
        ("select distinct * except (at) from a", True),
        ("select id from a union select id from b", True),
        ("select id, at from a union select id, at from b", False),
    ],
)
def test_groups_that_are_appended_become_final(sql: str, is_refused: bool) -> None:
    found = errors(sql, "sinks: {o: {from: s, topic: o}}\n")
    assert bool([line for line in found if "without grouping by event time" in line]) is is_refused, found
