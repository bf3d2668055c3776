"""Which queries do not count the rows of their state: those with a join of streams, unless the user asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.loading import load_yaml
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.state import State
from odradek.pipelines.spark.engines.settings import COUNTED_ROWS, counts_state_rows, state_settings
from odradek.pipelines.spark.engines.standard import states_of
from odradek.pipelines.spark.sessions.session import PROVIDER

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = """
pipeline: p
sources:
  shown: {topic: a, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  clicked: {topic: b, schema: "id BIGINT, time TIMESTAMP", watermark: {column: time, delay: 1 minute}}
"""
JOIN = "{from: shown, join: {stream: clicked, on: [id], within: 1 hour}}"
BEHIND = f"{JOIN}\n  s: {{from: j, by: [id], window: {{column: at, size: 1 minute}}, aggregate: {{n: count(*)}}}}"
BOUND = "time between at and at + interval 1 hour"
SQL = f'{{sql: "select shown.id from shown join clicked on shown.id = clicked.id and {BOUND}"}}'
COUNT = "{from: shown, by: [id], aggregate: {n: count(*)}}"
UNIQUE = "{from: shown, deduplicate: {key: [id], within: 1 minute}}"


@pytest.mark.parametrize(
    ("steps", "is_counted"),
    [
        pytest.param(f"s: {JOIN}", False, id="join"),
        pytest.param(f"s: {SQL}", False, id="SQL join"),
        pytest.param(f"j: {BEHIND}", False, id="windows behind a join"),
        pytest.param(f"s: {COUNT}", True, id="aggregation"),
        pytest.param(f"s: {UNIQUE}", True, id="deduplication"),
        pytest.param('s: {sql: "select id from shown"}', True, id="no state"),
    ],
)
def test_rows_in_the_state_of_a_join_are_not_counted(tmp_path: Path, steps: str, is_counted: bool) -> None:
    mode = ", mode: update" if "by: [id], aggregate" in steps else ""
    text = f"{SOURCES}steps:\n  {steps}\nsinks: {{o: {{from: s, topic: o{mode}}}}}\n"
    assert settings(tmp_path, text) == (({} if is_counted else {COUNTED_ROWS: "false"}), is_counted)


@pytest.mark.parametrize("is_counted", [True, False])
def test_the_setting_of_the_user_prevails(tmp_path: Path, is_counted: bool) -> None:
    own = f"spark: {{{COUNTED_ROWS}: {str(is_counted).lower()}}}\n"
    text = f"{SOURCES}steps: {{s: {JOIN}}}\nsinks: {{o: {{from: s, topic: o}}}}\n{own}"
    assert settings(tmp_path, text) == ({}, is_counted)


def test_rows_of_state_in_memory_are_counted(tmp_path: Path) -> None:
    own = f"spark: {{{PROVIDER}: org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider}}\n"
    text = f"{SOURCES}steps: {{s: {JOIN}}}\nsinks: {{o: {{from: s, topic: o}}}}\n{own}"
    assert settings(tmp_path, text) == ({}, True)


def settings(folder: Path, text: str) -> tuple[dict[str, str], bool]:
    """The settings for the state, and whether its rows are counted."""
    file = folder / "p.yml"
    file.write_text(text)
    pipeline = load_yaml(str(file), {}).require()
    graph = build_graph(pipeline)
    (flow,) = [each for each in split_flows(pipeline, graph) if each.root == "s" or each.sinks]
    has_join = any(State.STREAM_JOIN in each for each in states_of(pipeline, graph, flow))
    found = state_settings(pipeline, has_join=has_join)
    return found, counts_state_rows(pipeline, found)
