"""Runs of plans against a broker: realtime, checkpoints that continue, and tables that are rebuilt."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.continuing import CheckpointRefused, continuing
from odradek.pipelines.spark.engines import realtime
from odradek.pipelines.spark.engines.realtime import RealtimeEngine
from odradek.pipelines.spark.rebuilding import Rebuilding, RebuildRefused, end_of, refuse_lossy
from odradek.pipelines.spark.writing.table_swaps import changing
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import WAIT_S

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.computing.counts import BatchReport
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

LEAST_BATCH = "5 seconds"  # Spark refuses shorter batches of real-time mode
VIEWS = """
    warehouse: sqlite:///w.db
    sources: {rows: {topic: "@in", schema: "id BIGINT, v BIGINT"}}
    steps: {good: {sql: "select id, v from rows", expect: {whole: {check: v >= 0, otherwise: drop}}}}
    sinks: {out: {from: good, topic: "@out"}}
    views:
      last: {from: good, key: [id], order_by: v}
      totals: {from: good, by: [id], aggregate: {events: count(*), total: sum(v)}}
"""
APPENDED = """
    warehouse: sqlite:///w.db
    sources:
      rows: {topic: "@in", schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
    steps: {n: {from: rows, window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}}
    sinks: {n: {from: n, table: n}}
"""


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime, "CHECKPOINT_EVERY", LEAST_BATCH)


def run(stage: Stage, pipeline: Pipeline) -> list[BatchReport]:
    """Runs like `odradek pipeline run`, in the existing session."""
    plan, cluster = plan_again(pipeline), prepare_topics(pipeline)
    with continuing(plan, cluster, lambda _text: None) as starts:
        return stage.run(pipeline, starts=starts)


def rows(stage: Stage, table: str) -> list[tuple[Any, ...]]:
    with changing(f"sqlite:///{stage.folder / 'w.db'}") as connection:
        return sorted(tuple(row) for row in connection.execute(sa.text(f"SELECT * FROM {table}")))


def test_the_realtime_engine_writes_and_counts(stage: Stage) -> None:
    stage.create("in", 1)
    stage.produce("in", [{"id": 1, "n": 2}, {"id": 2, "n": 0}, {"id": 9, "n": 1}, b"no JSON"])
    pipeline = stage.pipeline(
        """
        engine: realtime
        dead_letters: "@dead"
        sources: {rows: {topic: "@in", schema: "id BIGINT, n BIGINT"}}
        steps:
          shares:
            sql: select id, 12 / n as share from rows
            expect: {small: {check: id < 5, otherwise: drop}}
        sinks: {all: {from: rows, topic: "@all"}, shares: {from: shares, topic: "@shares"}}
        """
    )
    reports: list[BatchReport] = []
    running = RealtimeEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline), reports.append).start()
    try:
        give_up_at = time.monotonic() + WAIT_S
        running.wait(lambda: sum(each.rows or 0 for each in reports) >= 4 or time.monotonic() > give_up_at)
    finally:
        running.stop()
    assert [each.json["id"] for each in stage.read("all")] == [1, 2, 9]
    assert [each.json for each in stage.read("shares")] == [{"id": 1, "share": 6.0}]
    assert Counter(each.headers["odradek-step"] for each in stage.read("dead")) == {"rows": 1, "shares": 1}
    assert sum((Counter(each.written) for each in reports), Counter()) == {"all": 3, "shares": 1}
    assert sum(each.rejected for each in reports) == 1


def test_views_are_rebuilt_and_the_stream_goes_on(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 1, "v": 3}, {"id": 2, "v": -1}])
    pipeline = stage.pipeline(VIEWS)
    run(stage, pipeline)
    stage.produce("in", [{"id": 3, "v": 7}], partition=1)  # not read by the stream, so not in a view of latest rows
    with changing(f"sqlite:///{stage.folder / 'w.db'}") as connection:
        connection.execute(sa.text("UPDATE last SET v = 99"))
        connection.execute(sa.text("DROP TABLE totals"))
    plan = plan_again(pipeline)
    rebuilding = Rebuilding(stage.spark, plan, prepare_topics(pipeline), lambda _text: None)
    assert {name: rebuilding.rebuild(end_of(plan, name, is_view=True)) for name in ("last", "totals")} == {
        "last": 2, "totals": 3
    }  # fmt: skip
    assert rows(stage, "last") == [(1, 3), (2, 2)]
    assert rows(stage, "totals") == [(1, 2, 4), (2, 1, 2), (3, 1, 7)]
    stage.produce("in", [{"id": 1, "v": 4}])
    run(stage, pipeline)
    assert rows(stage, "last") == [(1, 4), (2, 2), (3, 7)]
    assert rows(stage, "totals") == [(1, 3, 8), (2, 1, 2), (3, 1, 7)]  # the state continued, nothing was counted twice
    assert len(stage.read("out")) == 5


def test_final_groups_that_are_appended_are_not_rebuilt(stage: Stage) -> None:
    plan = plan_again(stage.pipeline(APPENDED))
    with pytest.raises(RebuildRefused, match="sink 'n': its rows derive from state and are appended"):
        refuse_lossy(plan, end_of(plan, "n", is_view=False))


def test_a_checkpoint_continues_with_a_compatible_definition_only(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": 1, "v": 1}])
    pipeline = stage.pipeline(VIEWS)
    run(stage, pipeline)
    kept = Checkpoints(pipeline)
    assert (kept.recorded() or {})["version"] == 4
    other = stage.pipeline(VIEWS.replace("sum(v)", "max(v)"))
    with pytest.raises(CheckpointRefused, match="view totals"):
        run(stage, other)
    changed = stage.pipeline(VIEWS.replace("v >= 0", "v > 0"))
    stage.produce("in", [{"id": 1, "v": 0}, {"id": 1, "v": 5}])
    run(stage, changed)
    assert rows(stage, "totals") == [(1, 2, 6)]
    kept.files.replace("definition.json", json.dumps({**(kept.recorded() or {}), "version": 3}))
    with pytest.raises(CheckpointRefused, match="of another version of Odradek"):
        run(stage, changed)
