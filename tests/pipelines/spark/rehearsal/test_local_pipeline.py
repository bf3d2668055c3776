"""Changes of a pipeline for a rehearsal: local ends, steps whose rows are given or read, and sources without rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.model import FileOrigin, Step, TopicOrigin, TopicTarget, Watermark
from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.definition.vocabulary import Duration, Engine
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.rehearsal.local_pipeline import (
    appended_steps,
    with_given_steps,
    with_local_ends,
    with_read_steps,
    without_sources,
)
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


def test_given_rows_of_a_stream_arrive_in_order_and_have_its_event_time() -> None:
    columns = parse_ddl("window_start TIMESTAMP, window_end TIMESTAMP, id BIGINT NOT NULL, n BIGINT NOT NULL")
    given = {"minutes": columns, "paid": parse_ddl("id BIGINT, paid_at TIMESTAMP")}
    pipeline = with_given_steps(sound_plan(TEXT), given)
    plan = plan_again(pipeline)
    paid, minutes = plan.table("paid"), plan.table("minutes")
    assert (paid.path.event_time, paid.path.is_ordered, paid.inputs) == ("paid_at", True, ("__given_paid",))
    assert minutes.path.event_time == "window_end"
    assert isinstance(minutes.owner, Step)
    assert minutes.owner.watermark == Watermark("window_end", Duration(60_000))
    assert minutes.columns is not None
    assert minutes.columns.names == ["window_start", "window_end", "id", "n"]
    source = {each.name: each for each in pipeline.sources}["__given_minutes"]
    assert isinstance(source.origin, TopicOrigin)
    assert source.format.schema is not None
    assert all(each.nullable for each in source.format.schema.columns)
    assert [flow.name for flow in plan.flows] == ["__given_minutes", "orders", "__given_paid-views"]


def test_given_rows_of_a_static_step_are_static() -> None:
    plan = plan_again(with_given_steps(sound_plan(TEXT), {"named": parse_ddl("customer STRING, country STRING")}))
    assert not plan.is_stream("named")
    assert plan.table("places").path.is_stream


def test_rows_of_steps_without_groups_are_read_from_a_topic() -> None:
    plan = sound_plan(TEXT)
    assert appended_steps(plan, ["paid", "minutes", "named", "places"]) == ["paid", "places"]
    sink = with_read_steps(plan.pipeline, {"paid": ["id", "paid"]}).sinks[-1]
    assert (sink.input, sink.target) == ("paid", TopicTarget("__rows_of_paid", value=("id", "paid")))


def test_what_is_behind_a_source_without_rows_is_left_out() -> None:
    pipeline = without_sources(sound_plan(TEXT), ["customers"])
    assert [each.name for each in pipeline.steps] == ["paid", "minutes"]
    assert [*(each.name for each in pipeline.sinks), *(each.name for each in pipeline.views)] == ["minutes", "latest"]
    assert plan_again(pipeline).flows


def test_a_changed_pipeline_that_the_rules_refuse_is_an_error() -> None:
    with pytest.raises(ProblemList, match="OD02"):
        plan_again(replace(sound_plan(TEXT).pipeline, steps=()))
