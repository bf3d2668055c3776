"""A run: what Spark says of its definition, signal handling and cancellation."""

from __future__ import annotations

import signal
import sqlite3
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.model import Pipeline
from odradek.pipelines.operating.checkpoints import LOCK
from odradek.pipelines.spark import launching
from odradek.pipelines.spark.launching import (
    DefinitionRefused,
    RunCallbacks,
    RunOptions,
    cancelled_when,
    restored_interrupt_handler,
    run_pipeline,
)
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.topics import Cluster
from tests.pipelines.spark.stage import renamed

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from tests.pipelines.spark.stage import Stage


def test_ctrl_c_stays_ours_when_spark_takes_it() -> None:
    """PySpark's own handler cancels all jobs, and ends the process with an exception."""

    def ours(_number: int, _frame: FrameType | None) -> None:
        pass

    before = signal.signal(signal.SIGINT, ours)
    try:
        with restored_interrupt_handler():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is ours
    finally:
        signal.signal(signal.SIGINT, before)


class Context:
    """A fake SparkContext, whose job fails when all jobs are cancelled."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.is_cancelled = threading.Event()

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        self.is_cancelled.set()


def test_a_batch_ends_when_it_is_asked_to_and_says_so() -> None:
    session: Any = Context()
    is_stopped = threading.Event()

    def run() -> None:
        with cancelled_when(is_stopped.is_set, session, Pipeline("p")):
            is_stopped.set()
            assert session.is_cancelled.wait(60)
            raise RuntimeError("Job 3 cancelled")

    with pytest.raises(PipelineError, match="p was stopped before it finished; its output so far is kept"):
        run()


def test_a_batch_that_fails_by_itself_keeps_its_own_words() -> None:
    session: Any = Context()
    with (
        pytest.raises(RuntimeError, match="no space left"),
        cancelled_when(lambda: False, session, Pipeline("p")),
    ):
        raise RuntimeError("no space left")
    assert not session.is_cancelled.is_set()


DEFINITION = """
    engine: %s
    warehouse: sqlite:///w.db
    sources: {rows: {topic: "@in", schema: "id BIGINT, at TIMESTAMP"}}
    views: {n: {from: rows, by: [id], aggregate: {n: "count(*) + size(at)"}}}
    sinks: {out: {from: rows, topic: "@never"}}
"""


@pytest.mark.more(but="standard")
@pytest.mark.spark
@pytest.mark.parametrize("engine", ["standard", "batch"])
def test_a_definition_that_spark_refuses_is_not_started(
    stage: Stage, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Spark, `validate` has no types of the arguments of `size`."""
    stage.create("in")
    pipeline = stage.pipeline(DEFINITION % engine)
    monkeypatch.setattr(launching, "session_of", lambda _pipeline, _say: nullcontext(stage.spark))
    callbacks = RunCallbacks(say=lambda _text: None, report=lambda _report: None)
    with pytest.raises(DefinitionRefused, match=r"pipeline.yml:8:\d+: error OD05: .*size\(at\)"):
        run_pipeline(pipeline, RunOptions(until_caught_up=True), lambda: False, callbacks)
    with sqlite3.connect(stage.folder / "w.db") as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == []
    assert stage.topic("never") not in Cluster(stage.bootstrap_servers, {}).partitions


@pytest.mark.spark
def test_a_start_that_spark_refuses_takes_no_claim(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The claim on shared storage would stop the healthy run of another machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    stage.create("in")
    (tmp_path / "shared").mkdir()
    claim = tmp_path / "shared" / LOCK
    claim.write_text("pid 1 on another")
    pipeline = renamed(stage.pipeline(DEFINITION % "standard"), checkpoints=f"file://{tmp_path}/shared")
    monkeypatch.setattr(launching, "session_of", lambda _pipeline, _say: nullcontext(stage.spark))
    callbacks = RunCallbacks(say=lambda _text: None, report=lambda _report: None)
    with pytest.raises(DefinitionRefused, match=r"size\(at\)"):
        run_pipeline(pipeline, RunOptions(until_caught_up=True), lambda: False, callbacks)
    assert claim.read_text() == "pid 1 on another"
