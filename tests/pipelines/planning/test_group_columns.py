"""Which expressions of SQL tell groups apart, so that a key of them has one group."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for
from tests.pipelines.planning.test_query_checks import HEAD

HOURS = "select window, id, count(*) n from a group by window(at, '1 hour'), id"
NAMED = "select window(at, '1 hour') as w, id, count(*) n from a group by window(at, '1 hour'), id"


def refusals(end: str, *queries: str, head: str = HEAD) -> list[str]:
    """The errors of a table and of a view behind queries, of which each reads the one before as `q1`, `q2` …"""
    steps = "".join(f'  q{at}: {{sql: "{sql}"}}\n' for at, sql in enumerate(queries, 1))
    definition = f"steps:\n{steps}warehouse: sqlite:///w.db\n"
    found = []
    for kind in ("sinks: {o: {from: q%d, table: o, %s}}\n", "views: {o: {from: q%d, %s}}\n"):
        lines = reported_for(definition + kind % (len(queries), end), head=head)
        found.append([line for line in lines if line.startswith("error")])
    assert len(found[0]) == len(found[1]), found
    return found[0]


@pytest.mark.parametrize(
    ("key", "queries"),
    [
        ("[s, id]", (HOURS, "select window.start as s, window.end as e, id, n from q1")),
        ("[s, e, id]", (HOURS, "select window.start as s, window.end as e, id, n from q1")),
        ("[s, id]", (NAMED, "select w.start as s, id, n from q1")),
        ("[s, id]", (f"select g.window.start as s, id, n from ({HOURS}) g",)),
        ("[e, id]", (HOURS, "select *, window as w from q1", "select q2.w.end as e, id, n from q2")),
        ("[e, id, k]", (f"select 1 as k, * from ({HOURS}) g union all select 2, * from ({HOURS}) h",
                        "select window.end as e, id, n, k from q1")),
    ],
)  # fmt: skip
def test_each_end_of_a_window_that_an_earlier_step_selects_tells_windows_apart(
    key: str, queries: tuple[str, ...]
) -> None:
    assert refusals(f"key: {key}", *queries) == []


def test_a_field_of_another_struct_does_not_tell_its_groups_apart() -> None:
    struct = f"select named_struct('start', id, 'w', window) as h, n from ({HOURS}) g"
    (refused,) = refusals("key: [s]", struct, "select h.start as s, n from q1")
    assert "tells id, window apart" in refused


@pytest.mark.parametrize(
    ("key", "length", "is_refused"),
    [
        ("date_format(window.start, 'yyyy-MM-dd')", "1 hour", True),
        ("date_format(window.start, 'yyyy-MM-dd')", "1 day", False),
        ("date_format(window.start, 'dd. MMM yyyy')", "1 week", False),
        ("date_format(window.start, 'yyyy-MM')", "1 day", True),
        ("date_format(window.start, 'yyyyMMddHH')", "1 hour", False),
        ("date_format(window.start, 'yyyyMMddHH')", "15 minutes", True),
        ("date_format(window.start, 'yyyyMMddhh')", "1 hour", True),
        ("date_format(window.start, 'yyyyMMddhha')", "1 hour", False),
        ("date_format(window.start, 'HH:mm')", "1 hour", True),
        ("date_format(window.start, 'yyyy-MM-dd HH:mm')", "15 minutes", False),
        ("date_format(window.start, 'yyyy-MM-dd HH:mm')", "10 seconds", True),
        ("date_format(window.start, 'yyyy-MM-dd HH:mm:ss')", "10 seconds", False),
        ("date_format(window.start, 'yyyy-DDD HH')", "1 day', '1 hour", False),
        ("date_format(window.start, 'yyyy-MM-dd')", "1 day', '1 hour", True),
        ("to_date(window.start)", "1 hour", True),
        ("date_trunc('hour', window.start)", "1 hour", False),
        ("date_trunc('hour', window.start)", "5 minutes", True),
        ("date_trunc('month', window.start)", "1 day", True),
        ("date_trunc('week', window.start)", "1 week", False),
        ("date_trunc('week', window.start)", "7 days", False),
        ("trunc(window.start, 'week')", "1 week", False),
        ("to_date(window.start)", "1 week", False),
        ("date_trunc('week', window.start)", "1 day", True),
        ("date_trunc('month', window.start)", "1 week", True),
        ("date_format(window.start, 'yyyy-MM-dd kk')", "1 hour", False),
        ("date_format(window.start, 'yyyyMMddkk')", "1 hour", False),
        ("date_format(window.start, 'yyyyMMddkk')", "15 minutes", True),
    ],
)
def test_a_function_of_time_tells_windows_apart_that_start_in_different_units(
    key: str, length: str, is_refused: bool
) -> None:
    query = f"select {key} as k, id, count(*) n from a group by window(at, '{length}'), id"
    refused = refusals("key: [k, id]", query)
    assert ["tells window apart" in line for line in refused] == [True] * is_refused, refused


@pytest.mark.parametrize(
    ("window", "is_refused"), [("size: 1 hour", True), ("size: 2 days", False), ("gap: 1 hour", True)]
)
def test_a_date_tells_the_windows_of_an_aggregation_apart_by_their_length(window: str, is_refused: bool) -> None:
    definition = f"""
steps:
  g: {{from: a, by: [id], window: {{column: at, {window}}}, aggregate: {{n: count(*)}}}}
  s: {{sql: "select date_format(window_start, 'yyyy-MM-dd') as day, id, n from g"}}
warehouse: sqlite:///w.db
sinks: {{o: {{from: s, table: o, key: [day, id]}}}}
"""
    lines = [line for line in reported_for(definition, head=HEAD) if line.startswith("error")]
    assert ["tells window apart" in line for line in lines] == [True] * is_refused, lines


@pytest.mark.parametrize(
    ("expression", "is_refused"),
    [
        ("coalesce(id, x)", True),
        ("coalesce(id, -1)", True),  # without x
        ("concat(coalesce(id, -1), '-', nvl(x, 0))", False),
    ],
)
def test_the_first_of_several_columns_tells_no_groups_apart(expression: str, is_refused: bool) -> None:
    refused = refusals("key: [k]", f"select {expression} as k, count(*) n from a group by id, x")
    assert len(refused) == is_refused, refused


@pytest.mark.parametrize(
    "key",
    ["unix_seconds(window.end)", "unix_millis(window.end)", "unix_timestamp(window.start)", "window_time(window)"],
)
def test_the_number_of_a_time_tells_windows_apart(key: str) -> None:
    query = f"select {key} as k, id, count(*) n from a group by window(at, '10 seconds'), id"
    assert refusals("key: [k, id]", query) == []


@pytest.mark.parametrize(
    ("order", "is_refused"),
    [
        ("unix_timestamp(max(at))", False),
        ("unix_millis(max(at))", False),
        ("greatest(max(at), max(seen))", False),
        ("greatest(max(at), min(seen))", True),
        ("cast(count(*) as int)", False),
        ("cast(count(*) as decimal(12, 0))", False),
        ("cast(count(*) as string)", True),  # '9' is followed by '10'
        ("string(count(*))", True),
        ("try_cast(count(*) as string)", True),
        ("greatest(cast(count(*) as string), '5')", True),
        ("cast(max(x) as int)", True),  # of text, 9 is followed by 10
        ("to_date(max(at))", False),
        ("to_date(max(cast(x as string)))", False),
        ("to_date(max(cast(x as string)), 'yyyy-MM-dd')", False),
        ("to_date(max(cast(x as string)), 'yyyyMMdd')", False),
        ("to_date(max(cast(x as string)), 'dd.MM.yyyy')", True),
        ("unix_timestamp(max(cast(x as string)), 'yyyy/MM/dd HH:mm:ss')", False),
        ("unix_timestamp(max(cast(x as string)), 'y-M-d H:m:s')", True),  # '2026-10-1' is followed by '2026-9-1'
        ("unix_timestamp(max(cast(x as string)), 'yyyy-MM-dd HH:mm:ssXXX')", True),
        ("unix_timestamp(max(cast(x as string)), 'dd-MM-yyyy')", True),
        ("-max(x)", True),
    ],
)
def test_an_order_may_be_a_function_that_grows_with_its_arguments(order: str, is_refused: bool) -> None:
    query = f"select id, {order} as last, count(*) n from (select *, at as seen from a) v group by id"
    refused = refusals("key: [id], order_by: last", query)
    assert ["which may fall" in line for line in refused] == [True] * is_refused, refused


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select t.id, t.name, q1.n from q1 join t on q1.id = t.id", False),
        ("select t.*, q1.n from q1 join t on q1.id = t.id and t.name > 'a'", False),
        ("select t.id, q1.n from t join q1 on (q1.id = t.id)", False),
        ("select key as id, q1.n from q1 join (select id as key from t) u on q1.id = key", False),
        ("select t.id, q1.n from q1 left join t on q1.id = t.id", True),
        ("select t.id, q1.n from q1 join t on q1.id > t.id", True),
        ("select t.id, q1.n from q1 join t on q1.id = t.id or t.id = 0", True),
    ],
)
def test_an_inner_join_makes_equal_columns_tell_the_same_groups_apart(sql: str, is_refused: bool) -> None:
    refused = refusals("key: [id]", "select id, count(*) n from a group by id", sql)
    assert ["tells id apart" in line for line in refused] == [True] * is_refused, refused


@pytest.mark.parametrize(
    ("group", "sql", "is_refused"),
    [
        ("text", "select t.id as k, n from q1 join t on g = t.id", True),  # '7' and '07' equal 7
        ("text", "with v as (select * from q1) select t.id as k, n from v join t on v.g = t.id", True),
        ("text", "select t.name as k, n from q1 join t on g = t.name", False),
        ("text", "with v as (select * from q1) select name as k, n from v join t on v.g = t.name", False),
        ("text", "with v as (select * from q1) select k, n from v join (select name as k from t) u on g = k", False),
        ("id", "select t.name as k, n from q1 join t on g = t.name", False),
        ("small", "select t.id as k, n from q1 join t on g = t.id", False),
        ("small", "select u.k, n from q1 join (select abs(id) as k from t) u on g = u.k", True),  # not a known type
        ("small", "select j.k, n from q1 join j on g = j.k", False),
        ("text", "select j.k, n from q1 join j on g = j.k", True),
        ("x", "select t.id as k, n from q1 join t on g = t.id", True),
    ],
)
def test_equal_columns_of_different_types_tell_groups_apart_if_a_value_equals_one_other(
    group: str, sql: str, is_refused: bool
) -> None:
    head = HEAD.replace("x DOUBLE", "x DOUBLE, text STRING, small INT")
    head += '  j: {files: {path: j.csv, format: csv}, schema: "v STRING", columns: {k: cast(v as bigint)}}\n'
    refused = refusals("key: [k]", f"select {group} as g, count(*) n from a group by {group}", sql, head=head)
    assert [f"tells {group} apart" in line for line in refused] == [True] * is_refused, refused


@pytest.mark.parametrize(
    ("part", "queries", "is_refused"),
    [
        ("", ("select date_format(day, 'yyyyMMdd') as k, id, count(*) n from a group by day, id",), False),
        ("", ("select to_date(day) as k, id, count(*) n from a group by day, id",), False),
        ("day", ("select date_format(day, 'yyyy-MM') as k, id, count(*) n from a group by day, id",), True),
        ("", ("select date_format(to_date(at), 'yyyy-MM-dd') as k, id, count(*) n from a group by to_date(at), id",),
         False),
        ("", ("select to_date(at) as h, id, count(*) n from a group by to_date(at), id",
              "select date_format(h, 'yyyy-MM-dd') as k, id, n from q1"), False),
        ("", ("select to_date(at) as h, id from a", "select h, id, count(*) n from q1 group by h, id",
              "select date_format(h, 'yyyy-MM-dd') as k, id, n from q2"), False),
        ("", ("select date_trunc('hour', at) as h, id, count(*) n from a group by 1, 2",
              "select date_format(h, 'yyyy-MM-dd HH') as k, id, n from q1"), False),
        ("date_trunc('hour', at)", ("select date_trunc('hour', at) as h, id, count(*) n from a group by 1, 2",
                                    "select date_format(h, 'yyyy-MM-dd') as k, id, n from q1"), True),
        ("h", ("select date_trunc('hour', at) as h, id from a", "select h, id, count(*) n from q1 group by h, id",
               "select date_format(h, 'yyyy-MM-dd') as k, id, n from q2"), True),
        ("", ("select date_trunc('month', at) as h, id, count(*) n from a group by 1, 2",
              "select date_format(h, 'yyyy-MM-dd') as k, id, n from q1"), False),
        ("date_trunc('name', at)", ("select date_trunc(name, at) as h, id, count(*) n from a group by 1, 2",
                                  "select date_format(h, 'yyyy-MM-dd') as k, id, n from q1"), True),
        ("at", ("select date_format(at, 'yyyy-MM-dd') as k, id, count(*) n from a group by at, id",), True),
    ],
)  # fmt: skip
def test_a_function_of_time_tells_dates_and_truncated_times_apart_by_their_unit(
    part: str, queries: tuple[str, ...], is_refused: bool
) -> None:
    refused = refusals("key: [k, id]", *queries, head=HEAD.replace("x DOUBLE", "day DATE, name STRING"))
    assert [f"tells {part} apart" in line for line in refused] == [True] * is_refused, refused


@pytest.mark.parametrize(("unit", "is_refused"), [("dd", False), ("MM", True)])
@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace("x DOUBLE", "x DOUBLE, day DATE"),
        HEAD.replace("watermark: {column: at, delay: 1 minute}", "columns: {day: to_date(at)}"),
    ],
)
def test_a_date_that_an_aggregation_groups_by_is_told_apart(head: str, unit: str, is_refused: bool) -> None:
    definition = f"""
steps:
  g: {{from: a, by: [day, id], aggregate: {{n: count(*)}}}}
  s: {{sql: "select date_format(day, 'yyyy {unit} MM') as k, id, n from g"}}
warehouse: sqlite:///w.db
sinks: {{o: {{from: s, table: o, key: [k, id]}}}}
"""
    lines = reported_for(definition, head=head)
    found = [line for line in lines if line.startswith("error")]
    assert ["tells day apart" in line for line in found] == [True] * is_refused, found


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        ("select coalesce(t.id, g.id) as k, n from q1 g left join t on t.id = g.id", False),
        ("select coalesce(g.id, t.id) as k, n from q1 g left join t on t.id = g.id and t.name > 'a'", False),
        ("select coalesce(t.name, g.id) as k, n from q1 g left join t on t.id = g.id", True),
        ("select coalesce(t.name, g.id) as k, n from q1 g left join t on t.name = g.id", True),  # '07' for 7
        ("select coalesce(t.id, g.id) as k, n from q1 g left join t on t.id = g.id or t.id = 0", True),
        ("select coalesce(t.id, g.id) as k, n from q1 g left join t on t.id > g.id", True),
    ],
)
def test_the_first_of_columns_that_a_left_join_equates_tells_groups_apart(sql: str, is_refused: bool) -> None:
    refused = refusals("key: [k]", "select id, count(*) n from a group by id", sql)
    assert ["tells id apart" in line for line in refused] == [True] * is_refused, refused


STRUCTS = HEAD.replace("x DOUBLE", "k BIGINT, c STRUCT<id: BIGINT>, p STRUCT<id: BIGINT>", 1)
BOTH = "select %s as one, %s as two, count(*) n from a group by %s, %s"
OF_TABLES = "select a.id as one, t.id as two, count(*) n from a join t on a.k = t.id group by a.id, t.id"


@pytest.mark.parametrize(
    "query",
    [
        OF_TABLES,
        OF_TABLES.replace("a.id", "cast(a.id as string)").replace("t.id", "cast(t.id as string)"),
        BOTH % (("c.id", "p.id") * 2),
        BOTH % ("a.c.id", "a.p.id", "c.id", "p.id"),
        BOTH % (("id", "c.id") * 2),
        BOTH % ("a.id", "c.id", "ID", "C.ID"),
        BOTH % (("cast(c.id as string)", "cast(id as string)") * 2),
        BOTH % (("if(cast(id as string) = 'A', 1, 2)", "if(cast(id as string) = 'a', 1, 2)") * 2),
    ],
)
def test_columns_of_the_same_name_are_different_parts_of_a_group(query: str) -> None:
    for key in ("[one]", "[two]"):
        (refused,) = refusals(f"key: {key}", query, head=STRUCTS)
        assert "several groups may have the same" in refused
    assert refusals("key: [one, two]", query, head=STRUCTS) == []


@pytest.mark.parametrize(
    "query",
    [
        "select a.id as one, count(*) n from a group by id",
        "select ID as one, count(*) n from a group by a.id, id",
        "select cast(a.id as string) as one, count(*) n from a group by cast(Id as string)",
        "select a.id as one, count(*) n from a join t using (id) group by id",
        "select v.id as one, count(*) n from a v join t on v.id = t.id group by v.id",
    ],
)
def test_a_column_with_and_without_its_table_is_one_part_of_a_group(query: str) -> None:
    assert refusals("key: [one]", query, head=STRUCTS) == []


@pytest.mark.parametrize("aggregate", ["any(x > 1)", "any(x > 1) = true", "kll_sketch_agg_double(x) is null"])
def test_a_filter_of_groups_by_any_aggregate_function_is_refused(aggregate: str) -> None:
    grouped = f"select id, {aggregate} as hot from a group by id"
    (refused,) = refusals("key: [id]", grouped, "select * from q1 where not hot")
    assert "filters groups by 'hot', which changes" in refused
    assert refusals("key: [id]", f"select id, {aggregate} as hot from a group by all") == []


def test_like_any_is_not_an_aggregate_function() -> None:
    liked = "select x like any ('1%', '2%') as low, count(*) n from a where x is not null group by all"
    assert refusals("key: [low]", liked) == []


@pytest.mark.parametrize(
    ("key", "query", "is_refused"),
    [
        ("[k]", "select coalesce(id, -1) as k, count(*) n from a group by rollup(id)", True),
        ("[k]", "select coalesce(id, -1) as k, count(*) n from a where id is not null group by rollup(id)", False),
        ("[k, g]", "select coalesce(id, -1) as k, grouping(id) as g, count(*) n from a group by rollup(id)", False),
        ("[k, g]", "select coalesce(id, -1) as k, grouping_id() as g, count(*) n from a group by id with cube", False),
        ("[k, l, g]", "select coalesce(id, 0) k, coalesce(x, 0) l, grouping(x) g from a group by cube(id, x)", True),
        ("[k, l, g]", "select coalesce(id, 0) k, coalesce(x, 0) l, grouping_id() g from a group by cube(id, x)", False),
        ("[k]", "select coalesce(id, -1) as k, count(*) n from a group by id", False),
        ("[id]", "select id, count(*) n from a where id > 1 group by rollup(id) having grouping(id) = 0", False),
    ],
)
def test_the_totals_of_rollup_and_cube_are_told_from_the_group_of_null(key: str, query: str, is_refused: bool) -> None:
    found = refusals(f"key: {key}", query)
    assert ["tells the totals of" in line and "grouping_id()" in line for line in found] == [True] * is_refused, found


@pytest.mark.parametrize(
    ("query", "is_refused"),
    [
        ("select cast(x as int) as k, count(*) n from a group by x", True),
        ("select cast(x as decimal(9, 0)) as k, count(*) n from a group by x", True),
        ("select int(x) as k, n from (select x, count(*) n from a group by x)", True),
        ("select cast(x as int) as k, count(*) n from a group by cast(x as int)", False),
        ("select cast(x as string) as k, count(*) n from a group by x", False),
        ("select cast(x as decimal(9, 2)) as k, count(*) n from a group by x", True),
        ("select cast((x) as int) as k, count(*) n from a group by x", True),
        ("select cast((x) as int) as k, n from (select x, count(*) n from a group by x)", True),
        ("select cast(id as int) as k, count(*) n from a group by id", False),
    ],
)
def test_a_cast_that_leaves_out_fractions_tells_no_groups_apart(query: str, is_refused: bool) -> None:
    assert ["tells x apart" in line for line in refusals("key: [k]", query)] == [True] * is_refused


@pytest.mark.parametrize(("scale", "is_refused"), [(1, True), (2, False), (3, False)])
def test_a_cast_of_a_decimal_tells_groups_apart_if_it_keeps_all_digits_after_the_point(
    scale: int, is_refused: bool
) -> None:
    head = HEAD.replace("x DOUBLE", "x DECIMAL(9, 2)")
    query = f"select cast(x as decimal(12, {scale})) as k, count(*) n from a group by x"
    assert ["tells x apart" in line for line in refusals("key: [k]", query, head=head)] == [True] * is_refused


@pytest.mark.parametrize(
    ("zone", "key", "is_refused"),
    [
        ("Europe/Zurich", "date_format(window.start, 'yyyy-MM-dd HH')", True),
        ("Europe/Zurich", "date_format(window.start, 'yyyy-MM-dd HH:mm:ss')", True),
        ("Europe/Zurich", "date_format(window.start, 'yyyy-MM-dd HH:mm XXX')", False),
        ("Europe/Zurich", "date_format(window.start, 'yyyy-MM-dd HHZ')", False),
        ("Europe/Zurich", "date_format(window.start, 'dd.MM.yyyy HH VV')", True),
        ("Europe/Zurich", "cast(window_start as string)", True),
        ("Europe/Zurich", "window_start", False),
        ("Europe/Zurich", "unix_timestamp(window_start)", False),
        ("Asia/Tokyo", "date_format(window.start, 'yyyy-MM-dd HH')", False),
        ("+02:00", "cast(window_start as string)", False),
        ("UTC", "date_format(window.start, 'yyyy-MM-dd HH')", False),
    ],
)
def test_a_text_of_the_time_tells_no_windows_apart_where_clocks_are_set_back(
    zone: str, key: str, is_refused: bool
) -> None:
    head = f"{HEAD}spark: {{spark.sql.session.timeZone: '{zone}'}}\n"
    hours = "select window, window.start as window_start, count(*) n from a group by window(at, '1 hour')"
    for queries in ((hours, f"select {key} as k, n from q1"), (f"select {key} as k, n from ({hours})",)):
        assert [f"set back ({zone})" in line for line in refusals("key: [k]", *queries, head=head)] == [
            True
        ] * is_refused
