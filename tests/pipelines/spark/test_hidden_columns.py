"""Internal columns are not seen by SQL, by expressions or by Python functions of a definition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.loading import load_yaml
from odradek.pipelines.definition.model import TopicTarget
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.spark.compiling import Tables
from odradek.pipelines.spark.hidden_columns import (
    ORIGIN,
    HiddenColumn,
    has_origin,
    is_divided,
    without_hidden,
    without_stars,
)
from odradek.pipelines.spark.one_pass.passing import whole_pass
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.sinks.topics import records_of
from odradek.pipelines.spark.steps_sql import run_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Pipeline

pytestmark = pytest.mark.spark

DEFINITION = """
pipeline: hidden
dead_letters: dead
sources:
  readings:
    topic: in
    schema: "id BIGINT, pump BIGINT"
    columns: {row_hash: hash(*)}
steps:
  short:
    sql: select id, pump, to_json(struct(*)) as whole from readings
    expect: {short: {check: length(to_json(struct(*))) < 1000, otherwise: quarantine}}
  totals:
    from: short
    by: [pump]
    aggregate: {rows: count(*), different: count(distinct *), largest: max(to_json(struct(*)))}
  seen: {from: [short], python: "hidden_steps:names", schema: "names STRING"}
sinks:
  all:
    from: short
    topic: out
    key: hash(*)
    headers: {whole: to_json(struct(*))}
  text: {from: short, topic: text, format: text, value: [to_json(struct(*))]}
  totals: {from: totals, topic: totals, mode: update}
  seen: {from: seen, topic: seen}
"""
STEPS = """
from pyspark.sql import functions as F


def names(frame):
    return frame.select(F.lit(" ".join(frame.columns)).alias("names"))
"""
RECORDS: list[tuple[Any, ...]] = [
    (b"k", json.dumps({"id": number, "pump": number % 2}).encode(), "in", 0, number, None, 0, []) for number in range(4)
]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "hidden_steps.py").write_text(STEPS)
    (folder / "p.yml").write_text(DEFINITION)
    definition = load_yaml(str(folder / "p.yml"), {})
    assert definition.pipeline is not None, definition.problems
    return definition.pipeline


@pytest.fixture(scope="module")
def tables(spark: SparkSession, pipeline: Pipeline) -> Tables:
    raw = spark.createDataFrame(RECORDS, RECORD_DDL).coalesce(1)
    return Tables(spark, pipeline, build_graph(pipeline), lambda _source: raw)


def shown(frame: DataFrame) -> list[Any]:
    return sorted(without_hidden(frame).collect())


# Each is like a query below: another function, another union, a comment.
LIKE_OTHERS = [
    ("select to_json(struct(id, *)) as j, id from readings", True),
    ("select *, xxhash64(*) as h from readings", True),
    ("select count(*) as n from readings", False),
    ("select bit_xor(id) as x from readings", False),
    ("select id, pump is distinct from id as d, extract(day from _timestamp) as t from readings", True),
    ("select readings.*, r2.n from readings join (select 1 as n) r2", False),
    ("select distinct pump from readings", False),
    ("select id -- from here\n from readings", True),
    ("select *, id from readings union all select r.*, pump from readings r where id = 2", True),
    ("select *, to_json(struct(r.*)) as j from readings r union all select *, 'x' from readings", False),
    ("select id from readings union select pump from readings", False),
    ("(select id from readings) union all select pump from readings", False),
    ("select id, * from readings union all select pump, * from readings where id = 2", True),
]


@pytest.mark.parametrize(
    ("sql", "keeps_origin"),
    [
        ("select to_json(struct(*)) as j from readings", True),
        ("select to_json(struct(r.*)) as j from readings r", False),
        ("select id from readings where hash(*) <> 0", True),
        ("select id, e from readings lateral view explode(array(hash(id))) as e where hash(*) <> 0", False),
        ("select count(distinct *) as n from readings", False),
        ("select pump, id from readings order by 2 desc limit 2", True),
        ("select *, pump as p from readings order by 1 desc limit 2", False),
        ("select * from readings pivot (max(_offset) for id in (1, 2))", False),
        ("select * from (select * from readings)", False),
        ("select id from readings where id in (select 1)", True),
        ("select id from readings where id in (select max(pump) from readings)", False),
        ("select id, pump from readings where id > 1 union all -- more\nselect id, -pump from readings", True),
        ("select * from readings -- all\nunion all select r.* from readings r union all select * from readings", True),
        ("select *, 1 as x from readings union all select *, 2 from readings", True),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in LIKE_OTHERS),
    ],
)
def test_sql_sees_the_columns_that_users_know(
    spark: SparkSession, tables: Tables, sql: str, keeps_origin: bool
) -> None:
    frame = tables.rows("readings")
    made = run_query(spark, sql, {"readings": frame})
    found = shown(made)
    without_hidden(frame).createOrReplaceTempView("readings")
    expected = spark.sql(sql)
    assert without_hidden(made).columns == expected.columns
    assert found == sorted(expected.collect())
    assert has_origin(made) is keeps_origin
    assert is_divided(made) is (keeps_origin and "union" not in sql and "(select" not in sql)
    if keeps_origin:
        passed_on = run_query(spark, "select *, 1 as one from made", {"made": made})
        assert is_divided(passed_on) is is_divided(made)


def test_internal_columns_cannot_be_named(spark: SparkSession, tables: Tables) -> None:
    with pytest.raises(AnalysisException, match="__origin"):
        run_query(spark, "select __origin.offset from readings", {"readings": tables.rows("readings")})
    with pytest.raises(HiddenColumn, match="__Origin"):
        without_stars("__Origin.offset + 1", ["id"])


def test_expressions_see_the_columns_that_users_know(pipeline: Pipeline, tables: Tables) -> None:
    short = tables.rows("short")
    assert short.count() == len(RECORDS)
    for sink in pipeline.sinks:
        assert isinstance(sink.target, TopicTarget)
        for row in records_of(tables.rows(sink.input), sink, sink.target, pipeline).collect():
            texts = [bytes(row.value).decode(), *(bytes(each.value).decode() for each in row.headers)]
            assert not any("__" in text for text in texts)
    keys = [row[0] for row in short.selectExpr("hash(id, pump, whole)").collect()]
    written = records_of(short, pipeline.sinks[0], pipeline.sinks[0].target, pipeline).collect()  # type: ignore[arg-type]  # a topic
    assert [bytes(row.key).decode() for row in written] == [str(key) for key in keys]
    names = "id pump _key _value _headers _timestamp _topic _partition _offset"
    expected = tables.rows("readings").selectExpr(f"hash({names.replace(' ', ', ')})").collect()
    assert [row.row_hash for row in tables.rows("readings").collect()] == [row[0] for row in expected]


def test_functions_see_the_columns_that_users_know(tables: Tables) -> None:
    assert {row.names for row in tables.rows("seen").collect()} == {"id pump whole"}


def test_stars_are_not_compiled_to_columns(pipeline: Pipeline, spark: SparkSession) -> None:
    raw = spark.createDataFrame(RECORDS, RECORD_DDL)
    flow = next(each for each in split_flows(pipeline, build_graph(pipeline)) if each.root == "readings")
    with pytest.raises(NotLiftable):
        whole_pass(pipeline, flow, raw)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hash(*)", "hash(`id`, `a``b`)"),
        ("count(*) + 2 * 3", "count(*) + 2 * 3"),
        ("count(distinct *)", "count(distinct `id`, `a``b`)"),
        ("concat('*', '(*)') -- *", "concat('*', '(*)') -- *"),
        ("größe * 2", "größe * 2"),
    ],
)
def test_a_star_stands_for_columns(text: str, expected: str) -> None:
    assert without_stars(text, ["id", "a`b"]) == expected


@pytest.mark.parametrize("text", ["struct(* except (id))", "struct(r.*)", "§ + hash(*)", f"hash({ORIGIN})"])
def test_a_star_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(HiddenColumn):
        without_stars(text, ["id"])
