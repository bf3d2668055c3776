"""Cases of several micro-batches: state over batches, late rows, windows that close, and timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.trial.parsing import read_case_file
from odradek.pipelines.trial.running import run_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SOURCES = """
pipeline: p
warehouse: sqlite:///w.db
sources:
  readings:
    topic: in
    schema: "id BIGINT NOT NULL, pump BIGINT, at TIMESTAMP"
    watermark: {column: at, delay: 1 minute}
"""
MINUTES = "{from: readings, window: {column: at, size: 1 minute}, by: [pump], aggregate: {events: count(*)}}"
# Three definitions, because a case runs all queries of its definition.
WINDOWS = f"""{SOURCES}
steps:
  minutes: {MINUTES}
sinks:
  minutes: {{from: minutes, topic: minutes}}
  changes: {{from: minutes, topic: changes, mode: update}}
  latest: {{from: minutes, table: latest, key: [window_start, pump]}}
views:
  totals: {{from: readings, by: [pump], aggregate: {{events: count(*)}}}}
"""
LATE = f"""{SOURCES}
steps: {{minutes: {MINUTES}}}
sinks: {{minutes: {{from: minutes, topic: minutes}}}}
"""
CASES_OF_LATE_ROWS = """
cases:
  rows before 1970 are late:
    given:
      - readings: [{id: 1, pump: 1, at: "1969-12-31 12:00:00"}]
      - readings: [{id: 2, pump: 1, at: "1969-12-31 12:00:00"}, {id: 3, pump: 3, at: "1970-01-02 12:00:00"}]
      - advance: 1 hour
    expect: {sinks: {minutes: [{pump: 3, events: 1}]}}
"""
QUIET = '{from: readings, state: {key: [pump], processor: "own:Quiet", timeout: 30 minutes}, schema: pump BIGINT}'
TIMERS = f"""{SOURCES}
steps: {{quiet: {QUIET}}}
sinks: {{quiet: {{from: quiet, topic: quiet}}}}
"""
WINDOWS_AND_TIMERS = f"""{SOURCES}
steps: {{minutes: {MINUTES}, quiet: {QUIET}}}
sinks: {{minutes: {{from: minutes, topic: minutes}}, quiet: {{from: quiet, topic: quiet}}}}
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
CASES_OF_WINDOWS = """
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
"""
CASES_OF_TIMERS = """
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
"""
CASE_OF_BOTH = """
cases:
  one batch closes its windows:
    given: {readings: [{id: 1, pump: 1, at: "2026-01-01 12:00:10"}]}
    expect: {sinks: {minutes: [{pump: 1, events: 1}], quiet: []}}
"""


@pytest.mark.more(but="a timer fires when the time has come-definition2-cases2")
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "definition", "cases"),
    [
        pytest.param("groups grow over batches", WINDOWS, CASES_OF_WINDOWS, marks=pytest.mark.soak),
        pytest.param(
            "a late row is dropped by the aggregation only", WINDOWS, CASES_OF_WINDOWS, marks=pytest.mark.soak
        ),
        ("a timer fires when the time has come", TIMERS, CASES_OF_TIMERS),
        ("rows before 1970 are late", LATE, CASES_OF_LATE_ROWS),
        pytest.param("one batch closes its windows", WINDOWS_AND_TIMERS, CASE_OF_BOTH, marks=pytest.mark.soak),
    ],
)
def test_a_case_passes(spark: SparkSession, tmp_path: Path, name: str, definition: str, cases: str) -> None:
    (tmp_path / "p.yml").write_text(definition)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "p.test.yml").write_text(cases)
    file = read_case_file(str(tmp_path / "p.test.yml"), {})
    (result,) = run_file(spark, file, only=name)
    assert result.differences == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[{advance: soon}]", "advance of given of case 'c' must be a duration"),
        ("[{readings: [], advance: 1 s}]", "the pipeline has no source 'advance'"),
        ("[{expect: {error: x}}]", "unknown key 'error' of expect of case 'c'"),
        ("[3]", "given must be a mapping of names, not the number 3"),
    ],
)
def test_wrong_batches_are_reported(tmp_path: Path, given: str, message: str) -> None:
    (tmp_path / "p.yml").write_text(TIMERS)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "p.test.yml").write_text(f"cases: {{c: {{given: {given}, expect: {{sinks: {{quiet: []}}}}}}}}")
    with pytest.raises(ProblemList, match=message):
        read_case_file(str(tmp_path / "p.test.yml"), {})


def test_the_batch_engine_has_no_time_to_advance(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text("engine: batch\n" + TIMERS)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "p.test.yml").write_text("cases: {c: {given: [{advance: 1 s}], expect: {sinks: {quiet: []}}}}")
    with pytest.raises(ProblemList, match="the batch engine runs once; remove advance"):
        read_case_file(str(tmp_path / "p.test.yml"), {})
