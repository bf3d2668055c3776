"""DuckDB answers queries of small topics in Spark's SQL, or leaves them to Spark."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from odradek.pipelines.definition.model import Pipeline
from odradek.pipelines.spark import querying
from odradek.pipelines.spark.previewing import answer_of, frame_of
from odradek.pipelines.spark.query_tables import Catalog, QueryContext
from odradek.pipelines.spark.querying import NeedsSpark, answer_without_spark, in_duckdb
from odradek.pipelines.spark.reading import small_topics
from odradek.pipelines.spark.sessions import session as sessions
from odradek.pipelines.spark.sessions.failures import PipelineError
from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DDL = (
    "id BIGINT, x DOUBLE, ok BOOLEAN, name STRING, at TIMESTAMP, day DATE, tags ARRAY<STRING>, "
    "more STRUCT<a: BIGINT, b: STRUCT<c: STRING>>, by MAP<STRING, DOUBLE>, `odd name` STRING, must BIGINT NOT NULL"
)
FIRST = {
    "id": 1, "x": 0.5, "ok": True, "name": "a", "at": "2026-01-02T03:04:05Z", "day": "2026-01-31", "tags": ["a", None],
    "more": {"a": 1, "b": {"c": "x"}}, "by": {"k": 1.5}, "odd name": "o", "must": 1,
}  # fmt: skip
RECORDS = [FIRST, {"id": 2, "name": "b", "must": 2}, {"id": 3}, b"{no json", b"5", None, {"id": 4, "x": 2, "must": 4}]
DEFINITION = """
sources:
  lines: {topic: "@json", format: text}
  both: {topics: ["@json", "@raw"], format: bytes, tombstones: rows}
  changed: {topic: "@json", format: text, columns: {n: length(value)}}
  records: {topic: "@json", format: avro, schema: {type: record, name: r, fields: [{name: id, type: long}]}}
sinks: {out: {from: lines, topic: "@out"}}
"""
QUERIES = (
    "select * from `@json`",
    "select id, more.b.c, by['k'], `odd name` as o, size(tags) as n from `@json` where id is not null order by id",
    "select name, sum(id) as s, count(*) as n from `@json` group by name having count(1) > 0 order by name",
    "select a.id from `@json` a left join `@json` b on a.id = b.id + 1 where a.at > timestamp'2026-01-01 00:00:00'",
    "select id from (select id, row_number() over (order by x desc) as r from `@json`) where r = 1",
    "select value, _offset from lines where _partition = 0",
    "select count(*) as n from both",
    "select key, value, partition, offset, headers['sent'] as sent from `@raw`",
)


@pytest.fixture
def topics(bootstrap_server: str, tmp_path: Path) -> Stage:
    """A stage without Spark."""
    return Stage(cast("SparkSession", None), bootstrap_server, tmp_path)


def fill(stage: Stage) -> QueryContext:
    for name in ("json", "raw"):
        stage.create(name)
    stage.produce("json", RECORDS)
    stage.produce("raw", [b"one", None], key="k", timestamp=1_767_225_600_123)
    return QueryContext(stage.pipeline(DEFINITION), schemas={stage.topic("json"): DDL})


def bare(stage: Stage, *inferred: str) -> QueryContext:
    pipeline = Pipeline("sql", bootstrap_servers=stage.bootstrap_servers)
    return QueryContext(pipeline, inferred=frozenset(map(stage.topic, inferred)))


def answer(stage: Stage, text: str, context: QueryContext) -> list[dict[str, Any]]:
    return list(answer_without_spark(Catalog(context), text.replace("@", f"{stage.prefix}-"), print).rows)


@pytest.mark.spark
def test_duckdb_and_spark_give_the_same_rows(stage: Stage) -> None:
    context = fill(stage)
    for text in QUERIES:
        catalog, query = Catalog(context), text.replace("@", f"{stage.prefix}-")
        for name, table in catalog.tables(query).items():
            frame_of(stage.spark, catalog, table).createOrReplaceTempView(f"`{name}`")
        expected = list(answer_of(stage.spark.sql(query)).rows)
        found = [list(each.values()) for each in answer(stage, text, context)]
        assert sorted(map(repr, found)) == sorted(repr(list(each.values())) for each in expected), text


def test_a_topic_is_joined_with_a_table(topics: Stage) -> None:
    url = f"sqlite:///{topics.folder / 'w.db'}"
    with closing(sqlite3.connect(topics.folder / "w.db")) as connection, connection:
        connection.execute("create table pumps (pump bigint, name text)")
        connection.execute("insert into pumps values (1, 'a'), (2, 'b')")
    context = replace(fill(topics), warehouse=url)
    query = "select p.name, j.x from PUMPS p join `@json` j on p.pump = j.id order by p.pump"
    assert answer(topics, query, context) == [{"name": "a", "x": 0.5}, {"name": "b", "x": None}]


def test_a_field_that_does_not_fit_is_null(topics: Stage) -> None:
    context = fill(topics)
    topics.produce("json", [{"id": each, "must": 7} for each in ("text", "5", 1.5, -(2**62))])
    found = answer(topics, "select id, must from `@json` where must > 4", context)
    assert found == [{"id": each, "must": 7} for each in (None, None, None, -(2**62))]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select * from records", "records is avro"),
        ("select * from changed", "changed is not the records of a topic as they are"),
        ("select java_method('java.lang.Math', 'abs', id) from `@json`", "DuckDB may answer differently: JAVA_METHOD"),
        ("select left(id, 1) from `@json`", "DuckDB says: Binder Error"),
    ],
)
def test_other_queries_are_left_to_spark_with_the_reason(topics: Stage, text: str, reason: str) -> None:
    with pytest.raises(NeedsSpark, match=reason):
        answer(topics, text, fill(topics))


@pytest.mark.parametrize(
    "expression",
    [
        "cast(x as int)", "cast(at as bigint)", "dayofweek(day)", "weekday(day)", "percentile(x, 0.5)",
        "percentile_approx(x, 0.5)", "hash(id)", "array_position(tags, 'b')", "date_add(day, 1)", "date_sub(day, 1)",
        "add_months(day, 1)", "day + interval 1 day", "extract(second from at)", "cast(at as string)", "floor(x)",
        "regexp_replace(name, 'a', '$0')",
    ],
)  # fmt: skip
def test_what_duckdb_computes_differently_is_left_to_spark(expression: str) -> None:
    with pytest.raises(NeedsSpark, match="DuckDB may answer differently: "):
        in_duckdb(f"select {expression} from t")


def test_inferred_integers_have_a_sign(topics: Stage) -> None:
    topics.create("json")
    topics.produce("json", [{"a": 1, "l": [2], "o": {"UBIGINT": 3}}])
    query = "select a - 2 as a, l[0] - 3 as l, o.UBIGINT - 4 as o from `@json`"
    assert answer(topics, query, bare(topics, "json")) == [{"a": -1, "l": -1, "o": -1}]


@pytest.mark.parametrize("kind", ["bigint", "numeric"])
def test_a_table_of_mixed_values_is_named(topics: Stage, kind: str) -> None:
    with closing(sqlite3.connect(topics.folder / "w.db")) as connection, connection:
        connection.execute(f"create table pumps (pump {kind})")
        connection.execute("insert into pumps values (1), ('text')")
    context = replace(fill(topics), warehouse=f"sqlite:///{topics.folder / 'w.db'}")
    with pytest.raises(PipelineError, match="the rows of table 'pumps' cannot be read: "):
        answer(topics, "select p.pump, j.x from pumps p join `@json` j on p.pump = j.id", context)


def test_a_table_in_a_query_of_spark_is_refused_before_spark_starts(
    topics: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(topics.folder / "w.db")) as connection, connection:
        connection.execute("create table pumps (pump bigint)")
    monkeypatch.setattr(sessions, "start_session", lambda *_all, **_named: pytest.fail("Spark was started"))
    context = replace(fill(topics), warehouse=f"sqlite:///{topics.folder / 'w.db'}")
    query = f"select hash(p.pump) from pumps p join `{topics.topic('json')}` j on p.pump = j.id"
    refused = r"needs Spark \(DuckDB may .*HASH.*'pumps' of a database; .* as a jdbc source"
    with pytest.raises(PipelineError, match=refused), querying.answer(query, context, {}, None, print):
        pass


def test_a_note_says_that_duckdb_answers(topics: Stage) -> None:
    topics.create("raw")
    said: list[str] = []
    with querying.answer(f"select value from `{topics.topic('raw')}`", bare(topics), {}, None, said.append):
        assert said == ["DuckDB answers this query; --master 'local[*]' asks Spark"]


def test_a_column_that_does_not_exist_is_named(topics: Stage) -> None:
    with pytest.raises(PipelineError, match=r'"idd" not found.*"id"'):
        answer(topics, "select idd from `@json`", fill(topics))


def test_a_topic_has_keys_and_values_as_text(topics: Stage) -> None:
    topics.create("raw")
    topics.produce("raw", [b"one", None, b"\xff"], key="k", timestamp=1_767_225_600_123)
    first = {"key": "k", "value": "one", "timestamp": "2026-01-01T00:00:00.123Z", "partition": 0, "offset": 0}
    assert answer(topics, "select * from `@raw` limit 1", bare(topics)) == [first | {"headers": {"sent": "by test"}}]
    assert answer(topics, "select value, headers['sent'] as h from `@raw` where offset > 0", bare(topics)) == [
        {"value": None, "h": "by test"}, {"value": "\\xFF", "h": "by test"},
    ]  # fmt: skip


def test_columns_are_inferred(topics: Stage) -> None:
    topics.create("json")
    topics.produce("json", [{"b": 1, "m": {"z": 1}}, b"no object", {"b": 2.5, "a": "it's"}])
    assert answer(topics, "select b, m.z, a, _offset from `@json`", bare(topics, "json")) == [
        {"b": 1, "z": 1, "a": None, "_offset": 0},
        {"b": 2.5, "z": None, "a": "it's", "_offset": 2},
    ]
    topics.create("text")
    topics.produce("text", [b"text"])
    with pytest.raises(PipelineError, match="has no records that are JSON objects"):
        answer(topics, "select * from `@text`", bare(topics, "text"))


def test_a_query_reads_no_files(topics: Stage) -> None:
    with pytest.raises(NeedsSpark, match="disabled"):
        answer(topics, "select * from read_csv('/etc/hostname') as f, `@json`", fill(topics))


def test_without_duckdb_the_extra_is_named(topics: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    topics.create("raw")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(NeedsSpark, match=r"pip install 'odradek\[sql\]'"):
        answer(topics, "select value from `@raw`", bare(topics))


def test_large_topics_are_left_to_spark(topics: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    topics.create("json")
    topics.produce("json", [{"id": 1}] * 3)
    monkeypatch.setattr(small_topics, "MOST_BYTES", 20)
    with pytest.raises(NeedsSpark, match="has more than 0 MB"):
        answer(topics, "select value from `@json`", bare(topics))
    monkeypatch.setattr(small_topics, "MOST_RECORDS", 2)
    with pytest.raises(NeedsSpark, match="has 3 records, more than 2"):
        answer(topics, "select value from `@json`", bare(topics))
