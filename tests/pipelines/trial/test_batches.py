"""Cases of several micro-batches: state over batches, late rows, windows that close, and timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.trial.files import read_case_file
from odradek.pipelines.trial.running import Result, run_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SOURCE = """
pipeline: p
warehouse: sqlite:///w.db
sources:
  readings:
    topic: in
    schema: "id BIGINT NOT NULL, pump BIGINT, at TIMESTAMP"
    watermark: {column: at, delay: 1 minute}
"""
WINDOWS = """
steps:
  minutes: {from: readings, window: {column: at, size: 1 minute}, by: [pump], aggregate: {events: count(*)}}
sinks:
  minutes: {from: minutes, topic: minutes}
  changes: {from: minutes, topic: changes, mode: update}
  latest: {from: minutes, table: latest, key: [window_start, pump]}
views:
  totals: {from: readings, by: [pump], aggregate: {events: count(*)}}
"""
# Python's state makes each batch slow, so that these cases have a definition without windows.
STATE = """
steps:
  quiet: {from: readings, state: {key: [pump], processor: "own:Quiet", timeout: 30 minutes}, schema: pump BIGINT}
sinks:
  quiet: {from: quiet, topic: quiet}
"""
OWN = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Quiet(StatefulProcessor):
    '''A row for each pump, the timeout after a record of it.'''

    def __init__(self, timeout_ms):
        self.timeout_ms = timeout_ms

    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, timerValues):
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + self.timeout_ms)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield Row(pump=key[0])
"""
WINDOW_CASES = """
cases:
  groups grow over batches:
    given:
      - readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:10"}]
      - expect:
          sinks: {minutes: [], changes: [{pump: 1, events: 1}]}
          views: {totals: [{pump: 1, events: 1}]}
      - readings: [{id: 2, pump: 1, at: "2026-01-01 12:00:20"}]
      - expect: {sinks: {minutes: [], latest: [{pump: 1, events: 2}]}}
      - advance: 1 minute
      - expect: {sinks: {minutes: []}}
      - advance: 1 minute
    expect:
      sinks:
        minutes: [{pump: 1, events: 2, window_start: "2026-01-01 12:00"}]
        changes: [{events: 1}, {events: 2}]
        latest: [{pump: 1, events: 2}]
      views: {totals: [{pump: 1, events: 2}]}
  a late row is dropped by the aggregation only:
    given:
      - readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:10"}]
      - readings: [{id: 2, pump: 2, at: "2026-01-01 12:10:00"}]
      - readings: [{id: 3, pump: 2, at: "2026-01-01 12:10:01"}]
      - readings: [{id: 4, pump: 1, at: "2026-01-01 12:00:30"}]
    expect:
      sinks: {minutes: [{pump: 1, events: 1}], latest: [{pump: 1, events: 1}, {pump: 2, events: 2}]}
      views: {totals: [{pump: 1, events: 2}, {pump: 2, events: 2}]}
  one batch closes its windows:
    given: {readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:10"}]}
    expect: {sinks: {minutes: [{pump: 1, events: 1}]}}
"""
STATE_CASES = """
cases:
  a timer fires when the time has come:
    given:
      - readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:00"}]
      - advance: 20 minutes
      - readings: [{id: 2, pump: 2, at: "2026-01-01 12:20:00"}]
      - expect: {sinks: {quiet: []}}
      - advance: 20 minutes
      - expect: {sinks: {quiet: [{pump: 1}]}}
      - advance: 20 minutes
    expect: {sinks: {quiet: [{pump: 1}, {pump: 2}]}}
  the end of event time is not the time of a timer:
    given: {readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:10"}]}
    expect: {sinks: {quiet: []}}
"""


def write(folder: Path, definition: str, cases: str) -> str:
    """Writes the files of a pipeline; the path of its cases."""
    (folder / "p.yml").write_text(definition)
    (folder / "own.py").write_text(OWN)
    (folder / "p.test.yml").write_text(cases)
    return str(folder / "p.test.yml")


@pytest.fixture(scope="module")
def results(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    files = [
        write(tmp_path_factory.mktemp("windows"), SOURCE + WINDOWS, WINDOW_CASES),
        write(tmp_path_factory.mktemp("state"), SOURCE + STATE, STATE_CASES),
    ]
    return {each.case.name: each for file in files for each in run_file(spark, read_case_file(file, {}))}


@pytest.mark.spark
@pytest.mark.timeout(600)  # the first test runs the cases of all
@pytest.mark.parametrize(
    "name",
    [
        "groups grow over batches",
        "a late row is dropped by the aggregation only",
        "one batch closes its windows",
        "a timer fires when the time has come",
        "the end of event time is not the time of a timer",
    ],
)
def test_a_case_passes(results: dict[str, Result], name: str) -> None:
    assert results[name].differences == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[{advance: soon}]", "advance of given of case 'c' must be a duration"),
        ("[{readings: [], advance: 1 s}]", "the pipeline has no source or step 'advance'"),
        ("[{expect: {error: x}}]", "unknown key 'error' of expect of case 'c'"),
        ("[3]", "given must be a mapping of names, not the number 3"),
    ],
)
def test_wrong_batches_are_reported(tmp_path: Path, given: str, message: str) -> None:
    cases = f"cases: {{c: {{given: {given}, expect: {{sinks: {{minutes: []}}}}}}}}"
    file = write(tmp_path, SOURCE + WINDOWS, cases)
    with pytest.raises(ProblemList, match=message):
        read_case_file(file, {})


def test_the_batch_engine_has_no_time_to_advance(tmp_path: Path) -> None:
    cases = "cases: {c: {given: [{advance: 1 s}], expect: {sinks: {minutes: []}}}}"
    file = write(tmp_path, f"engine: batch\n{SOURCE}{WINDOWS}", cases)
    with pytest.raises(ProblemList, match="the batch engine runs once; remove advance"):
        read_case_file(file, {})
