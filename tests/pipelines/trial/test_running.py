"""Cases on Spark: each kind of step and sink has its results, and differences are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.trial.parsing import read_case_file
from odradek.pipelines.trial.running import Result, compare_errors, run_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipelines.trial.model import CaseFile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rigs"
DEFINITION = """
pipeline: p
dead_letters: dead
warehouse: sqlite:///w.db
sources:
  readings:
    topic: in
    schema: "id BIGINT NOT NULL, pump BIGINT, at TIMESTAMP, pressure DOUBLE"
    watermark: {column: at, delay: 10 seconds}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "pump BIGINT, name STRING"}
  owners: {jdbc: {url: "jdbc:postgresql:nowhere", table: owners}}
steps:
  unique: {from: readings, deduplicate: {key: [id], within: 10 seconds}}
  good:
    sql: select id, pump, at, pressure from unique
    expect:
      sane: {check: pressure < 1000, otherwise: fail}
      positive: {check: pressure > 0, otherwise: quarantine}
      known: {check: pump < 10, otherwise: warn}
  named: {sql: select * from good left join pumps using (pump)}
  owned: {sql: select * from named join owners using (pump)}
  loud: {from: [named], python: "own_steps:louder", schema: "id BIGINT, name STRING"}
sinks:
  out: {from: loud, topic: out, key: id, headers: {of: name}}
  text: {from: loud, topic: text, format: text, value: [name]}
  archive: {from: owned, files: {path: archive, format: json}}
views:
  totals: {from: good, by: [pump], aggregate: {events: count(*), highest: max(pressure)}}
"""
OWN_STEPS = """
def louder(frame):
    return frame.selectExpr("id", "upper(name) as name")
"""
CASES = """
cases:
  all of it:
    given:
      readings:
        - {id: 1, pump: 1, at: "2026-01-01 12:00:00", pressure: 10}
        - {id: 1, pump: 1, at: "2026-01-01 12:00:00", pressure: 10}
        - {id: 2, pump: 2, at: "2026-01-01 12:00:30", pressure: 20}
        - {id: 3, pump: 1, at: "2026-01-01 12:00:40", pressure: -1}
        - {pump: 1}
      owners: [{pump: 1, owner: Ada, share: 0.5}]
    expect:
      sinks:
        out: [{_key: "1", id: 1, name: ONE, _headers: {of: ONE}, _topic: out}, {id: 2, name: null}]
        text: [ONE, null]
        archive: {rows: [{id: 1, pump: 1, owner: Ada, share: 0.5, name: one}]}
      views:
        totals: {all_columns: true, rows: [{pump: 1, events: 1, highest: 10}, {pump: 2, events: 1, highest: 20}]}
      dead_letters:
        - {reason: missing field, step: readings}
        - {reason: "expectation 'positive' not met: pressure > 0", value: {id: 3}}
      expectations: {good: {positive: 1, known: 0}}
"""
# One query, because these cases run all queries of their pipeline for the sake of one.
SMALL = """
pipeline: p
dead_letters: dead
sources:
  readings:
    topic: in
    schema: "id BIGINT NOT NULL, pump BIGINT, at TIMESTAMP, pressure DOUBLE"
    watermark: {column: at, delay: 10 seconds}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "pump BIGINT, name STRING"}
steps:
  unique: {from: readings, deduplicate: {key: [id], within: 10 seconds}}
  good:
    sql: select id, pump, at, pressure from unique
    expect: {sane: {check: pressure < 1000, otherwise: fail}}
  named: {sql: select * from good left join pumps using (pump)}
  loud: {from: [named], python: "own_steps:louder", schema: "id BIGINT, name STRING"}
sinks:
  out: {from: loud, topic: out, key: id}
"""
SMALL_CASES = """
cases:
  rows of a static table are given:
    given:
      readings: [{id: 5, pump: 3, at: "2026-01-01 12:00:00", pressure: 1}]
      pumps: [{pump: 3, name: three}]
    expect: {sinks: {out: [{id: 5, name: THREE}]}}
  an expectation stops it:
    given: {readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:00", pressure: 5000}]}
    expect: {error: "a row does not meet 'sane'"}
"""
WITHOUT_SCHEMA = """
pipeline: p
sources:
  readings: {topic: in, schema: "id BIGINT, pump BIGINT"}
  owners: {jdbc: {url: "jdbc:postgresql:nowhere", table: owners}}
steps:
  owned: {sql: select * from readings join owners using (pump)}
sinks:
  archive: {from: owned, files: {path: archive, format: json}}
"""
CASES_WITHOUT_SCHEMA = """
cases:
  a source without columns:
    expect: {sinks: {archive: []}}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[CaseFile]:
    found = []
    for definition, cases in ((DEFINITION, CASES), (SMALL, SMALL_CASES), (WITHOUT_SCHEMA, CASES_WITHOUT_SCHEMA)):
        folder = tmp_path_factory.mktemp("trial")
        (folder / "p.yml").write_text(definition)
        (folder / "pumps.csv").write_text("pump,name\n1,one\n")
        (folder / "own_steps.py").write_text(OWN_STEPS)
        (folder / "p.test.yml").write_text(cases)
        found.append(read_case_file(str(folder / "p.test.yml"), {}))
    return found


def run_case(spark: SparkSession, files: list[CaseFile], name: str) -> Result:
    (result,) = [each for file in files for each in run_file(spark, file, only=name)]
    return result


@pytest.mark.more(but="all of it")
@pytest.mark.parametrize(
    "name",
    [
        "all of it",
        "rows of a static table are given",
        pytest.param("an expectation stops it", marks=pytest.mark.soak),
    ],
)
def test_a_case_passes(spark: SparkSession, files: list[CaseFile], name: str) -> None:
    assert run_case(spark, files, name).differences == ()


def test_a_source_without_columns_is_reported(spark: SparkSession, files: list[CaseFile]) -> None:
    (found,) = run_case(spark, files, "a source without columns").differences
    assert found.kind == "error"
    assert "source 'owners' has no schema; give it at least one row" in found.message


def test_an_error_that_the_case_does_not_expect_is_reported(files: list[CaseFile]) -> None:
    (expecting,) = [case for file in files for case in file.cases if case.name == "an expectation stops it"]
    case = replace(expecting, error=None)
    (found,) = compare_errors(case, "a row does not meet 'sane'")
    assert (found.kind, found.message) == ("error", "a row does not meet 'sane'")


@pytest.mark.soak
def test_the_rigs_pass_their_tests(spark: SparkSession) -> None:
    file = read_case_file(str(EXAMPLE / "pipeline.test.yml"), {})
    results = list(run_file(spark, file))
    assert {each.case.name: each.differences for each in results} == {case.name: () for case in file.cases}
