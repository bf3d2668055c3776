"""What Spark accepts and the promise does not is found in the analysed plan; a plan that cannot be read is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.spark.analysing.plan_walk import (
    CastFound,
    PlanUnreadable,
    implicit_casts,
    random_part,
    stateful_operator,
)
from odradek.pipelines.spark.sessions.private_names import ANALYSING, NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    """A stream and a static table that SQL reads as `s` and `t`."""
    rows = spark.readStream.format("rate").load()
    stream = rows.selectExpr(
        "value as id", "timestamp as at", "cast(value as string) as customer", "array('1') as texts",
        "named_struct('a', '1') as st",
    ).withWatermark("at", "1 minute")  # fmt: skip
    stream.createOrReplaceTempView("s")
    spark.sql("select 1L as id, '1' as customer").createOrReplaceTempView("t")
    return stream


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select sum(customer) as n from s", [CastFound("s.customer", "DOUBLE")]),
        ("select id + customer as n from s", [CastFound("s.customer", "BIGINT")]),
        ("select s.id from s join t on s.id = t.customer", [CastFound("t.customer", "BIGINT")]),
        ("select coalesce(id, customer) as n from s", [CastFound("s.customer", "BIGINT")]),
        ("select date_format(customer, 'd') as n from s", [CastFound("s.customer", "TIMESTAMP")]),
        ("select id from s where id in (select customer from t)", [CastFound("t.customer", "BIGINT")]),
        ("select double(customer) as n from s", [CastFound("s.customer", "DOUBLE")]),  # Spark marks no such cast
        ("select transform(texts, each -> each + id) as n from s", [CastFound("namedlambdavariable()", "BIGINT")]),
        ("select cast(customer as bigint) + id as n, try_cast(customer as date) as d from s", []),
        ("select customer::bigint as n, st.a as a from s", []),
        ("select id from s where at > '2026-01-01' and id <> '7'", []),
        ("select concat(customer, id) as n, id || 'x' as m from s where customer = 'x'", []),
    ],
)
def test_casts_of_strings_are_those_that_nobody_wrote(stream: DataFrame, query: str, found: list[CastFound]) -> None:
    assert implicit_casts(stream.sparkSession.sql(query)) == found


def test_a_cast_by_the_functions_of_columns_is_written(stream: DataFrame) -> None:
    assert implicit_casts(stream.select(F.col("customer").cast("bigint"), F.expr("customer").try_cast("int"))) == []


PYTHON: dict[str, tuple[Callable[[DataFrame], DataFrame], str | None]] = {
    "filter": (lambda frame: frame.where("id > 1").select("id"), None),
    "generator": (lambda frame: frame.select(F.explode("texts")), None),
    "union": (lambda frame: frame.select("id").union(frame.select("id")), None),
    "reordered": (lambda frame: frame.repartition(3), None),
    "table": (lambda frame: frame.join(frame.sparkSession.table("t"), "id", "left"), None),
    "observed": (lambda frame: frame.observe("n", F.count(F.lit(1))), None),
    "group": (lambda frame: frame.groupBy("id").count(), "Aggregate"),
    "distinct": (lambda frame: frame.select("id").distinct(), "Deduplicate"),
    "first rows": (lambda frame: frame.dropDuplicates(["id"]), "Deduplicate"),
    "kept table": (lambda frame: frame.join(frame.sparkSession.table("t"), "id", "right"), "RightOuter join"),
    "streams": (lambda frame: frame.alias("a").join(frame.alias("b"), F.expr("a.id = b.id")), "Inner join"),
    "static rows": (
        lambda frame: frame.select("id").union(frame.sparkSession.table("t").select("id")),
        "Union with a static table",
    ),
    "limit": (lambda frame: frame.limit(3), "GlobalLimit"),
    "sort": (lambda frame: frame.orderBy("id"), "Sort"),
}


@pytest.mark.parametrize("name", PYTHON)
def test_operators_with_state_are_found(stream: DataFrame, name: str) -> None:
    made, found = PYTHON[name]
    assert stateful_operator(made(stream)) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select id + rand() as n from s", "rand()"),
        ("select id from s where uuid() > 'a'", "uuid()"),
        ("select upper(uuid()) as n from s", "uuid()"),
        ("select shuffle(texts) as n from s", "shuffle()"),
        ("select s.id from s join (select id, rand() as n from t) using (id)", None),
        ("select hash(id) as n, current_timestamp() as a from s", None),
    ],
)
def test_random_parts_are_found(stream: DataFrame, query: str, found: str | None) -> None:
    assert random_part(stream.sparkSession.sql(query)) == found


def test_samples_are_random_and_functions_of_users_are_theirs(stream: DataFrame) -> None:
    assert random_part(stream.sample(0.5)) == "sample()"
    own = F.udf(lambda value: value, "bigint").asNondeterministic()
    assert random_part(stream.select(own("id"))) is None


WALKED = {"frame", "execution", "analyzed", "node", "children"}
READ: dict[Callable[[DataFrame], object], set[str]] = {
    implicit_casts: WALKED | {"jvm", "expressions", "contains", "tag", "cast pattern", "written cast"},
    stateful_operator: WALKED | {"is streaming"},
    random_part: WALKED | {"is streaming", "expressions", "deterministic", "function"},
}


@pytest.mark.parametrize("read", READ)
def test_a_plan_is_unreadable_without_any_of_the_names(
    stream: DataFrame, monkeypatch: pytest.MonkeyPatch, read: Callable[[DataFrame], object]
) -> None:
    frame = stream.selectExpr("id + customer + rand() as n").where("n > 1")
    for key in READ[read]:
        with monkeypatch.context() as patched:
            patched.setitem(NAMES, key, replace(NAMES[key], path=f"{NAMES[key].path}Renamed"))
            with pytest.raises(PlanUnreadable, match="has changed a private name"):
                read(frame)


def test_every_name_of_a_plan_is_read() -> None:
    assert {key for key, name in NAMES.items() if name.use is ANALYSING} <= set().union(*READ.values())
