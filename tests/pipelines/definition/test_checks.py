"""What `validate` says of a definition besides the rules of streams: names, columns, imports, databases, engines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition import spark_version
from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.loading import load_yaml
from tests.pipelines.definition.definitions import define

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
pipeline: p
sources:
  rigs:
    topic: rigs
    schema: |
      id BIGINT, at TIMESTAMP, big DECIMAL(20,0), tags ARRAY<STRING>, reading STRUCT<`a b`: DOUBLE, at: TIMESTAMP>
    watermark: {column: at, delay: 1 minute}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "id BIGINT, name STRING"}
"""
STEP = "steps: {s: {sql: select id from rigs}}\nsinks: {o: {from: s, topic: x}}\n"
OUT = "sinks: {o: {from: rigs, topic: out}}\n"


def reported(text: str, head: str = HEAD, engine: Engine | None = None) -> list[str]:
    found = define(head + textwrap.dedent(text), engine=engine).problems
    return [f"{each.place.line}: {each.severity}: {each.text}" for each in found]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: {rigs: {sql: select 1 as a}}\n" + OUT, "10: error: the name 'rigs' is already used in line 4"),
        ("sinks: {o: {from: rigs, topic: a}, O: {from: rigs, topic: b}}", "the name 'O' is already used in line 10"),
        ("views: {v: {from: rigs, key: id}, V: {from: rigs, key: id}}", "views are tables of a database"),
        ("sinks: {o: {from: rigz, topic: x}}", "sink 'o' reads 'rigz', which is neither a source nor a step; did you"),
        ("views: {o: {from: rigz, key: id}}", "view 'o' reads 'rigz', which is neither a source nor a step; did you"),
        ("sinks: {o: {from: rigs, topic: x, key: idd}}", "there is no column 'idd' in sink 'o'; did you mean 'id'?"),
        ("sinks: {o: {from: rigs, topic: x, key: id >}}", "the SQL of sink 'o' cannot be read"),
        ("sinks: {o: {from: rigs, files: {path: x, partition_by: day}}}", "'o' names the column 'day', which 'rigs'"),
        ("views: {o: {from: rigs, changes: {key: id, sequence: then}}}", "'o' names the column 'then', which 'rigs'"),
        ("", "has neither sinks nor views, so it has no output; add a sink or a view"),
        ("steps: {s: {sql: select id from rigs}}\n" + OUT, "no sink and no view uses the step 's'"),
        ("steps: {s: {sql: select id as __rank from rigs}}\n" + OUT, "'s' has the column '__rank', which is internal"),
        ("views: {v: {from: rigs, key: id, url: 'jdbc:x'}}", "url of view 'v' is not a URL of SQLite or PostgreSQL"),
        ("sinks: {o: {from: rigs, lakehouse: {format: iceberg, table: a.b}}}", "the catalog 'a' of sink 'o' is not"),
        ("sinks: {o: {from: rigs, lakehouse: {format: iceberg, table: b}}}", "table 'b' without its catalog"),
        ("delivery: exactly_once\nsinks: {o: {from: rigs, python: 'posixpath:join'}}", "may receive a batch again"),
        ("delivery: exactly_once\nsinks: {o: {from: rigs, spark: {format: x}}}", "not the format 'x'; write to"),
        ("delivery: exactly_once\nengine: realtime\n" + OUT, "the realtime engine cannot deliver exactly once"),
    ],
)
def test_mistakes_are_reported(text: str, said: str) -> None:
    assert [line for line in reported(text) if said in line], reported(text)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("s: {from: rigs, deduplicate: {key: id}}", "warning: step 's' keeps every id in state without a limit"),
        ("s: {sql: 'select *, at as valid_to from rigs'}", "keeps a history, which adds the column valid_to"),
        (
            "s: {sql: select id from rigs, expect: {e: {check: id > 0, otherwise: quarantine}}}",
            "expectation 'e' of step 's' quarantines rows, and dead_letters is not set",
        ),
    ],
)
def test_mistakes_in_steps_are_reported(steps: str, said: str) -> None:
    found = reported(
        f"steps: {{{steps}}}\nviews: {{s: {{from: s, changes: {{key: id, sequence: at, history: true}}}}}}"
    )
    assert [line for line in found if said in line], found


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "the pipeline has no sources; add one: sources: {name: {topic: …}}"),
        ("sources: {rigs: {topic: t, format: bytes}}\n", "reads 'rigs', whose only columns are those of its records"),
        (
            "sources: {rigs: {files: {path: x, format: csv}}}\n",
            "the standard engine needs a stream, and no",
        ),
        ("sources: {rigs: {files: {path: x, format: csv}, stream: true}}\n", "is a stream of files without a schema"),
        (
            "sources: {rigs: {topic: t, schema: at STRING, watermark: {column: at, delay: 1 s}}}\n",
            "is over 'at' of type STRING, which is no TIMESTAMP; compute one in the source: columns: {event_time: try_",
        ),
        ("sources: {rigs: {topic: t, schema: a INT, columns: {b: a + x}}}\n", "no column 'x' in source 'rigs'"),
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
    ],
)
def test_nothing_is_said_of_sound_definitions(text: str) -> None:
    assert all("uses the source 'pumps'" in line for line in reported(text))


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


@pytest.mark.parametrize("engine", [Engine.BATCH, Engine.STANDARD])
def test_a_pipeline_without_streams_is_a_batch(engine: Engine) -> None:
    found = reported(OUT, "pipeline: p\nsources: {rigs: {files: {path: x, format: json}}}\n", engine)
    refusals = [line.partition(";")[0] for line in found if "error" in line]
    assert refusals == ["1: error: the standard engine needs a stream, and no source is one"] * (
        engine is Engine.STANDARD
    )


def test_the_second_of_two_declarations_of_one_name_is_not_judged() -> None:
    text = "steps: {rigs: {sql: select nothing from nowhere}, s: {sql: select big from rigs}}\n"
    found = reported(text + "sinks: {o: {from: s, topic: x}}")
    assert ["already used" in line or "nowhere" in line for line in found] == [True, True], found


def test_the_columns_of_a_source_are_not_known_if_its_schema_is_wrong() -> None:
    found = reported(STEP, "pipeline: p\nsources: {rigs: {topic: t, schema: id BIGINTT}}\n")
    assert len(found) == 1, found


MODULE = """
raise RuntimeError("checking runs no code of the user's")
import json as js
CONSTANT = 1
def one(a): ...
def two(a, b=1): ...
def many(*all): ...
def named(*, key): ...
class Processor: ...
"""


@pytest.mark.parametrize(
    ("path", "inputs", "said"),
    [
        ("rules:one", 1, None),
        ("rules:two", 2, None),
        ("rules:many", 2, None),
        ("rules:js", 1, None),
        ("pack.inner:one", 1, None),
        ("json.decoder:JSONDecoder", 1, None),
        ("rules:onee", 1, "module 'rules' does not define 'onee'; did you mean 'one'?"),
        ("ruels:one", 1, "module 'ruels' of ruels:one was not found"),
        ("pack.outer:one", 1, "module 'pack.outer' of pack.outer:one was not found"),
    ],
)
def test_import_paths_are_followed_without_importing(tmp_path: Path, path: str, inputs: int, said: str | None) -> None:
    (tmp_path / "rules.py").write_text(MODULE)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text(MODULE)
    (tmp_path / "pack" / "inner.py").write_text(MODULE)
    names = ["a", "b"][:inputs]
    (tmp_path / "p.yml").write_text(
        "pipeline: p\nsources: {a: {topic: a, format: text}, b: {topic: b, format: text}}\n"
        f"steps: {{s: {{from: [{', '.join(names)}], python: '{path}'}}}}\nsinks: {{o: {{from: s, topic: x}}}}\n"
    )
    problems = [each.text for each in load_yaml(str(tmp_path / "p.yml"), {}).problems if each.severity == "error"]
    assert problems == [] if said is None else said in problems[0]


def test_a_file_that_is_not_there_or_not_text_is_reported(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in load_yaml(str(tmp_path / "p.yml"), {}).problems[0].text
    (tmp_path / "q.yml").write_bytes(b"pipeline: p\nengine: \xff\n")
    assert str(load_yaml(str(tmp_path / "q.yml"), {}).problems[0]).endswith(
        "q.yml:2:9: error: the file is not UTF-8; save it as UTF-8"
    )


def test_only_a_sound_definition_gives_its_pipeline() -> None:
    assert define(HEAD + OUT).require().name == "p"
    with pytest.raises(ProblemList) as caught:
        define("pipeline: p\nengin: x\nsinkz: {}\n").require()
    assert [each.place.line for each in caught.value][-2:] == [2, 3]
    assert "p.yml:2:1: error: unknown key 'engin'" in str(caught.value)
