"""`odradek pipeline test`: what it prints, what it exits with, and what it refuses before Spark starts."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run

LIMIT_S = 110
DEFINITION = """
pipeline: p
sources: {readings: {topic: in, schema: "id BIGINT, pressure DOUBLE"}}
steps: {high: {sql: select * from readings where pressure > 100}}
sinks: {out: {from: high, topic: out, key: id}}
"""
CASES = """\
cases:
  high pressure goes out:
    given: {readings: [{id: 1, pressure: 150}, {id: 2, pressure: 50}]}
    expect: {sinks: {out: [{_key: "1", id: 1, pressure: 150}]}}
  this is wrong:
    given: {readings: [{id: 1, pressure: 150}]}
    expect:
      sinks:
        out:
          - {id: 1, pressure: 151}
"""


def write(folder: Path, cases: str = CASES) -> str:
    (folder / "p.yml").write_text(DEFINITION)
    (folder / "p.test.yml").write_text(cases)
    return str(folder / "p.yml")


@pytest.mark.spark
def test_what_differs_is_reported_with_its_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "pipeline", "test", write(tmp_path)],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0].startswith("ok    high pressure goes out")
    assert lines[1].startswith("FAIL  this is wrong")
    assert "p.test.yml:5," in lines[1]
    assert lines[2:] == [
        "line 10: sink 'out': the nearest row differs in pressure",
        "pressure  expected 151, found 150.0",
    ]
    assert "1 of 2 cases failed" in done.stderr
    assert "WARN" not in done.stderr


def test_what_is_wrong_with_the_file_is_reported_before_spark_starts(offline: Run, tmp_path: Path) -> None:
    wrong = textwrap.dedent("""\
        cases:
          c: {given: {reading: []}, expect: {sinks: {out: []}}}
        """)
    ran = offline("pipeline", "test", write(tmp_path, wrong))
    assert ran.code == 1
    assert "p.test.yml:2:15: the pipeline has no source 'reading'; did you mean 'readings'?" in ran.errors
    assert "1 error, nothing was run" in ran.errors
    assert "starting Spark" not in ran.errors


def test_warnings_of_the_definition_are_no_errors(offline: Run, tmp_path: Path) -> None:
    file = write(tmp_path)
    steps = "steps: {aged: {sql: 'select now() as at from readings'}, high: {sql: selec 1}}"
    (tmp_path / "p.yml").write_text(DEFINITION.replace(DEFINITION.splitlines()[3], steps))
    ran = offline("pipeline", "test", file)
    assert "SQL must start with SELECT" in ran.errors
    assert "reads the clock" not in ran.errors
    assert "1 error, nothing was run" in ran.errors


def test_a_case_that_is_not_there_is_reported_with_the_nearest(offline: Run, tmp_path: Path) -> None:
    ran = offline("pipeline", "test", write(tmp_path), "--case", "this is wrog")
    assert ran.code == 1
    assert "there is no case 'this is wrog'; did you mean 'this is wrong'?" in ran.errors


def test_a_folder_without_tests_is_reported(offline: Run, tmp_path: Path) -> None:
    ran = offline("pipeline", "test", str(tmp_path))
    assert ran.code == 1
    assert "found no pipeline tests in this folder or below; the name of a test file ends in .test.yml" in ran.errors
