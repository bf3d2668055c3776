"""Invalid input on a real broker: clear errors, dead letters, and no lost records once the cause is removed."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
import sqlalchemy as sa

from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.launching import RunCallbacks, RunOptions, run_pipeline
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import WarehouseRefused, database_url
from odradek.pipelines.spark.writing.warehouse import Warehouse, warehouse
from tests.pipelines.spark.stage import Stage, renamed

pytestmark = pytest.mark.spark

MEGABYTE = 1_000_000
SOURCE = """
warehouse: sqlite:///w.db
dead_letters: "@dead"
sources:
  readings: {topic: "@in", schema: "id BIGINT NOT NULL, name STRING, pressure DOUBLE"}
"""


def reasons(stage: Stage) -> list[str]:
    return [each.headers["odradek-reason"].partition(":")[0] for each in stage.read("dead")]


def table(stage: Stage, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(stage.folder / "w.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_records_that_drift_are_read_as_far_as_they_fit(stage: Stage) -> None:
    stage.create("in", 1)
    drifted = [
        {"id": 1, "name": "a", "pressure": 1.5},
        {"id": 2, "name": "b", "pressure": 2, "colour": "red", "nested": {"x": [1]}},  # a field more
        {"id": 3},  # fields less
        {"id": 4, "name": None, "pressure": None},
        {"id": "5", "name": "e"},  # a number that became text
        {"id": 6, "name": {"first": "f"}, "pressure": 1},  # text that became an object: its JSON
        {"id": 7, "pressure": [1, 2]},  # a number that became a list
        {"ID": 8},  # a field that was renamed
    ]
    stage.produce("in", drifted)
    stage.run(stage.pipeline(SOURCE + 'sinks: {out: {from: readings, topic: "@out", key: id}}'))
    out = {record.key: record.json for record in stage.read("out")}
    assert list(out) == ["1", "2", "3", "4", "6"]
    assert out["2"] == {"id": 2, "name": "b", "pressure": 2.0}
    assert out["3"] == out["4"] | {"id": 3}
    assert json.loads(out["6"]["name"]) == {"first": "f"}
    assert sorted(reasons(stage)) == ["does not fit the schema", "does not fit the schema", "missing field"]


@pytest.mark.soak
def test_records_of_a_megabyte_pass_whether_they_parse_or_not(stage: Stage) -> None:
    stage.create("in", 1)
    whole = json.dumps({"id": 1, "name": "x" * (MEGABYTE + 48_000)}).encode()
    broken = b"{" + b"\xff" * (MEGABYTE + 48_000)
    stage.produce("in", [whole, broken])
    stage.run(
        stage.pipeline(
            SOURCE
            + """
sinks: {out: {from: readings, topic: "@out", key: id}}
views: {last: {from: readings, key: [id]}}
"""
        )
    )
    (out,) = stage.read("out")
    assert len(out.json["name"]) == MEGABYTE + 48_000
    (letter,) = stage.read("dead")
    assert letter.value == broken
    assert table(stage, "select id, length(name) from last") == [(1, MEGABYTE + 48_000)]


@pytest.mark.more
def test_a_full_disk_stops_it_with_the_reason_and_loses_nothing(stage: Stage) -> None:
    stage.create("in", 1)
    pipeline = stage.pipeline(SOURCE + "views: {last: {from: readings, key: [id]}}")
    engine = warehouse(database_url(pipeline, None)).engine
    stage.produce("in", [{"id": 1, "name": "x"}])
    stage.run(pipeline)

    def limit(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=10")

    sa.event.listen(engine, "connect", limit)
    engine.dispose()
    stage.produce("in", [{"id": number, "name": "y" * 2000} for number in range(1, 101)])
    with pytest.raises(PipelineFailed, match=r"sqlite:///.*w.db: database or disk is full"):
        stage.run(pipeline)
    assert table(stage, "select id, name from last") == [(1, "x")]
    sa.event.remove(engine, "connect", limit)
    engine.dispose()
    stage.run(pipeline)
    assert table(stage, "select count(*), min(length(name)) from last") == [(100, 2000)]


@pytest.mark.more
def test_a_value_that_cannot_be_computed_or_stored_is_a_dead_letter(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1, "name": "seven"}, {"id": 2, "name": None}, {"id": 3, "name": "3"}])
    stage.run(
        stage.pipeline(
            SOURCE
            + """
steps: {number: {sql: "select id, cast(name as int) as n from readings"}}
sinks: {out: {from: number, topic: "@out", value: [n]}}
views: {last: {from: number, key: [n]}}
"""
        )
    )
    assert [record.json for record in stage.read("out")] == [{"n": None}, {"n": 3}]
    assert table(stage, "select id, n from last") == [(3, 3)]
    dead = sorted((each.headers["odradek-source"], each.headers["odradek-reason"]) for each in stage.read("dead"))
    assert [(source, reason.partition(":")[0]) for source, reason in dead] == [
        ("0:0", "cannot be computed"),
        ("0:1", "cannot be stored"),
    ]


def test_a_database_without_a_driver_is_reported(stage: Stage) -> None:
    pipeline = stage.pipeline("""
        engine: batch
        sources: {old: {jdbc: {url: "jdbc:oldbase://host/d", table: t}}}
        sinks: {out: {from: old, topic: "@out"}}
        """)
    with pytest.raises(PipelineError, match="there is no JDBC driver for oldbase: name its jar in spark"):
        stage.run_once(pipeline)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('no such pump')", r"step 'own': KeyError: 'no such pump' \(.*own_{}.py, line 2, in go\)"),
        ("return [1, 2]", "own_{}:go returned list instead of a DataFrame"),
        ("return frame.select('nothing')", "step 'own': .*nothing.* cannot be resolved"),
    ],
)
def test_a_python_step_that_fails_is_reported_with_its_place(stage: Stage, body: str, message: str) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}])
    (stage.folder / f"own_{stage.prefix}.py").write_text(f"def go(frame):\n    {body}\n")
    pipeline = stage.pipeline(
        SOURCE + f'steps: {{own: {{from: [readings], python: "own_{stage.prefix}:go"}}}}\n'
        'sinks: {out: {from: own, topic: "@out"}}'
    )
    with pytest.raises(PipelineError, match=r"pipeline.yml:\d+:\d+: " + message.format(stage.prefix)):
        stage.run_once(pipeline)


@pytest.mark.more
def test_a_module_that_breaks_while_it_is_imported_is_reported(stage: Stage) -> None:
    stage.create("in", 1)
    (stage.folder / f"own_{stage.prefix}.py").write_text("def go(batch, number):\n    1 / 0\n\n\nSETTINGS = {}['x']\n")
    pipeline = stage.pipeline(SOURCE + f'sinks: {{own: {{from: readings, python: "own_{stage.prefix}:go"}}}}')
    with pytest.raises(PipelineError, match=rf"cannot be imported: KeyError: 'x' \(.*own_{stage.prefix}.py, line 5"):
        stage.run_once(pipeline)
    (stage.folder / f"own_{stage.prefix}.py").write_text("def go(batch, number):\n    1 / 0\n")
    with pytest.raises(PipelineError, match=r"sink 'own': ZeroDivisionError: division by zero \(.*line 2, in go\)"):
        stage.run_once(pipeline)


WRONG_URLS = [
    ("mysql://u:secret@127.0.0.1/d", "mysql://u:.*: tables and views are in SQLite or PostgreSQL, not in mysql"),
    ("sqlite:////nowhere/at/all/w.db", "unable to open database file"),
]


@pytest.mark.parametrize(("url", "message"), WRONG_URLS)
def test_a_wrong_database_is_reported_before_spark_starts(stage: Stage, url: str, message: str) -> None:
    stage.create("in", 1)
    pipeline = stage.pipeline(SOURCE + "views: {last: {from: readings, key: [id]}}")
    said: list[str] = []
    callbacks = RunCallbacks(said.append, lambda _report: None)
    with pytest.raises(WarehouseRefused, match=message) as refused:
        run_pipeline(renamed(pipeline, warehouse=url, engine=Engine.BATCH), RunOptions(), lambda: False, callbacks)
    assert "secret" not in str(refused.value)
    assert said == []


@pytest.mark.parametrize(
    "url", ["postgresql:/u:secret@h/d", "u:sec@ret@h/d", "postgresql://u:secret@h:port/d", "h/d?password=secret"]
)
def test_the_password_of_what_is_no_url_is_not_reported(url: str) -> None:
    with pytest.raises(WarehouseRefused, match=r"h.*' is not a database URL") as refused:
        Warehouse(url)
    assert "secret" not in str(refused.value)
    assert "ret@" not in str(refused.value)
