"""SQL over topics, sources, steps and the tables of a warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.model import Pipeline
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark import previewing, querying
from odradek.pipelines.spark.previewing import answer_of, ask, checked_name, rows_of, with_recent_start
from odradek.pipelines.spark.query_tables import Catalog, QueryContext, distinct_names
from odradek.pipelines.spark.sessions import session as sessions
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.topics import BrokersUnavailable, Cluster, check_topics
from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import produce
from tests.protocol.malformed_batches import batch, records

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
warehouse: sqlite:///w.db
sources:
  readings: {topic: "@in", start: latest, schema: "id BIGINT, at TIMESTAMP, tags ARRAY<STRING>"}
steps:
  late: {sql: "select id, at from readings where id > 1"}
sinks: {out: {from: late, topic: "@out"}}
views: {last: {from: readings, key: [id]}}
"""
CUT_OFF = batch(records(2) + b"\x0f", 3)  # a broker that does not check every record stores it
RECORDS = [
    {"id": 1, "at": "2026-01-01T12:00:00Z", "tags": ["a"]},
    {"id": 2, "at": "2026-01-01T13:00:00Z", "more": {"b": 1.5}},
    b"{not json",
]


def asked(stage: Stage, text: str, context: QueryContext) -> list[dict[str, Any]]:
    query = text.replace("@", f"{stage.prefix}-")
    catalog = Catalog(context)
    return list(ask(stage.spark, query, catalog, catalog.tables(query)).rows)


def test_whatever_has_a_name_can_be_asked(stage: Stage) -> None:
    stage.create("in")
    pipeline = stage.pipeline(DEFINITION)
    stage.produce("in", RECORDS, key="k")
    stage.run_once(stage.pipeline(DEFINITION.replace("latest", "earliest")))
    context = QueryContext(pipeline)
    assert asked(stage, "select id, at, tags from readings order by id", context) == [
        {"id": 1, "at": "2026-01-01T12:00:00.000Z", "tags": ["a"]},
        {"id": 2, "at": "2026-01-01T13:00:00.000Z", "tags": None},
    ]
    assert asked(stage, "select id from LATE", context) == [{"id": 2}]
    with (
        pytest.raises(PipelineError, match=r"needs Spark \(--master is given\), .* table 'last'.* as a jdbc source"),
        querying.answer("select id from last", context, {}, "local", print),
    ):
        pass
    raw = asked(stage, "select key, value, partition, offset, headers from `@in` order by offset", context)
    assert raw[2] == {"key": "k", "value": "{not json", "partition": 0, "offset": 2, "headers": {"sent": "by test"}}
    topic = stage.topic("in")
    declared = QueryContext(pipeline, schemas={topic: "id BIGINT, `more` STRUCT<b: DOUBLE>"})
    assert asked(stage, "select sum(id) as s, sum(more.b) as b from `@in`", declared) == [{"s": 3, "b": 1.5}]
    found_out = QueryContext(pipeline, inferred=frozenset({topic}))
    assert asked(stage, "select count(*) n, count(_offset) o, max(more.b) b from `@in`", found_out) == [
        {"n": 2, "o": 2, "b": 1.5}
    ]
    with pytest.raises(PipelineError, match="did you mean 'readings'"):
        asked(stage, "select * from reading", context)
    with pytest.raises(PipelineError, match=r"put names with dots in backticks: `a\.b`"):
        asked(stage, "select * from a.b", context)


@pytest.mark.more
def test_a_topic_without_objects_has_no_columns(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [b"text"])
    nothing = Pipeline("sql", bootstrap_servers=stage.bootstrap_servers)
    with pytest.raises(PipelineError, match="has no records that are JSON objects"):
        asked(stage, "select * from `@in`", QueryContext(nothing, inferred=frozenset({stage.topic("in")})))


@pytest.mark.more
def test_brokers_are_asked_only_where_they_are_needed(stage: Stage) -> None:
    context = QueryContext(Pipeline("sql", bootstrap_servers="127.0.0.1:1"))
    catalog = Catalog(context)
    query = "select 1 + 1 as two, 3 as two"
    assert list(ask(stage.spark, query, catalog, catalog.tables(query)).rows) == [{"two": 2, "two_2": 3}]
    with pytest.raises(BrokersUnavailable, match="no broker answers"):
        catalog.tables("select * from nowhere")


def test_what_spark_refuses_is_reported_in_a_sentence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage.spark.newSession()
    monkeypatch.setattr(session, "stop", lambda: None)  # the tests share it
    monkeypatch.setattr(sessions, "start_session", lambda *_all, **_named: session)
    refused = "^A column, variable, or function parameter with name `nam` cannot be resolved"
    context = QueryContext(Pipeline("sql"))
    with (
        pytest.raises(PipelineError, match=refused),
        querying.answer("select nam from (select 1 as name)", context, {}, "local", print),
    ):
        pass


@pytest.mark.more
def test_a_batch_that_cannot_be_read_is_reported_with_its_partition(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = stage.spark.newSession()
    monkeypatch.setattr(session, "stop", lambda: None)  # the tests share it
    for module in (sessions, previewing):
        monkeypatch.setattr(module, "start_session", lambda *_all, **_named: session)
    topic = stage.create("in", 1)
    with Connection(stage.bootstrap_servers) as connection:
        assert produce(connection, topic, CUT_OFF).error == "NONE"
    with (
        pytest.raises(PipelineError, match=f"from {topic}-0; `odradek consume {topic} -p 0 -e` names its offset$"),
        previewing.preview(stage.pipeline(DEFINITION), "late", 9, {}, print) as answer,
    ):
        list(answer.rows)
    context = QueryContext(Pipeline("sql", bootstrap_servers=stage.bootstrap_servers))
    with (
        pytest.raises(PipelineError, match=f"{topic}-0"),
        querying.answer(f"select value from `{topic}`", context, {}, "local", print) as answer,
    ):
        list(answer.rows)


def test_columns_of_one_name_are_reported_apart() -> None:
    assert distinct_names(["a", "A", "b", "a"]) == ["a", "A_2", "b", "a_3"]


def test_a_step_is_previewed_from_the_last_records(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": number, "at": "2026-01-01T12:00:00Z"} for number in range(10)])
    pipeline = stage.pipeline(DEFINITION)
    cluster = check_topics(pipeline)
    recent = with_recent_start(plan_again(pipeline), "late", cluster, 3)
    rows = list(answer_of(rows_of(stage.spark, recent, "late", cluster.partitions_of)).rows)
    assert sorted(row["id"] for row in rows) == [7, 8, 9]
    assert stage.topic("out") not in Cluster(stage.bootstrap_servers, {}).partitions
    with pytest.raises(PipelineError, match="p has no source or step 'lat'; did you mean 'late'"):
        checked_name(pipeline, "lat")
