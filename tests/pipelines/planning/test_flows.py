"""How a graph is split into streaming queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.loading import load_yaml
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.planning.flows import split_flows
from tests.pipelines.definition.definitions import define

if TYPE_CHECKING:
    from odradek.pipelines.planning.flow import Flow

RIGS = Path(__file__).resolve().parents[3] / "examples" / "rigs" / "pipeline.yml"
SOURCE = """
pipeline: p
dead_letters: dead
sources:
  a: {topic: a, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  b: {topic: b, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
"""


def flows_of(text: str) -> dict[str, Flow]:
    definition = define(SOURCE + text)
    assert definition.is_sound, definition.problems
    assert definition.pipeline is not None
    return {flow.name: flow for flow in split_flows(definition.pipeline, build_graph(definition.pipeline))}


def test_a_stream_without_state_is_one_flow() -> None:
    flows = flows_of("""
steps: {s: {sql: select * from a}, t: {sql: select * from s}}
sinks: {x: {from: s, topic: x}, y: {from: t, topic: y}, z: {from: a, topic: z}}
""")
    assert flows["a"].after == ("s", "t")
    assert [sink.name for sink in flows["a"].sinks] == ["x", "y", "z"]
    assert set(flows) == {"a", "b"}  # records of b that fail to parse are dead letters, even if no step reads b


def test_each_step_with_state_is_a_flow_and_refusals_have_one_owner() -> None:
    definition = load_yaml(str(RIGS), {})
    assert definition.pipeline is not None
    flows = {flow.name: flow for flow in split_flows(definition.pipeline, build_graph(definition.pipeline))}
    assert set(flows) == {"rigs", "pressure_by_minute-changes", "silent", "per_minute-changes", "rigs-views"}
    assert flows["rigs"].owned == {"rigs", "readings"}
    assert not any(flow.owned for name, flow in flows.items() if name != "rigs")
    assert flows["pressure_by_minute-changes"].after == ("rising",)
    assert flows["pressure_by_minute-changes"].mode is SinkMode.UPDATE
    assert flows["silent"].mode is SinkMode.APPEND


def test_two_streams_meet_in_a_root() -> None:
    flows = flows_of("""
steps: {both: {sql: select id from a union all select id from b}, odd: {sql: select * from both where id % 2 = 1}}
sinks: {x: {from: odd, topic: x}}
""")
    assert flows["both"].after == ("odd",)
    assert flows["a"].owned == {"a"}
    assert flows["b"].owned == {"b"}


def test_views_are_a_flow_of_their_own_unless_that_would_keep_state_twice() -> None:
    flows = flows_of("""
warehouse: sqlite:///w.db
steps: {once: {from: b, deduplicate: {key: [id], within: 1 minute}}}
sinks: {x: {from: a, topic: x}, y: {from: once, topic: y}}
views: {v: {from: a, key: [id]}, u: {from: a, key: [at]}, w: {from: once, key: [id]}}
""")
    assert set(flows) == {"a", "a-views", "once", "b"}
    assert [each.name for each in flows["a-views"].views] == ["v", "u"]
    assert [each.name for each in flows["once"].views] == ["w"]
    assert not flows["a-views"].owned
    assert [flow.name for flow in flows.values() if flow.uses_state_trigger] == ["a-views"]


def test_files_and_aggregate_views_are_flows_of_their_own() -> None:
    flows = flows_of("""
warehouse: sqlite:///w.db
sinks: {x: {from: a, files: {path: out, format: json}}, y: {from: a, topic: y}}
views: {v: {from: b, by: [id], aggregate: {n: count(*)}}}
""")
    assert set(flows) == {"files-x", "a", "view-v", "b"}


def test_unparsed_records_are_counted_by_a_query_that_reads_the_source_if_they_have_no_topic() -> None:
    steps = "steps: {m: {from: a, window: {column: at, size: 1 minute}, by: [id], aggregate: {n: count(*)}}}"
    text = SOURCE + steps + "\nsinks: {x: {from: m, topic: x}, y: {from: b, topic: y}}"
    counting = define(text.replace("dead_letters: dead", "")).require()
    flows = {flow.name: flow for flow in split_flows(counting, build_graph(counting))}
    assert {name: flow.counted for name, flow in flows.items()} == {"m": {"a"}, "b": frozenset()}
    assert flows["b"].owned == {"b"}
    assert {name: flow.counted for name, flow in flows_of(text.removeprefix(SOURCE)).items()} == dict.fromkeys(
        ["m", "b", "a"], frozenset()
    )
