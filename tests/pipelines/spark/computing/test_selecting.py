"""A SELECT over single rows has the result of plain Spark SQL, but that a row which stops Spark is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipelines.spark.computing.row_errors import REASON
from odradek.pipelines.spark.computing.rows import NotCompilable, Rows
from odradek.pipelines.spark.computing.selecting import over_rows
from odradek.pipelines.spark.frames import REJECTED
from tests.pipelines.spark.computing.two_ways import as_columns, assert_same, assert_same_row_by_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = """id BIGINT, x INT, name STRING, at TIMESTAMP, day DATE, price DOUBLE, `a name` STRING, flag BOOLEAN,
list ARRAY<INT>, meter STRUCT<unit: STRING, deep: STRUCT<x: INT>>, tags MAP<STRING, INT>,
parts ARRAY<STRUCT<x: INT, name: STRING>>"""
AT = datetime(2026, 1, 31, 23, 59, 1, tzinfo=UTC)
ROWS = [
    (1, 0, "it's", AT, AT.date(), 0.5, "é", True, [1, 2], ("bar", (1,)), {"a": 1, "b": 2}, [(1, "p"), (2, None)]),
    (2, 3, 'say "a_b"', AT, AT.date(), float("nan"), "", False, [], ("kPa", None), {}, []),
    (3, -7, "12", AT, AT.date(), -1e300, "--", None, [5, None, 7], None, {"a": None}, [(0, "q")]),
    (None, None, None, None, None, None, None, None, None, None, None, None),
]


@pytest.fixture(scope="module")
def readings(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1)


COLUMNS = r"""
    date_format(at, "'day' d"); 'it''s'; "a""b"; r'\d'; '\'--'; "/*"; /* 'x */ name -- ' end
    ; ID; `a name`; R.x; meter.Unit; meter.deep.X; parts.x; tags['a']; tags.b; try_element_at(tags, 'a');
    get(parts, 0).x; name like '%\_%'; name like '%!_%' escape '!'; name rlike "a|'"; x in (0, 3); ~x;
    x not between -1 and 2; -x;
    transform(list, v -> v + r.x + id); aggregate(list, 0, (a, b) -> a); filter(parts, p -> p.x > x).name;
    to_json(struct(id, name, meter.unit as u, x + 1)); struct(id, x).x; case x when 0 then 'zero' else name end;
    case when x > 0 then 1 end; if(flag, x, id); not flag; ! flag; x is distinct from 3; x <=> null; x::string || '!';
    cast(x as decimal(10,2)); try_cast(name as int); cast(parts as array<struct<a: bigint, b: string>>);
    at + interval '1' day; day + interval 2 months; at - INTERVAL '1 02:03' day to minute; date '2026-01-01' < day;
    extract(year from at); date_add(day, 1); x'1F'; 1e3; .5; 2BD; 3L; 'a' 'b'; (id + x) * 2; price;
    named_struct('a', x); to_json(struct(*)); to_json(struct(r.*)); dateadd(day, 1, at); array(x, id)
"""


@pytest.mark.spark
def test_expressions_mean_what_they_mean_in_spark(readings: DataFrame) -> None:
    columns = ", ".join(f"{text} as c{number}" for number, text in enumerate(COLUMNS.split(";")))
    assert_same(readings, f"select {columns} from readings r")


STEPS = {
    "chain": [
        "select id + 1 as id, id * 2 as twice, x as AT, at as x -- 'aliases'\n from readings where X <> 3 or id = 1;",
    ],
    "generators": [
        "select r.*, meter.* from readings as r where r.id is not null",
        "select id as Name, name as iD, unit, item from step0 lateral view explode(list) t as item where item > 1",
        "select NAME, id || unit as u, 10 / item as r from step1 where id <> '' and item <> 0",
        "select r, n, v.k from step2 lateral view stack(2, 'r', r, 'seven', 7.0D) v as k, n where n is not null",
        "select k, t.v from step3 lateral view explode(array(r, n)) t as v where r > 2",
    ],
    "explode": ["select id, explode(list) from readings where id < 3"],
    "posexplode": ["select id, posexplode(list) as (p, e) from readings", "select p, e + 1 from step0 where e > 1"],
    "explode of a map": ["select id, t.* from readings lateral view explode(tags) t as k, v"],
    "a variable named like a column": [
        "select x as y, list, id from readings",
        "select y, x, transform(list, x -> x + y) as more from step0 lateral view explode(list) t as x",
        "select transform(array(1, 2), x -> x + step1.x) as l from step1",
    ],
    "explode without a name": ["select explode(tags) from readings", "select key, value + 1 as v from step0"],
    "names by Spark": ["select id + 1, upper(name), x from readings"],
    "alias of an item": ["select id + 1 as more, more * 2 as twice, x from readings"],
    "star without": ["select * except (at, day, meter, x), meter.deep.* from readings"],
    "filtered before": [
        "select 10 / x as q, 10 % x as r, x, list from readings where x <> 0",
        "select 10 / x as q, list[1] as second from step0 where size(list) > 1 and list[1] is null",
    ],
    "filtered within": [
        "select cast(substring(name, 1, 1) as int) as n, x from readings where name rlike '^[0-9]'",
        "select 10 / item as r, item from step0 lateral view explode(array(0, x)) t as item where item <> 0",
        "select 10 / item as r from step1 where 10 / item > 1",
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize("queries", STEPS.values(), ids=STEPS)
def test_steps_mean_what_they_mean_in_spark(readings: DataFrame, queries: list[str]) -> None:
    assert_same(readings, *queries)


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "select id, 10 / x as r, cast(name as int) as n from readings",
        "select id, split(name, ' ')[1] as b, split(name, ' ')[1] || 'x' as c from readings",
        "select id from readings where 10 / x > 1",
        "select id, cast(name as int) as n from readings where 10 / x < 0",
        "select id, explode(transform(list, each -> each / x)) as e from readings",
        "select id, 10 / item as r from readings lateral view explode(array(x, 1)) t as item",
        "select id * 9223372036854775807 as huge, -x as negated, x from readings",
    ],
)
def test_a_row_that_would_stop_spark_is_refused(readings: DataFrame, query: str) -> None:
    assert_same_row_by_row(readings, query)


@pytest.mark.spark
def test_rows_of_one_record_are_refused_one_by_one(readings: DataFrame) -> None:
    queries = (
        "select id, item from readings lateral view explode(array(0, x, 7)) t as item",
        "select id, 21 / item as r from step0 where 21 / item > 2",
        "select id, 12 / (r - 3) as s from step1",
    )
    made, refused = as_columns(readings.where("id < 3"), *queries)
    assert sorted((row.id, row.s) for row in made.collect()) == [(2, 3.0)]
    assert [sorted((row.id, row[1]) for row in each.collect()) for each in refused] == [
        [(1, 0), (1, 0), (2, 0)],
        [(1, 3.0), (2, 3.0)],
    ]
    assert {row[REJECTED] for row in refused[0].collect()} == {REASON}


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "select id, posexplode_outer(list) as (p, e) from readings",
        "select inline(parts) from readings",
        "select stack(2, id, x) as s from readings",
        "select explode(list) as e, explode(parts) as p from readings",
        "select size(array(explode(list))) as e from readings",
        "select id from readings lateral view outer explode(list) t as e",
        "select sum(id) as s from readings",
        "select id, id from readings",
        "select id from readings lateral view stack(2, 1, 2.5) t as s",
        "select id from readings lateral view explode(tags) t as k",
        "select nosuch from readings",
        "select a.id from readings a join readings b on a.id = b.id",
    ],
)
def test_what_would_be_another_table_is_not_computed_so(readings: DataFrame, query: str) -> None:
    with pytest.raises(NotCompilable):
        as_columns(readings, query)


def test_expressions_of_the_definition_name_columns_of_the_rows() -> None:
    rows = Rows({"Id": ("__made__1", "c0"), "n": ("n",), "x": ("e",)})
    assert over_rows("upper(id) || n -- 'n", rows) == "upper(`__made__1`.`c0`) || `n`"
    assert over_rows("to_json(struct(id, n as m))", rows) == "to_json(struct(`__made__1`.`c0` as `id`, `n` as m))"
    assert over_rows("current_date", rows) == "current_date"
    assert over_rows("hash(*)", rows) == "hash(`__made__1`.`c0`, `n`, `e`)"
    for text in ("m + 1", "id, n", "filter(n, e -> e > x)"):
        with pytest.raises(NotCompilable):
            over_rows(text, rows)


NUMBERS = ["id", "X", "r.x", "`id`", "meter.deep.x", "list[0]", "tags['a']", "tags.a", "price", "1", "2.5", "-3L"]
TEXTS = ["name", "`a name`", "r.name", "'it''s'", '"a\'b"', r"r'\d'", "'\\'--'", "'/* x */'", "meter.unit", "'%'"]


def combined(numbers: st.SearchStrategy[str], texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    conditions = st.one_of(
        st.builds("{} {} {}".format, numbers, st.sampled_from(["<", ">=", "<>", "<=>", "is distinct from"]), numbers),
        st.builds("{} not between {} and {}".format, numbers, numbers, numbers),
        st.builds("{} in ({}, {})".format, numbers, numbers, numbers),
        st.builds("{} like {} escape '!'".format, texts, st.sampled_from(["'%s'", "'a!_%'", '"_%"'])),
        st.builds("exists(list, {0} -> {0} > {1})".format, st.sampled_from(["x", "id", "`e`", "e"]), numbers),
        st.builds("{} is null".format, texts),
    )
    return st.one_of(
        st.builds("({} {} {})".format, numbers, st.sampled_from(["+", "-", "*", "&", "/"]), numbers),
        st.builds("case when {} then {} else {} end".format, conditions, numbers, numbers),
        st.builds("aggregate(list, 0, (acc, {0}) -> acc + {0})".format, st.sampled_from(["x", "id", "v"])),
        st.builds("coalesce({}, {})::double".format, numbers, numbers),
        st.builds("length({})".format, texts),
        st.builds("CAST({}AS bigint)".format, st.builds("{} /* as */ -- )\n ".format, numbers)),
        st.builds("if({}, {}, null)".format, conditions, numbers),
        st.builds("struct({}, {} as `x`).`x`".format, st.sampled_from(["id", "x", "name"]), numbers),
    )


EXPRESSIONS = st.recursive(
    st.sampled_from(NUMBERS), lambda numbers: combined(numbers, st.sampled_from(TEXTS)), max_leaves=6
)
ALIASES = st.lists(st.sampled_from(["id", "x", "Name", "`list`", "a", "`b c`"]), min_size=2, max_size=3, unique=True)
WHERES = st.sampled_from(["", " where X > -100", " -- where\n WHERE name <> 'where' AND r.id in (1, 2, 3)"])
QUERIES = st.builds(
    lambda aliases, expressions, where: (
        "select "
        + ", ".join(f"{text} as {alias}" for text, alias in zip(expressions, aliases, strict=False))
        + f" from readings r{where}"
    ),
    ALIASES,
    st.lists(EXPRESSIONS, min_size=3, max_size=3),
    WHERES,
)


def check(readings: DataFrame, query: str) -> None:
    try:
        as_columns(readings, query)
    except NotCompilable:
        return
    assert_same_row_by_row(readings, query)


@pytest.mark.more
@pytest.mark.spark
@settings(max_examples=5)
@given(query=QUERIES)
def test_generated_queries_mean_the_same(readings: DataFrame, query: str) -> None:
    check(readings, query)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=300)
@given(query=QUERIES)
def test_many_generated_queries_mean_the_same(readings: DataFrame, query: str) -> None:
    check(readings, query)
