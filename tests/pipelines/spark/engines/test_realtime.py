"""The realtime engine writes and reports what the engines with micro-batches do, by one pass over the source."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.plan import CANNOT_COMPUTE
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines import realtime
from odradek.pipelines.spark.engines.realtime import RealtimeEngine, tasks_of
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import WAIT_S, Stage, renamed
from tests.pipelines.spark.writing.test_topics import BAD, DEFINITION, check_outputs, fill

if TYPE_CHECKING:
    from odradek.pipelines.spark.computing.counts import BatchReport

pytestmark = pytest.mark.spark

LEAST_BATCH = "5 seconds"  # Spark refuses shorter batches of real-time mode


def test_records_leave_while_the_batch_runs(stage: Stage) -> None:
    fill(stage)
    pipeline = renamed(stage.pipeline(DEFINITION), engine=Engine.REALTIME)
    running = RealtimeEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        while len(stage.read("dead")) < len(BAD) or len(stage.read("out")) < 2 or not stage.read("warnings"):
            running.raise_failure()
            assert time.monotonic() < give_up_at
            time.sleep(0.2)  # a poll's pause
    finally:
        running.stop()
    check_outputs(stage)


def test_too_few_threads_are_refused(stage: Stage) -> None:
    """The tasks that do not start would lose their records without an error."""
    stage.create("in", 9)
    pipeline = renamed(stage.pipeline(DEFINITION), engine=Engine.REALTIME)
    cluster = prepare_topics(pipeline)
    assert tasks_of(pipeline, cluster) == 9
    with pytest.raises(PipelineError, match=r"runs 9 tasks at once.*local\[8\] has threads for 8.*use local\[9\]"):
        RealtimeEngine(stage.spark, plan_again(pipeline), cluster).start()


def test_an_older_spark_is_refused_with_a_way_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.definition.spark_version.version", lambda _name: "4.1.1")
    stage.create("in")
    pipeline = stage.pipeline(DEFINITION)
    with pytest.raises(PipelineError, match=r"needs PySpark 4.3, and 4.1.1 is installed; install .* engine: standard"):
        RealtimeEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start()


@pytest.fixture
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
    return +found


@pytest.mark.more
@pytest.mark.usefixtures("short_batches")
def test_records_are_written_and_counted(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1}, {"id": 2}, {"id": 9}, b"no JSON"])
    reports = reports_of(
        stage,
        """
        dead_letters: "@dead"
        sources: {readings: {topic: "@in", schema: "id BIGINT"}}
        steps:
          each:
            sql: select n as id from readings lateral view explode(array(id, 10 * id)) as n
            expect: {low: {check: id < 5, otherwise: warn}, middle: {check: id < 50, otherwise: drop}}
          odd: {sql: select id from each, expect: {odd: {check: id % 2 = 1, otherwise: quarantine}}}
          shares: {sql: "select id, 12 / (id - 2) as share from readings where id < 5"}
        sinks:
          all: {from: each, topic: "@all"}
          odd: {from: odd, topic: "@odd"}
          shares: {from: shares, topic: "@shares"}
        """,
        rows=4,
    )
    assert [each.json for each in stage.read("shares")] == [{"id": 1, "share": -12.0}]
    assert [each.json["id"] for each in stage.read("odd")] == [1, 9]
    letters = Counter(each.headers["odradek-step"] for each in stage.read("dead"))
    assert letters == {"readings": 1, "odd": 3, "shares": 1}
    assert sum(each.rows or 0 for each in reports) == 4
    assert sum(each.rejected for each in reports) == 1
    assert violations_in(reports) == {
        ("each", "low"): 4, ("each", "middle"): 1, ("each", "checked"): 6, ("odd", "odd"): 3, ("odd", "checked"): 5,
        ("shares", CANNOT_COMPUTE): 1,
    }  # fmt: skip
    assert sum((Counter(each.written) for each in reports), Counter()) == {"all": 5, "odd": 2, "shares": 1}
