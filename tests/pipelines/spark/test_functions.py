"""Python functions in SQL: steps, checks, columns and keys, as a stream and as a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.column_types import Primitive
from odradek.pipelines.definition.model import Function
from odradek.pipelines.definition.operations import PythonReference
from odradek.pipelines.spark.functions import user_function
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.user_code import load_reference

if TYPE_CHECKING:
    from pathlib import Path

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

MODULE = """
from weights_of_functions import FACTOR


def level(pressure):
    return None if pressure is None else "high" if pressure > 100 else "low"


def weighted(pressure, count):
    return pressure * count * FACTOR


def is_known(pressure):
    return pressure == pressure  # a Series
"""
DEFINITION = """
functions:
  level_of: {python: "functions_of_test:level", returns: STRING}
  weighted: {python: "functions_of_test:weighted", returns: DOUBLE, pandas: true}
  is_known: {python: "functions_of_test:is_known", returns: BOOLEAN, pandas: true}
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT, pressure DOUBLE, n BIGINT, tags ARRAY<STRING>"
    columns: {level: level_of(pressure)}
dead_letters: "@dead"
steps:
  whole:
    sql: select id, level, weighted(pressure, n) as weight, tag from readings lateral view explode(tags) as tag
    expect: {light: {check: "weighted(weight, 1) < 1000", otherwise: quarantine}, known: is_known(weight)}
  levels: {sql: "select level_of(pressure) as level, count(*) as n from readings group by level_of(pressure)"}
sinks:
  out: {from: whole, topic: "@out", key: level_of(weight)}
views:
  levels: {from: levels, key: [level]}
"""


@pytest.mark.usefixtures("spark")  # Spark parses the type of the result
def test_a_function_that_aggregates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "functions_of_sums.py").write_text(
        "import pandas as pd\n\n\ndef total(a: pd.Series) -> float:\n    return a.sum()\n\n\nnumber = 5\n"
    )
    for name, expected in (("total", "functions of SQL cannot aggregate"), ("number", "is not a function")):
        reference = PythonReference("functions_of_sums", name)
        declared = Function("f", reference, Primitive("DOUBLE"), is_pandas=True)
        with pytest.raises(PipelineError, match=expected):
            user_function(declared, load_reference(reference, str(tmp_path)))


@pytest.fixture
def filled(stage: Stage) -> Stage:
    (stage.folder / "functions_of_test.py").write_text(MODULE)
    (stage.folder / "weights_of_functions.py").write_text("FACTOR = 2\n")
    stage.create("in", 1)
    rows = [
        {"id": 1, "pressure": 50.0, "n": 2, "tags": ["a", "b"]},
        {"id": 2, "pressure": 150.0, "n": 4, "tags": ["c"]},
    ]
    stage.produce("in", rows)
    return stage


def check_outputs(stage: Stage) -> None:
    assert [(each.key, each.json) for each in stage.read("out")] == [
        ("high", {"id": 1, "level": "low", "weight": 200.0, "tag": "a"}),
        ("high", {"id": 1, "level": "low", "weight": 200.0, "tag": "b"}),
    ]
    (letter,) = stage.read("dead")
    assert letter.headers["odradek-reason"].startswith("expectation 'light' not met: ")


def test_functions_are_called_in_every_expression(filled: Stage) -> None:
    filled.run(filled.pipeline(DEFINITION))
    check_outputs(filled)


@pytest.mark.soak
def test_functions_are_called_in_a_batch(filled: Stage) -> None:
    filled.run_once(filled.pipeline(DEFINITION))
    check_outputs(filled)
