"""The realtime engine reports what the engines with micro-batches report."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines import realtime
from odradek.pipelines.spark.engines.realtime import RealtimeEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import WAIT_S, Stage, renamed

if TYPE_CHECKING:
    from odradek.pipelines.spark.computing.counts import BatchReport

pytestmark = pytest.mark.spark

LEAST_BATCH = "5 seconds"  # Spark refuses shorter batches of real-time mode


@pytest.fixture(autouse=True)
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime, "CHECKPOINT_EVERY", LEAST_BATCH)


def reports_of(stage: Stage, definition: str, rows: int) -> list[BatchReport]:
    """The reports of a run until its batches have read this number of records."""
    pipeline = renamed(stage.pipeline(definition), engine=Engine.REALTIME)
    reports: list[BatchReport] = []
    running = RealtimeEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline), reports.append).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        running.wait(lambda: sum(each.rows or 0 for each in reports) >= rows or time.monotonic() > give_up_at)
    finally:
        running.stop()
    return reports


def violations_in(reports: list[BatchReport]) -> Counter[tuple[str, str]]:
    """Violations by step and expectation, and the rows of each step that were checked."""
    found: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for each in report.violations:
            found[each.step, each.expectation] += each.rows
        found.update({(each.step, "checked"): each.checked for each in report.violations})
    return found


@pytest.mark.parametrize("dead_letters", ["dead_letters: '@dead'", ""], ids=["letters", "no letters"])
def test_violations_rejected_records_and_written_rows_are_counted(stage: Stage, dead_letters: str) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}, {"id": 2}, {"id": 9}, b"no JSON"])
    reports = reports_of(
        stage,
        f"""
        {dead_letters}
        sources: {{readings: {{topic: "@in", schema: "id BIGINT"}}}}
        steps:
          each:
            sql: select n as id from readings lateral view explode(array(id, 10 * id)) as n
            expect: {{low: {{check: id < 5, otherwise: warn}}, middle: {{check: id < 50, otherwise: drop}}}}
          odd:
            sql: select id from each
            expect: {{odd: {{check: id % 2 = 1, otherwise: {"quarantine" if dead_letters else "drop"}}}}}
          unread: {{sql: select id from readings, expect: {{two: id > 1}}}}
        sinks:
          all: {{from: each, topic: "@all"}}
          odd: {{from: odd, topic: "@odd"}}
        """,
        rows=4,
    )
    assert sum(each.rows or 0 for each in reports) == 4
    assert sum(each.rejected for each in reports) == 1
    assert violations_in(reports) == {
        ("each", "low"): 4, ("each", "middle"): 1, ("each", "checked"): 6, ("odd", "odd"): 3, ("odd", "checked"): 5,
        ("unread", "two"): 1, ("unread", "checked"): 3,
    }  # fmt: skip
    assert sum((Counter(each.written) for each in reports), Counter()) == {"all": 5, "odd": 2}
