"""DuckDB answers queries of small topics with the columns, types and rows of Spark, or leaves them to Spark."""

from __future__ import annotations

import io
import json
import random
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import fastavro
import pytest
from confluent_kafka import Producer

from odradek.pipelines.definition.model import Pipeline
from odradek.pipelines.spark.query_frames import answer_of, frame_of
from odradek.pipelines.spark.query_tables import Catalog, QueryContext
from odradek.pipelines.spark.reading import small_topics
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.small_reads import NeedsSpark, answer_without_spark
from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DDL = (
    "id BIGINT, n INT, x DOUBLE, ok BOOLEAN, name STRING, at TIMESTAMP, day DATE, tags ARRAY<STRING>, "
    "more STRUCT<a: BIGINT, b: STRUCT<c: STRING>>, by MAP<STRING, DOUBLE>, `odd name` STRING, must BIGINT NOT NULL"
)
AVRO = {
    "type": "record", "name": "reading", "fields": [
        {"name": "id", "type": "long"}, {"name": "x", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}  # fmt: skip
DEFINITION = """
sources:
  readings: {topic: "@avro", format: avro, schema: {file: reading.avsc}}
  lines: {topic: "@raw", format: text}
sinks: {out: {from: readings, topic: "@out"}}
"""
ODD = [
    b"{not json", b"", b"null", b"5", b'"text"', None, {"id": "1", "must": 1}, {"id": 1.5, "must": 1},
    {"id": 2**63, "must": 1}, {"n": 2**31, "must": 1}, {"ok": 1, "must": 1}, {"tags": "a", "must": 1}, {"id": 1},
    {"tags": [1, True, None], "must": 1}, {"more": {"a": "x"}, "must": 1}, {"more": 1, "must": 1}, {"must": None},
    {"name": True, "must": 1}, {"name": 12, "must": 1}, {"x": 3, "must": 1}, {"x": True, "must": 1},
    {"ID": 5, "must": 1},
    {"by": {"a": "x"}, "must": 1}, {"tags": {}, "must": 1},
]  # fmt: skip
UNCERTAIN = [
    b"{'id': 1}", b'[{"id": 1}]', b'{"id": 1, "id": 2}', b'{"x": NaN}', {"name": 1.5}, {"name": {"a": 1}}, {"at": 5},
    {"at": "2026-1-1"}, {"day": "soon"}, {"x": "NaN"},
    b'\xef\xbb\xbf{"id": 1}', b'{"name": "\xff"}', b'{"name": "\\ud800", "must": 1}',
]  # fmt: skip
RAW = "select key, value, timestamp, partition, offset, headers from `@raw`"
QUERIES = (
    "select * from `@json`",
    "select id, ID as other, more.b.c, more.a, by['a'], `odd name`, tags from `@json` where id is not null",
    "select count(*), count(x), count(distinct name), min(x), max(name), max(at), min(day) from `@json`",
    "select name, sum(id) as s, avg(n) as a, sum(n) n from `@json` group by name having count(1) > 1 order by name",
    "select ok, count(*) as c from `@json` group by 1 order by 1 desc, 2",
    "select id + 1, id * n as p, -n as m, x / 2 as h, id % 7 as r, abs(n) from `@json`",
    "select id / n as q from `@json` where n <> 0",
    "select id from `@json` where x > 0.5 and x <= 900.25 or name like 'a%' and not ok",
    "select id from `@json` where id = 3 or n in (1, 2, 5) or name in ('a', 'é') or x between 1 and 2.5",
    "select id from `@json` where id != 3 and at >= timestamp'2026-01-02 00:00:00' and day < date'2026-03-01'",
    "select distinct name, ok from `@json` where more.a is null",
    "select a.id, b.n as bn, a.name from `@json` a join `@json` b on a.id = b.id and b.n > a.n where a.id < 20",
    "select a.id, b.id as other from `@json` a left join (select id from `@json` where ok) b on a.id = b.id + 1",
    "with q as (select name, count(*) as c from `@json` group by name) select c, count(*) as names from q group by c",
    "select id from (select id, row_number() over (partition by name order by id, _offset) r from `@json`) where r = 1",
    "select case when x > 1 then 'high' when x is null then null else 'low' end as z, count(*) from `@json` group by 1",
    "select coalesce(name, 'none') as name, coalesce(n, 0) as n from `@json`",
    "select cast(id as string) as t, cast(n as bigint) as b, cast(n as double) as d from `@json`",
    "select lower(name) as l, upper(name) as u, length(name) as n from `@json` where name in ('a', 'ab', 'B')",
    "select id, name from `@json` order by name desc, id, n, x, _offset limit 5",
    "select name <=> null as same, ok and x > 1 as both, not ok as no from `@json`",
    "select _key, _value, _timestamp, _topic, _partition, _offset, _headers from `@json`",
    RAW,
    "select key, count(*) as n, max(timestamp) as last from `@raw` group by key",
    "select headers['sent'] as sent, length(value) as n from `@raw` where key = 'k1'",
    "select key as k, partition p from `@raw` where value is null or value = '' or key = \"k1\"",
    "select * from readings",
    "select id, x, at, tags['a'] as a, _offset from readings where x > 0 order by id, _offset",
    "select value, _partition from lines",
    "select id - 1, id - x as d, avg(x) over (partition by id) as m from readings",
)
LEFT_TO_SPARK = (
    "select explode(tags) as tag from `@json`", "select id from `@json` union all select n from `@json`",
    "select tags[0] as t from `@json`", "select concat(name, 'x') as c from `@json`", "select rand() as r from `@json`",
    "select cast(x as bigint) as n from `@json`", "select id / 0 as n from `@json`", "select id + (-1) from `@json`",
    "select name || 'x' as n from `@json`", "select id from `@json` where name = 1",
    "select day - day as d from `@json`",
    "select sum(name) as s from `@json`", "select upper(name) as u from `@json` where name = 'é'", "select 1 as one",
    "select avg(x * 1.5) as a from `@json`", "select a.* from `@json` a join `@json` b using (id)",
    "select id from `@json` group by all", "select sum(s.id) from `@json` s",
    "select length(value) as n from `@raw`",
)  # fmt: skip


def drawn(chance: random.Random) -> dict[str, Any]:
    """A record that fits the schema; fields are missing or null here and there."""
    record: dict[str, Any] = {
        "id": chance.randint(-3, 30), "n": chance.choice([0, 1, 2, 5, -7, 2**31 - 1]),
        "x": chance.choice([0.5, 1, -2.25, 1e20, 3.0, 1e-7, 900.25]), "ok": chance.random() < 0.5,
        "name": chance.choice(["a", "ab", "B", "é", "", " a", "NaN", "z\\%", "\u2028\t\"'"]),
        "at": chance.choice(["2026-01-01T12:00:00Z", "2026-01-02 00:00:00", "2026-02-03T04:05:06.789012+02:00"]),
        "day": chance.choice(["2026-01-31", "2026-03-01"]), "tags": chance.choice([[], ["a"], ["b", None, "ü"]]),
        "more": chance.choice([{"a": 1, "b": {"c": "x"}}, {"a": None}, {"b": {}}, {"a": 7, "zzz": [1]}]),
        "by": chance.choice([{}, {"a": 1.5}, {"a": None, "b": 2}]), "odd name": "o", "must": 1, "unknown": {"a": [1]},
    }  # fmt: skip
    for name in list(record):
        if chance.random() < 0.15:
            record |= {name: None} if name != "must" else {}
        elif chance.random() < 0.1 and name != "must":
            del record[name]
    return record


class Answers:
    """The rows of queries by DuckDB and by Spark, as sorted lines of JSON. Spark reads each table once."""

    def __init__(self, stage: Stage, context: QueryContext) -> None:
        self.stage, self.catalog, self.read = stage, Catalog(context), set[str]()

    def of(self, text: str) -> tuple[list[str], list[str]]:
        query = text.replace("@", f"{self.stage.prefix}-")
        small = answer_without_spark(self.catalog, query)
        for name, table in self.catalog.tables(query).items():
            if name not in self.read:
                self.read.add(name)
                frame_of(self.stage.spark, self.catalog, table).cache().createOrReplaceTempView(f"`{name}`")
        whole = answer_of(self.stage.spark.sql(query))
        assert small.names == whole.names, text
        found = [[json.dumps(row, sort_keys=True) for row in each.rows] for each in (small, whole)]
        return sorted(found[0]), sorted(found[1])


def fill(stage: Stage) -> QueryContext:
    """Topics of JSON, Avro and other records, a third of which are not as their schema says."""
    chance = random.Random(32)
    for name in ("json", "avro", "raw"):
        stage.create(name)
    values = [drawn(chance) for _ in range(120)]
    for index, each in enumerate([*values[:60], *ODD, *values[60:]]):
        stage.produce("json", [each], partition=index % 2, key=f"k{index % 3}", timestamp=1_767_225_600_123 + index)
    producer = Producer({"bootstrap.servers": stage.bootstrap_servers})
    for index in range(30):
        stream = io.BytesIO()
        at = datetime(2026, 1, 1, 0, 0, index, 123456, UTC)
        row = {
            "id": index % 7,
            "x": None if index % 3 else index / 7,
            "at": at,
            "tags": {"a": str(index)} if index % 2 else {},
        }
        fastavro.schemaless_writer(stream, AVRO, row)
        value = b"no avro" if index == 5 else None if index == 6 else stream.getvalue()
        producer.produce(stage.topic("avro"), value, f"k{index % 3}", partition=index % 2)
    raw: list[tuple[bytes | None, bytes | None, Any]] = [
        (None, None, None),
        (b"k1", b"text", [("sent", b"x"), ("other", None)]),
        (b"\xff", b"\xc3(\xe2\x82", [("a", b"\xff")]),
    ]
    for key, value, headers in [*raw, (b"k1", b"", []), ("é".encode(), '{"a": "ü"}'.encode(), [])]:
        producer.produce(stage.topic("raw"), value, key, headers=headers or None, partition=0)
    assert producer.flush(60) == 0
    (stage.folder / "reading.avsc").write_text(json.dumps(AVRO))
    return QueryContext(stage.pipeline(DEFINITION), schemas={stage.topic("json"): DDL})


@pytest.fixture
def topics(bootstrap_server: str, tmp_path: Path) -> Stage:
    """A stage without Spark."""
    return Stage(cast("SparkSession", None), bootstrap_server, tmp_path)


def answer(stage: Stage, text: str, context: QueryContext) -> list[dict[str, Any]]:
    return list(answer_without_spark(Catalog(context), text.replace("@", f"{stage.prefix}-")).rows)


@pytest.mark.spark
def test_duckdb_and_spark_give_the_same_answers(stage: Stage) -> None:
    answers = Answers(stage, fill(stage))
    assert [text for text in QUERIES[:3] if len(set(map(tuple, answers.of(text)))) > 1] == []


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_duckdb_and_spark_give_the_same_answers_to_all_queries(stage: Stage) -> None:
    answers = Answers(stage, fill(stage))
    assert [text for text in QUERIES if len(set(map(tuple, answers.of(text)))) > 1] == []


def test_queries_that_duckdb_might_answer_in_another_way_are_left_to_spark(topics: Stage) -> None:
    context = fill(topics)
    for text in LEFT_TO_SPARK:
        with pytest.raises(NeedsSpark):
            answer(topics, text, context)
    for text in QUERIES:
        answer(topics, text, context)
    with pytest.raises(PipelineError, match="there is no column 'idd'; did you mean 'id'"):
        answer(topics, "select idd from `@json`", context)


def test_a_topic_has_keys_and_values_as_text(topics: Stage) -> None:
    topics.create("raw")
    topics.produce("raw", [b"one", None, b"\xff"], key="k", timestamp=1_767_225_600_123)
    context = QueryContext(Pipeline("sql", bootstrap_servers=topics.bootstrap_servers))
    first = {"key": "k", "value": "one", "timestamp": "2026-01-01T00:00:00.123Z", "partition": 0, "offset": 0}
    assert answer(topics, "select * from `@raw` limit 1", context) == [first | {"headers": {"sent": "by test"}}]
    assert answer(topics, "select value, headers['sent'] from `@raw` where offset > 0", context) == [
        {"value": None, "headers[sent]": "by test"}, {"value": "\ufffd", "headers[sent]": "by test"},
    ]  # fmt: skip


def test_without_duckdb_the_extra_is_named(topics: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    topics.create("raw")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    context = QueryContext(Pipeline("sql", bootstrap_servers=topics.bootstrap_servers))
    with pytest.raises(NeedsSpark, match=r"pip install 'odradek\[sql\]'"):
        answer(topics, "select value from `@raw`", context)


@pytest.mark.parametrize("value", UNCERTAIN, ids=repr)
def test_what_only_spark_can_judge_is_left_to_it(topics: Stage, value: Any) -> None:
    topics.create("json")
    topics.produce("json", [{"id": 1, "must": 1}, value | {"must": 1} if isinstance(value, dict) else value])
    context = QueryContext(
        Pipeline("sql", bootstrap_servers=topics.bootstrap_servers), schemas={topics.topic("json"): DDL}
    )
    with pytest.raises(NeedsSpark):
        answer(topics, "select id from `@json`", context)


@pytest.mark.more
@pytest.mark.spark
def test_columns_are_inferred_as_spark_infers_them(stage: Stage) -> None:
    stage.create("json")
    values = [
        {"b": 1, "a": "x", "n": None, "m": {"z": 1, "y": []}, "l": [1, 2.5]}, b"no object",
        {"b": 2.5, "m": {"x": True}}, {"a": None, "l": [], "late": "x"},
    ]  # fmt: skip
    stage.produce("json", values)
    plain = Pipeline("sql", bootstrap_servers=stage.bootstrap_servers)
    small, whole = Answers(stage, QueryContext(plain, inferred=frozenset({stage.topic("json")}))).of(
        "select * from `@json`"
    )
    assert small == whole


def test_large_topics_are_left_to_spark(topics: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    topics.create("json")
    topics.produce("json", [{"id": 1}] * 3)
    context = QueryContext(Pipeline("sql", bootstrap_servers=topics.bootstrap_servers))
    monkeypatch.setattr(small_topics, "MOST_BYTES", 20)
    with pytest.raises(NeedsSpark, match="has more than 0 MB"):
        answer(topics, "select value from `@json`", context)
    monkeypatch.setattr(small_topics, "MOST_RECORDS", 2)
    with pytest.raises(NeedsSpark, match="has 3 records, more than 2"):
        answer(topics, "select value from `@json`", context)
