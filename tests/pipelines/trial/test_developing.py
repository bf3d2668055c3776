"""A definition is checked, analysed and shown on one session, each time that a file changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.planning.loading import Definition
from odradek.pipelines.trial.developing import Workbench, await_change, state_of_files
from tests.pipelines.planning.plans import planned

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def definition(step: str) -> Definition:
    plan, verdicts = planned(f"steps: {{s: {step}}}\nsinks: {{out: {{from: s, topic: out}}}}\n")
    assert verdicts == []
    return Definition(plan.pipeline, (), is_sound=True, plan=plan)


def test_a_change_is_noticed(tmp_path: Path) -> None:
    file, module = tmp_path / "p.yml", tmp_path / "steps" / "rows.py"
    module.parent.mkdir()
    file.write_text("a")
    (tmp_path / "notes.txt").write_text("not watched")
    before = state_of_files(tmp_path)
    assert list(before) == [str(file)]
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            module.write_text("b")

    assert list(await_change(tmp_path, before, wait)) == [str(file), str(module)]
    assert len(waited) == 3
    file.unlink()
    assert list(await_change(tmp_path, before, wait)) == [str(module)]


@pytest.mark.spark
def test_a_round_reports_what_is_wrong_now(spark: SparkSession) -> None:
    definitions = iter([
        definition('{sql: "select id, size(amount) as n from orders"}'),
        definition('{sql: "select id from orders"}'),
        Definition(None, (), is_sound=False),
    ])  # fmt: skip
    bench = Workbench(spark, lambda: next(definitions), step="nosuch")
    wrong, right, unread = bench.round(), bench.round(), bench.round()
    assert [each.code for each in wrong.problems] == ["OD05"]
    assert not wrong.is_sound
    assert right.is_sound
    assert right.problems == ()
    assert right.failure.startswith("p has no source or step 'nosuch'")
    assert not unread.is_sound
