"""Checkpoints on shared storage: the lock, the fingerprints and reset notes are there too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoints import DEFINITION, LOCK, START, Checkpoints
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.resuming import CheckpointRefused, CheckpointTaken, resuming
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.hadoop_files import HadoopFiles
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import renamed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION_TEXT = """
    sources: {rows: {topic: "@in", schema: "id BIGINT"}}
    sinks: {out: {from: rows, topic: "@out"}}
"""


def quiet(_text: str) -> None:
    """Ignores messages."""


def test_files_are_written_whole(spark: SparkSession, tmp_path: Path) -> None:
    files = HadoopFiles(spark, f"file://{tmp_path}/a/b/")
    assert (files.read("x"), files.has("x")) == (None, False)
    files.replace("x", "één")
    assert files.read("x") == "één"
    files.replace("x", "three")
    files.replace("y", "new")
    assert (files.read("x"), files.read("y")) == ("three", "new")
    files.remove("x")
    files.remove("x")
    assert sorted(each.name for each in (tmp_path / "a" / "b").iterdir() if not each.name.startswith(".")) == ["y"]
    with pytest.raises(PipelineError, match="nosuch"):
        HadoopFiles(spark, "nosuch://bucket/p")


def test_what_a_pipeline_keeps_is_with_its_checkpoint(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    stage.create("in")
    shared = f"file://{tmp_path}/shared"
    pipeline = renamed(stage.pipeline(DEFINITION_TEXT), checkpoints=shared)
    cluster = prepare_topics(pipeline)
    files = HadoopFiles(stage.spark, shared)
    Checkpoints(pipeline, files).note_start(["rows"], Start(StartAt.LATEST))
    with resuming(plan_again(pipeline), cluster, quiet, files) as starts:
        assert starts == {"rows": Start(StartAt.LATEST)}
        assert sorted(each.name for each in (tmp_path / "shared").iterdir() if each.suffix == ".json") == [
            DEFINITION,
            START,
        ]
        with (
            pytest.raises(
                CheckpointTaken, match=r"another process \(pid \d+ on .*\) uses the checkpoint of p in file://"
            ),
            resuming(plan_again(pipeline), cluster, quiet, files),
        ):
            pass
        stage.produce("in", [{"id": 1}])
        stage.run(pipeline)
    assert not (tmp_path / "shared" / LOCK).exists()
    assert Checkpoints(pipeline, files).begun() == {"rows"}
    assert Checkpoints(pipeline, files).starts() == {}


def test_a_definition_that_is_not_compatible_takes_no_claim(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A claim would stop the run of another machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    stage.create("in")
    stage.create("other")
    shared = f"file://{tmp_path}/shared"
    files = HadoopFiles(stage.spark, shared)
    pipeline = renamed(stage.pipeline(DEFINITION_TEXT), checkpoints=shared)
    with resuming(plan_again(pipeline), prepare_topics(pipeline), quiet, files):
        files.replace("rows/offsets/0", "{}")
    files.replace(LOCK, "pid 1 on another")
    changed = renamed(stage.pipeline(DEFINITION_TEXT.replace("@in", "@other")), checkpoints=shared)
    with (
        pytest.raises(CheckpointRefused, match="is not compatible with its checkpoint"),
        resuming(plan_again(changed), prepare_topics(changed), quiet, files),
    ):
        pass
    assert files.read(LOCK) == "pid 1 on another"
