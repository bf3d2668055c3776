"""Joins of streams by `join: {stream: …}`: what is refused, which columns result, and what the state depends on."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.columns import known_columns
from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.lineage import lineage_of
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.operating.fingerprints import Reader
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.state import State, state_of
from odradek.pipelines.planning.streams import Streams
from tests.pipelines.definition.definitions import reported_for, sound

HEAD = """
pipeline: p
warehouse: sqlite:///w.db
sources:
  shown:
    topic: shown
    schema: "id BIGINT, ad STRING, shown_at TIMESTAMP"
    watermark: {column: shown_at, delay: 1 minute}
  clicks:
    topic: clicks
    schema: "id BIGINT, url STRING, clicked_at TIMESTAMP"
    watermark: {column: clicked_at, delay: 1 minute}
  bare: {topic: bare, schema: "id BIGINT, x BIGINT"}
  same: {topic: same, schema: "id BIGINT, ad STRING, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  stamped: {topic: stamped, schema: "id BIGINT, y BIGINT", watermark: {column: _timestamp, delay: 1 minute}}
  table: {files: {path: t.csv, format: csv}, schema: "id BIGINT, name STRING"}
"""
SINK = "sinks: {o: {from: s, topic: o}}\n"


def joined(stream: str, more: str = "", start: str = "shown") -> str:
    return f"steps: {{s: {{from: {start}, join: {{stream: {stream}, on: [id], within: 1 hour{more}}}}}}}\n{SINK}"


def errors(text: str, engine: Engine | None = None) -> list[str]:
    return [line for line in reported_for(text, head=HEAD, engine=engine) if line.startswith("error")]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("engine", [Engine.STANDARD, Engine.BATCH])
def test_a_join_of_streams_is_accepted(how: str, engine: Engine) -> None:
    assert errors(joined("clicks", f", how: {how}"), engine) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (joined("bare"), "and 'bare' has no watermark"),
        (joined("clicks", start="bare"), "and 'bare' has no watermark"),
        (joined("table"), "and 'table' is not a stream"),
        (joined("same"), "and both have the column 'ad'"),
        (joined("stamped"), "is '_timestamp' of the Kafka record"),
        (joined("nothing"), "which is neither a source nor a step"),
        (joined("clicks", ", how: semi"), "how of join of step 's'"),
        (joined("clicks", ", table: table"), "has both table and stream"),
        (joined("clicks").replace(", within: 1 hour", ""), "has no within"),
        (joined("clicks").replace("[id]", "[name]"), "names the column 'name', which does not exist"),
        (joined("clicks").replace("stream: clicks", "table: table"), "within of join of step 's' applies to stream"),
    ],
)
def test_a_join_of_streams_is_refused_with_a_way_out(text: str, message: str) -> None:
    found = errors(text)
    assert [line for line in found if message in line], found


def test_a_table_join_with_a_stream_names_the_join_of_streams() -> None:
    text = joined("clicks").replace("stream: clicks", "table: clicks").replace(", within: 1 hour", "")
    assert [line for line in errors(text) if "write join: {stream: clicks, on: …, within: …}" in line]


def test_a_join_is_a_root_of_its_own_and_runs_in_append_mode_only() -> None:
    steps = joined("clicks").split("\n")[0]
    pipeline = sound(HEAD + steps + "\nviews: {v: {from: s, key: [id], order_by: shown_at}}\n" + SINK)
    graph = build_graph(pipeline)
    assert state_of(pipeline.steps[0], Streams.of(pipeline, graph).names) == State.STREAM_JOIN
    assert {flow.root for flow in split_flows(pipeline, graph) if flow.sinks or flow.views} == {"s"}
    counts = steps.removesuffix("}") + ', c: {sql: "select id, count(*) n from s group by id"}}\n'
    found = errors(counts + "sinks: {o: {from: c, topic: o, mode: update}}\n")
    assert [line for line in found if "joins streams, and 'o' reads updated rows behind it" in line], found


@pytest.mark.parametrize(
    ("how", "marks"), [("inner", {"shown_at"}), ("left", {"shown_at"}), ("right", {"clicked_at"}), ("full", set())]
)
def test_a_joined_row_has_the_event_time_of_the_side_that_is_kept(how: str, marks: set[str]) -> None:
    pipeline = sound(HEAD + joined("clicks", f", how: {how}"))
    assert Streams.of(pipeline, build_graph(pipeline)).watermarks["s"] == marks


def test_a_joined_row_has_the_columns_of_both_sides_without_those_of_the_records() -> None:
    pipeline = sound(HEAD + joined("clicks"))
    columns = known_columns(pipeline, build_graph(pipeline))["s"]
    assert columns is not None
    assert list(columns.names) == ["id", "ad", "shown_at", "url", "clicked_at"]


def test_a_join_is_drawn_and_has_a_fingerprint() -> None:
    pipeline = sound(HEAD + joined("clicks", ", how: left"))
    node = next(each for each in lineage_of(pipeline) if each.name == "s")
    assert node.detail == "left join clicks on id within 1 hour"
    assert node.inputs == ("source/shown", "source/clicks")
    flows = Reader(pipeline, build_graph(pipeline), {}, {}).read().flows
    text = "left join of shown and clicks on id within 1 hour of shown_at and clicked_at"
    assert flows["s"].facts["step s"] == text
    assert flows["s"].types == {"type of id in step s": "BIGINT"}


def test_the_realtime_engine_refuses_it() -> None:
    assert [line for line in errors(joined("clicks"), Engine.REALTIME) if "step 's': it has a join" in line]
