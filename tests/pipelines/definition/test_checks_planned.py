"""What `validate` says of a definition besides the rules of streams."""

from __future__ import annotations

import textwrap

import pytest

from odradek.pipelines.definition import spark_version
from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import define

NEW = {"ODRADEK_PIPELINES": "new"}
HEAD = """
pipeline: p
sources:
  rigs:
    topic: rigs
    schema: |
      id BIGINT, at TIMESTAMP, big DECIMAL(20,0), tags ARRAY<STRING>, reading STRUCT<`a b`: DOUBLE, at: TIMESTAMP>
    watermark: {column: at, delay: 1 minute}
"""
STEP = "steps: {s: {sql: select id from rigs}}\nsinks: {o: {from: s, topic: x}}\n"
OUT = "sinks: {o: {from: rigs, topic: out}}\n"


def reported(text: str, head: str = HEAD, engine: Engine | None = None) -> list[str]:
    found = define(head + textwrap.dedent(text), NEW, engine).problems
    return [f"{each.place.line}: {each.severity}: {each.text}" for each in found]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: {rigs: {sql: select 1 as a}}\n" + OUT, "9: error: the name 'rigs' is already used in line 4"),
        ("sinks: {o: {from: rigs, topic: a}, O: {from: rigs, topic: b}}", "the name 'O' is already used in line 9"),
        ("views: {v: {from: rigs, key: id}, V: {from: rigs, key: id}}", "views are tables of a database"),
        (OUT + "functions: {upper: {python: 'posixpath:join', returns: STRING}}", "'upper' is the name of a built-in"),
        (OUT + "functions: {f: {python: 'posixpath:join', returns: STRING}}", "warning: no SQL calls the function 'f'"),
        (OUT + "functions: {f: {python: 'nowhere:f', returns: STRING}}", "module 'nowhere' of nowhere:f was not found"),
        ("", "has neither sinks nor views, so it has no output; add a sink or a view"),
        ("steps: {s: {sql: select id from rigs}}\n" + OUT, "no sink and no view uses the step 's'"),
        ("steps: {s: {sql: select id as __rank from rigs}}\n" + OUT, "'s' has the column '__rank', which is internal"),
        ("warehouse: w.db\n" + OUT, "the warehouse 'w.db' is not a URL; write sqlite:///file.db"),
        ("warehouse: sqllite:///w.db\n" + OUT, "did you mean 'sqlite'?"),
        ("sinks: {o: {from: rigs, table: t, url: 'mysql://h/d'}}", "url of sink 'o' is of the kind 'mysql'"),
        ("views: {v: {from: rigs, key: id, url: 'jdbc:x'}}", "url of view 'v' is a JDBC URL"),
        ("views: {v: {from: rigs, key: big}}", "error: 'v' compares big of type DECIMAL(20,0) in SQLite"),
        ("views: {v: {from: rigs, key: id, order_by: big}}", "warning: 'v' compares big of type DECIMAL(20,0)"),
        ("sinks: {o: {from: rigs, table: t, key: reading}}", "as JSON, with the milliseconds of its timestamps"),
        ("sinks: {o: {from: rigs, lakehouse: {format: iceberg, table: a.b}}}", "the catalog 'a' of sink 'o' is not"),
        ("sinks: {o: {from: rigs, lakehouse: {format: iceberg, table: b}}}", "table 'b' without its catalog"),
        ("steps: {s: {from: rigs, deduplicate: {key: id}}}\nsinks: {o: {from: s, topic: x}}", "every id in state"),
        ("delivery: exactly_once\nsinks: {o: {from: rigs, python: 'posixpath:join'}}", "may receive a batch again"),
        ("delivery: exactly_once\nsinks: {o: {from: rigs, spark: {format: x}}}", "not the format 'x'; write to"),
        ("delivery: exactly_once\nengine: realtime\n" + OUT, "the realtime engine cannot deliver exactly once"),
        (
            "steps: {s: {sql: 'select *, id from rigs'}}\nsinks: {o: {from: s, topic: x}}",
            "step 's' has two columns 'id', and sink 'o' writes both",
        ),
        (
            STEP.replace("rigs", "rigs, expect: {e: {check: id > 0, otherwise: quarantine}}"),
            "expectation 'e' of step 's' quarantines rows, and dead_letters is not set",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_reported(text: str, said: str) -> None:
    assert [line for line in reported(text) if said in line], reported(text)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "the pipeline has no sources; add one: sources: {name: {topic: …}}"),
        ("sources: {rigs: {topic: t, format: bytes}}\n", "reads 'rigs', whose only columns are those of its records"),
        (
            "sources: {rigs: {jdbc: {url: 'postgresql://h', table: t}}}\n",
            "not a JDBC URL: it starts with postgresql",
        ),
        (
            "sources: {rigs: {files: {path: x, format: csv}}}\n",
            "the standard engine needs a stream, and no",
        ),
        ("sources: {rigs: {files: {path: x, format: csv}, stream: true}}\n", "is a stream of files without a schema"),
    ],
)
def test_mistakes_in_sources_are_reported(head: str, said: str) -> None:
    found = reported(OUT, f"pipeline: p\n{head}")
    assert [line for line in found if said in line], found


@pytest.mark.parametrize(
    "text",
    [
        OUT,
        "warehouse: postgres://h/d\nviews: {v: {from: rigs, key: big}}",
        "sinks: {o: {from: rigs, topic: x, value: [id, id as id]}}",
        "sinks: {o: {from: rigs, files: {path: x, format: json, partition_by: id}}}",
        STEP.replace("id", "f(id) as n") + "functions: {f: {python: 'posixpath:join', returns: STRING}}",
    ],
)
def test_nothing_is_said_of_sound_definitions(text: str) -> None:
    assert reported(text) == []


def test_a_batch_ends_before_its_timers() -> None:
    text = """
        steps: {s: {from: rigs, state: {key: id, processor: 'posixpath:join', timeout: 1 hour}, schema: id BIGINT}}
        sinks: {o: {from: s, topic: x}}
    """
    assert [line for line in reported(text, engine=Engine.BATCH) if "the timers of step 's' do not fire" in line]


def test_versions_of_spark_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_version, "version", lambda _package: "4.0.0")
    assert [
        line for line in reported("engine: realtime\n" + OUT) if "needs PySpark 4.3, and 4.0.0 is installed" in line
    ]
    lake = "sinks: {o: {from: rigs, lakehouse: {format: delta, path: x}}}"
    assert [line for line in reported(lake) if "sink 'o': Delta 4.1.0 exists for PySpark 4.1" in line]
    own = f"spark: {{spark.jars.packages: 'a:b:1'}}\n{lake}"
    assert not [line for line in reported(own) if "exists for PySpark" in line]


def test_other_errors_may_be_why_something_looks_unused() -> None:
    text = "steps: {s: {sql: select id from rigs}}\nsinks: {o: {from: t, topic: x}}"
    assert not [line for line in reported(text) if "uses the step" in line]
