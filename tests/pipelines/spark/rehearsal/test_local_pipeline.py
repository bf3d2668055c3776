"""Changes of a pipeline for a rehearsal: local ends, and sources without rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from odradek.pipelines.definition.model import FileOrigin
from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.rehearsal.local_pipeline import with_local_ends, without_sources
from tests.pipelines.planning.plans import sound_plan

TEXT = """
steps:
  paid: {sql: "select id, paid, paid_at from payments where paid > 0"}
  minutes: {from: paid, window: {column: paid_at, size: 1 minute}, by: [id], aggregate: {n: count(*)}}
  named: {sql: "select customer, country from customers"}
  places: {sql: "select o.id, c.country from orders o left join named c on o.customer = c.customer"}
sinks:
  minutes: {from: minutes, table: minutes, key: [window_start, id]}
  places: {from: places, topic: places}
views:
  latest: {from: paid, key: [id]}
"""


def test_ends_are_files_below_a_folder() -> None:
    plan = plan_again(with_local_ends(sound_plan(TEXT).pipeline, Path("/f"), ["customers"]))
    assert plan.pipeline.bootstrap_servers == "file:/f"
    assert plan.pipeline.engine is Engine.STANDARD
    origin = plan.pipeline.sources[-1].origin
    assert isinstance(origin, FileOrigin)
    assert (origin.path, dict(origin.options)) == ("/f/sources/customers", {"mode": "FAILFAST"})


def test_what_is_behind_a_source_without_rows_is_left_out() -> None:
    pipeline = without_sources(sound_plan(TEXT), ["customers"])
    assert [each.name for each in pipeline.steps] == ["paid", "minutes"]
    assert [*(each.name for each in pipeline.sinks), *(each.name for each in pipeline.views)] == ["minutes", "latest"]
    assert plan_again(pipeline).flows


def test_a_changed_pipeline_that_the_rules_refuse_is_an_error() -> None:
    with pytest.raises(ProblemList, match="OD02"):
        plan_again(replace(sound_plan(TEXT).pipeline, steps=()))
