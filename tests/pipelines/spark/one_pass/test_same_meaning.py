"""A query that is compiled to columns of one pass has the result of plain Spark SQL; others are not compiled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from tests.pipelines.spark.one_pass.lifting import assert_same, lifted, plain, results

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = """id BIGINT, x INT, name STRING, at TIMESTAMP, day DATE, price DOUBLE, `a name` STRING, flag BOOLEAN,
list ARRAY<INT>, meter STRUCT<unit: STRING, deep: STRUCT<x: INT>>, tags MAP<STRING, INT>,
parts ARRAY<STRUCT<x: INT, name: STRING>>"""
AT = datetime(2026, 1, 31, 23, 59, 1, tzinfo=UTC)
ROWS = [
    (1, 0, "it's", AT, AT.date(), 0.5, "é", True, [1, 2], ("bar", (1,)), {"a": 1, "b": 2}, [(1, "p"), (2, None)]),
    (2, 3, 'say "a_b"', AT, AT.date(), float("nan"), "", False, [], ("kPa", None), {}, []),
    (3, -7, "a\\b`c", AT, AT.date(), -1e300, "--", None, [5, None, 7], None, {"a": None}, [(0, "q")]),
    (None, None, None, None, None, None, None, None, None, None, None, None),
]


@pytest.fixture(scope="session")
def readings(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1)


COLUMNS = r"""
    date_format(at, "'day' d"); 'it''s'; "a""b"; r'\d'; '\'--'; "/*"; /* 'x */ name -- ' end
    ; ID; `a name`; R.x; meter.Unit; meter.deep.X; parts.x; tags['a']; tags.b; element_at(tags, 'a'); get(parts, 0).x;
    name like '%\_%'; name like '%!_%' escape '!'; name rlike "a|'"; x in (0, 3); x not between -1 and 2; -x; ~x;
    transform(list, v -> v + r.x + id); aggregate(list, 0, (a, b) -> a); filter(parts, p -> p.x > x).name;
    to_json(struct(id, name, meter.unit as u, x + 1)); struct(id, x).x; case x when 0 then 'zero' else name end;
    case when x > 0 then 1 end; if(flag, x, id); not flag; ! flag; x is distinct from 3; x <=> null; x::string || '!';
    cast(x as decimal(10,2)); try_cast(name as int); cast(parts as array<struct<a: bigint, b: string>>);
    at + interval '1' day; day + interval 2 months; at - INTERVAL '1 02:03' day to minute; date '2026-01-01' < day;
    extract(year from at); date_add(day, 1); x'1F'; 1e3; .5; 2BD; 3L; 'a' 'b'; (id + x) * 2; price; named_struct('a', x)
"""


def test_lifted_expressions_mean_what_plain_ones_mean(readings: DataFrame) -> None:
    columns = ", ".join(f"{text} as c{number}" for number, text in enumerate(COLUMNS.split(";")))
    assert_same(readings, f"select {columns} from readings r")


STEPS = [
    ["select id + 1 as id, id * 2 as twice, x as AT, at as x -- 'aliases'\n from readings where X <> 3 or id = 1;"],
    [
        "select r.*, meter.* from readings as r where r.id is not null",
        "select id as Name, name as iD, unit, item from step0 lateral view explode(list) as item where item > 1",
        "select NAME, id || unit as u, 10 / item as r from step1 where id <> '' and item <> 0",
        "select r, n, v.k from step2 lateral view stack(2, 'r', r, 'seven', 7.0D) v as k, n where n is not null",
        "select k, t.v from step3 lateral view explode(array(r, n)) t as v where r > 2",
    ],
]


@pytest.mark.parametrize("queries", STEPS)
def test_lifted_steps_mean_what_plain_ones_mean(readings: DataFrame, queries: list[str]) -> None:
    assert_same(readings, *queries)


@pytest.mark.parametrize(
    "queries",
    [
        [
            "select 10 / x as q, 10 % x as r, x, list from readings where x <> 0",
            "select 10 / x as q, list[1] as second from step0 where size(list) > 1 and list[1] is null",
        ],
        [
            "select cast(substring(name, 1, 1) as int) as n, x from readings where name rlike '^[0-9]'",
            "select 10 / item as r, item from step0 lateral view explode(array(0, x)) as item where item <> 0",
            "select 10 / item as r from step1 where 10 / item > 1",
        ],
    ],
)
def test_rows_that_are_filtered_raise_no_errors(readings: DataFrame, queries: list[str]) -> None:
    assert_same(readings, *queries)


@pytest.mark.parametrize("query", ["select 10 / x as r from readings", "select cast(name as int) as n from readings"])
def test_errors_of_rows_that_exist_are_raised_in_both_ways(readings: DataFrame, query: str) -> None:
    for way in (lifted, plain):
        with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT"):
            way(readings, query).collect()


@pytest.mark.parametrize(
    "query",
    [
        "select explode(list) as e from readings",
        "select id, posexplode_outer(list) as (p, e) from readings",
        "select inline(parts) from readings",
        "select stack(2, id, x) as s from readings",
        "select json_tuple(name, 'a') as j from readings",
        "select sum(id) as s from readings",
        "select bit_xor(id) as s from readings",
        "select row_number() over (order by id) as n from readings",
        "select distinct id from readings",
        "select id from readings limit 1",
        "select rand() as r from readings",
        "select uuid() as u from readings",
        "select shuffle(list) as s from readings",
        "select monotonically_increasing_id() as m from readings",
        "select if(x = 0, raise_error('x'), x) as e from readings",
        "select assert_true(x = 0) as e from readings",
        "select to_json(struct(*)) as j from readings",
        "select hash(*) as h from readings",
        "select arrays_zip(list, parts) as z from readings",
        "select id + 1 as more, more * 2 as twice from readings",
        "select id, id from readings",
        "select dateadd(day, 1, at) as d from readings",
        "select id from readings lateral view stack(2, 1, 2.5) as s",
        "select id from readings lateral view explode(tags) as k",
        "select transform(list, x -> x + readings.x) as l from readings",
        "select filter(list, list -> list > 0) as l from readings where filter(list, id -> readings.id > id)[0] > 1",
    ],
)
def test_what_is_not_known_to_be_safe_is_not_lifted(readings: DataFrame, query: str) -> None:
    with pytest.raises(NotLiftable):
        lifted(readings, query)


NUMBERS = [
    "id",
    "X",
    "readings.x",
    "`id`",
    "meter.deep.x",
    "list[0]",
    "tags['a']",
    "tags.a",
    "price",
    "1",
    "2.5",
    "-3L",
]
TEXTS = ["name", "`a name`", "r.name", "'it''s'", '"a\'b"', r"r'\d'", "'\\'--'", "'/* x */'", "meter.unit", "'%'"]


def combined(numbers: st.SearchStrategy[str], texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    conditions = st.one_of(
        st.builds("{} {} {}".format, numbers, st.sampled_from(["<", ">=", "<>", "<=>", "is distinct from"]), numbers),
        st.builds("{} not between {} and {}".format, numbers, numbers, numbers),
        st.builds("{} in ({}, {})".format, numbers, numbers, numbers),
        st.builds("{} like {} escape '!'".format, texts, st.sampled_from(["'%s'", "'a!_%'", '"_%"'])),
        st.builds("exists(list, {0} -> {0} > {1})".format, st.sampled_from(["x", "id", "`e`", "E"]), numbers),
        st.builds("{} is null".format, texts),
    )
    return st.one_of(
        st.builds("({} {} {})".format, numbers, st.sampled_from(["+", "-", "*", "&"]), numbers),
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


def outcome(frame: DataFrame) -> object:
    """The result, or the kind of the error."""
    try:
        return results(frame)
    except Exception as error:
        kind = getattr(error, "getCondition", lambda: None)()
        if kind is None:
            raise
        return kind


def check(readings: DataFrame, query: str) -> None:
    query = query.replace("readings.x", "r.x")
    try:
        compiled = lifted(readings, query)
    except NotLiftable:
        return
    assert outcome(compiled) == outcome(plain(readings, query))


@settings(max_examples=5)
@given(query=QUERIES)
def test_generated_queries_mean_the_same(readings: DataFrame, query: str) -> None:
    check(readings, query)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=500)
@given(query=QUERIES)
def test_many_generated_queries_mean_the_same(readings: DataFrame, query: str) -> None:
    check(readings, query)
