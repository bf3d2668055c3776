"""The outputs of a batch: those that recognize a replay first."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from odradek.pipelines.definition.model import Pipeline, PythonTarget, TableTarget
from odradek.pipelines.definition.operations import PythonReference
from odradek.pipelines.planning.plan import End, Flow, Plan
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.writing import batches
from odradek.pipelines.spark.writing.batches import outputs_of
from odradek.pipelines.spark.writing.warehouse import BatchNumber
from tests.pipelines.spark.stage import renamed

if TYPE_CHECKING:
    from odradek.pipelines.spark.writing.batches import BatchId
    from tests.pipelines.spark.stage import Stage


def test_a_function_gets_the_checkpoint_with_the_number_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that skips the batches that it has stored must not skip those after a reset."""
    seen: list[BatchId] = []
    monkeypatch.setattr(batches, "without_internal", lambda frame: frame)
    monkeypatch.setattr(batches, "load_reference", lambda *_: lambda _frame, batch: seen.append(batch))
    ends = (End("t", "rows", TableTarget("t")), End("s", "rows", PythonTarget(PythonReference("m", "f"))))
    plan, flow = Plan(Pipeline("p"), {}, ends), Flow("rows", "rows", ends=ends)
    for query in ("before the reset", "after it"):
        stored, function = outputs_of(plan, flow, MagicMock(), [], BatchNumber(query, 7), None, Counter())
        assert stored.func is batches.write_tables
        function()
    expected = [(7, "before the reset"), (7, "after it")]
    assert [(int(each), each.checkpoint) for each in seen] == expected
    assert [(int(each), each.checkpoint) for each in pickle.loads(pickle.dumps(seen))] == expected


FUNCTIONS = """
from pathlib import Path
folder = Path(__file__).parent

def first(frame, number):
    with (folder / "first").open("a") as file:
        file.write("".join(f"{row.id}\\n" for row in frame.select("id").orderBy("id").collect()))

def second(frame, number):
    if not (folder / "is_fixed").exists():
        raise RuntimeError("the service is away")
"""
DEFINITION = """
    warehouse: sqlite:///w.db
    sources: {rows: {topic: "@in", schema: "id BIGINT"}}
    steps: {good: {sql: "select id from rows"}}
    sinks:
      out: {from: good, topic: "@out"}
      first: {from: good, python: outputs_functions:first}
      second: {from: good, python: outputs_functions:second}
      kept: {from: good, table: kept}
"""


@pytest.mark.spark
def test_a_retry_repeats_only_what_cannot_recognize_it(stage: Stage) -> None:
    stage.create("in")
    stage.produce("in", [{"id": 1}, {"id": 2}])
    (stage.folder / "outputs_functions.py").write_text(FUNCTIONS)
    pipeline = stage.pipeline(DEFINITION)
    for _ in range(2):
        with pytest.raises(PipelineFailed, match="the service is away"):
            stage.run(pipeline)
    assert stage.read("out") == []  # a topic, which cannot recognize a replay, comes after what may fail
    (stage.folder / "is_fixed").touch()
    stage.run(renamed(pipeline))
    stage.produce("in", [{"id": 3}])
    stage.run(pipeline)
    assert sorted(json.loads(each.value or b"")["id"] for each in stage.read("out")) == [1, 2, 3]
    assert (stage.folder / "first").read_text().split() == ["1", "2"] * 3 + ["3"]
    with sqlite3.connect(stage.folder / "w.db") as connection:
        assert connection.execute("select id from kept order by id").fetchall() == [(1,), (2,), (3,)]
