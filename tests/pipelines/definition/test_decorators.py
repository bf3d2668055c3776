"""Pipelines in Python: the same model as from YAML, with places in the Python file."""

from __future__ import annotations

import datetime
import re
import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines import Pipeline
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.loading import Choices, define_python, load_file, load_python, load_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.pipelines.planning.loading import Definition

PYTHON = '''
import datetime

from odradek.pipelines import Pipeline

rigs = Pipeline(
    "rigs",
    dead_letters="dead",
    trigger=datetime.timedelta(milliseconds=100),
    spark={"a": 1, "b": True},
    parameters={"least": 1},
)

rigs.source(
    "rigs",
    topic="rigs",
    schema="""id BIGINT, at TIMESTAMP, pressure DOUBLE""",
    watermark={"column": "at", "delay": "1 minute"},
)
rigs.source("pumps", files={"path": "pumps.csv", "format": "csv"}, schema="id BIGINT, name STRING")
rigs.step("high", sql="select * from rigs where pressure > 100", expect={"e": {"check": "id > 0", "otherwise": "drop"}})
rigs.step(
    "per_minute",
    from_="high",
    window={"column": "at", "size": "1 minute"},
    by=["id"],
    aggregate={"n": "count(*)"},
)


@rigs.step(from_=["high", "pumps"])
def located(high, pumps):
    return high.join(pumps, "id")


@rigs.view(from_="high", key=["id"], order_by="at")
def last(high):
    return high


rigs.sink("out", from_="located", topic="out", key="id")
rigs.sink("table", from_="per_minute", table="t", key=["id", "window_start"])
rigs.view("totals", from_="high", by=["id"], aggregate={"n": "count(*)"})


@rigs.sink(from_="high")
def call(batch, number):
    pass


rigs.source("plants", jdbc={"url": "jdbc:sqlite:${DATABASE:-plants}.db", "table": "plants"}, refresh="10 minutes")
rigs.step("planted", sql="select * from high join plants using (id)", expect={"e": "pressure > ${least}"})
rigs.sink("planted", from_="planted", topic="planted", key="id")
mark = {"column": "shown_at", "delay": datetime.timedelta(minutes=1)}
rigs.source("shown", topic="shown", schema="id BIGINT, shown_at TIMESTAMP", watermark=mark)
pair = {"stream": "shown", "on": ["id"], "within": datetime.timedelta(hours=1), "how": "full"}
rigs.step("pairs", from_="rigs", join=pair)
gap = {"column": "shown_at", "gap": "30 minutes"}
rigs.step("visits", from_="shown", by=["id"], window=gap, aggregate={"n": "count(*)"})
rigs.sink("pairs", from_="pairs", topic="pairs")
rigs.sink("visits", from_="visits", topic="visits")
'''

YAML = """
pipeline: rigs
dead_letters: dead
trigger: 100 ms
spark: {a: 1, b: true}
sources:
  rigs:
    topic: rigs
    schema: id BIGINT, at TIMESTAMP, pressure DOUBLE
    watermark: {column: at, delay: 60 s}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "id bigint, name string"}
  plants: {jdbc: {url: "jdbc:sqlite:plants.db", table: plants}, refresh: 600 s}
  shown: {topic: shown, schema: "id BIGINT, shown_at TIMESTAMP", watermark: {column: shown_at, delay: 1 minute}}
steps:
  high:
    sql: select * from rigs where pressure > 100
    expect: {e: {check: id > 0, otherwise: drop}}
  per_minute: {from: high, window: {column: at, size: 1 minute}, by: id, aggregate: {n: count(*)}}
  located: {from: [high, pumps], python: "defined:located"}
  last: {from: high, python: "defined:last", view: {key: id, order_by: at}}
  planted: {sql: select * from high join plants using (id), expect: {e: pressure > 1}}
  pairs: {from: rigs, join: {stream: shown, on: id, within: 60 minutes, how: full}}
  visits: {from: shown, by: id, window: {column: shown_at, gap: 30 minutes}, aggregate: {n: count(*)}}
sinks:
  out: {from: located, topic: out, key: id}
  table: {from: per_minute, table: t, key: [id, window_start]}
  call: {from: high, python: "defined:call"}
  planted: {from: planted, topic: planted, key: id}
  pairs: {from: pairs, topic: pairs}
  visits: {from: visits, topic: visits}
views:
  totals: {from: high, by: id, aggregate: {n: count(*)}}
"""


def load(folder: Path, text: str, name: str = "defined") -> list[Definition]:
    (folder / f"{name}.py").write_text(text)
    return load_python(str(folder / f"{name}.py"), {})


def said(folder: Path, text: str, name: str = "wrong") -> list[str]:
    return [
        str(each).removeprefix(f"{folder}/")
        for definition in load(folder, "from odradek.pipelines import Pipeline\n" + textwrap.dedent(text), name)
        for each in definition.problems
    ]


def test_python_and_yaml_give_the_same_model(tmp_path: Path) -> None:
    (definition,) = load(tmp_path, PYTHON)
    (tmp_path / "p.yml").write_text(YAML)
    from_yaml = load_yaml(str(tmp_path / "p.yml"), {})
    assert definition.problems == from_yaml.problems == ()
    assert definition.pipeline == from_yaml.pipeline
    assert definition.pipeline is not None
    assert definition.pipeline.place.file != from_yaml.pipeline.place.file  # type: ignore[union-attr]  # as declared above
    assert definition.pipeline.directory == str(tmp_path)


def test_decorated_functions_stay_functions() -> None:
    pipeline = Pipeline("p")

    @pipeline.step(from_="a")
    def double(number: int) -> int:
        return 2 * number

    assert double(2) == 4


def test_problems_are_at_the_line_of_the_call(tmp_path: Path) -> None:
    text = """\
        p = Pipeline("p", engin="standard")
        p.source(
            "s",
            topic="t",
            schema="a INT, b DUBLE",
        )
        p.step("x", sql="select c from s", expect={"e": {"check": "a >", "otherwise": "dorp"}})
        p.sink("o", from_="y", topic="u")
    """
    assert [re.split(": error[ OD0-9]*: ", line) for line in said(tmp_path, text)] == [
        ["wrong.py:2:1", "unknown key 'engin' of the pipeline; did you mean 'engine'?"],
        ["wrong.py:3:1", "schema of source 's': 'DUBLE' is not a type; did you mean 'DOUBLE'?"],
        ["wrong.py:8:1", "otherwise of expectation 'e' of step 'x' cannot be 'dorp'; did you mean 'drop'?"],
        ["wrong.py:8:1", "the SQL of step 'x' cannot be read: the SQL is incomplete after '>'"],
        ["wrong.py:9:1", "sink 'o' reads 'y', which is neither a source nor a step; sources and steps: s, x"],
    ]


def test_a_name_that_is_taken_is_reported(tmp_path: Path) -> None:
    text = """\
        p = Pipeline("p")
        p.source("s", topic="t", format="text")
        p.source("s", topic="u", format="text")
        p.sink("o", from_="s", console=True)
    """
    (line,) = said(tmp_path, text)
    assert line.startswith("wrong.py:4:1: error OD02: the name 's' is already used in line 3; choose another")


def test_what_no_definition_can_hold_is_reported(tmp_path: Path) -> None:
    lines = said(tmp_path, 'p = Pipeline("p", dead_letters=object())')
    assert any("dead_letters: object is not allowed in a pipeline definition" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", "wrong.py:1:1: error: the file does not define a pipeline"),
        ("x = \n", "wrong.py:2:5: error: the file is not valid Python: invalid syntax"),
        ("\n\n1 / 0\n", "wrong.py:4:1: error: importing the file failed: ZeroDivisionError: division by zero"),
        ("import nowhere_at_all\n", "wrong.py:2:1: error: importing the file failed: ModuleNotFoundError"),
    ],
)
def test_python_files_that_cannot_be_loaded_are_reported(tmp_path: Path, text: str, expected: str) -> None:
    assert said(tmp_path, text)[0].startswith(expected)


def test_a_python_file_may_hold_several_pipelines(tmp_path: Path) -> None:
    text = 'from odradek.pipelines import Pipeline\na = Pipeline("a")\nb = Pipeline("b")\nsame = a\n'
    assert [each.pipeline.name for each in load(tmp_path, text, "several") if each.pipeline is not None] == ["a", "b"]


def test_functions_of_a_package_are_found_by_their_full_path(tmp_path: Path) -> None:
    folder = tmp_path / "plant"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    text = (
        'from odradek.pipelines import Pipeline\np = Pipeline("p")\np.source("s", topic="t", format="text")\n'
        '@p.sink(from_="s")\ndef call(batch, number): ...\n'
    )
    (definition,) = load(folder, text, "rigs")
    assert definition.problems == ()
    assert str(definition.pipeline.sinks[0].target.function) == "plant.rigs:call"  # type: ignore[union-attr]


def test_the_engine_can_be_chosen_from_outside() -> None:
    pipeline = Pipeline("p", trigger=datetime.timedelta(seconds=1))
    found = define_python(pipeline, {}, Choices(engine=Engine.BATCH)).pipeline
    assert found is not None
    assert found.engine is Engine.BATCH


def test_variables_are_replaced_as_in_yaml(tmp_path: Path) -> None:
    text = """
        from odradek.pipelines import Pipeline
        p = Pipeline("p", bootstrap_servers="${HERE}", kafka={"client.id": "$${HERE}", "a": "${NOT:-b}"})
        p.source("a", topic="${TOPIC}", schema="id INT")
        p.sink("o", from_="a", topic="out")
    """
    (tmp_path / "named.py").write_text(textwrap.dedent(text))
    (found,) = load_file(str(tmp_path / "named.py"), {"HERE": "host:1", "TOPIC": "t"})
    pipeline = found.require()
    assert pipeline.bootstrap_servers == "host:1"
    assert pipeline.kafka == {"client.id": "${HERE}", "a": "b"}
    (unset,) = load_file(str(tmp_path / "named.py"), {"HERE": "host:1"})
    (problem,) = [each for each in unset.problems if each.message == "the environment variable TOPIC is not set"]
    assert problem.place.line == 4
