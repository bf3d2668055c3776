"""Which flows share a streaming query (`share_reads`)."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.vocabulary import SinkMode
from odradek.pipelines.operating.fingerprints import Fingerprints, Reader, find_changes
from odradek.pipelines.planning.flows import split_flows
from tests.pipelines.definition.definitions import define

HEAD = """
pipeline: p
share_reads: true
dead_letters: dead
warehouse: sqlite:///w.db
"""
SOURCES = """
sources:
  a: {topic: a, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
  b: {topic: b, schema: "id BIGINT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}
"""
STEPS = """
steps:
  minutes: {from: a, window: {column: at, size: 1 minute}, by: [id], aggregate: {n: count(*)}}
  hours: {from: a, window: {column: at, size: 1 hour}, by: [id], aggregate: {n: count(*)}}
  days: {from: a, window: {column: at, size: 1 day}, by: [id], aggregate: {n: count(*)}}
  other: {from: b, window: {column: at, size: 1 hour}, by: [id], aggregate: {n: count(*)}}
  silent: {from: a, state: {key: [id], processor: "json:JSONDecoder", timeout: 30 s}, schema: "id BIGINT"}
  timed: {from: a, state: {key: [id], processor: "json:JSONDecoder", clock: event}, schema: "id BIGINT"}
  visits: {from: a, window: {column: at, gap: 1 minute}, by: [id], aggregate: {n: count(*)}}
  distinct_ids: {sql: "select id, count(*) as n from a group by id"}
"""
MINUTES = "minutes: {from: minutes, table: minutes, key: [id, window_start], mode: upsert}"
HOURS = "hours: {from: hours, table: hours, key: [id, window_start], mode: upsert}"
DAYS = "days: {from: days, topic: days}"
SILENT = "silent: {from: silent, topic: silent}"
TIMED = "timed: {from: timed, topic: timed}"
PLAIN = "plain: {from: a, topic: plain}"
OTHER = "other: {from: other, table: other, key: [id, window_start], mode: upsert}"
VISITS = "visits: {from: visits, topic: visits}"
SQL = "ids: {from: distinct_ids, table: ids, key: [id], mode: upsert}"
VIEW = "\nviews: {newest: {from: a, key: [id], order_by: at}}"


def parts_of(*sinks: str, views: str = "", head: str = HEAD, sources: str = SOURCES) -> dict[str, list[str]]:
    definition = define(head + sources + STEPS + "sinks:\n  " + "\n  ".join(sinks) + views)
    assert definition.is_sound, definition.problems
    assert definition.pipeline is not None
    flows = split_flows(definition.pipeline, build_graph(definition.pipeline))
    return {flow.name: [part.name for part in flow.parts] for flow in flows}


def test_flows_of_a_source_at_the_interval_of_state_share_a_query() -> None:
    found = parts_of(MINUTES, HOURS, PLAIN, views=VIEW)
    assert found == {"a-shared-changes": ["minutes-changes", "hours-changes", "a-views"], "a": [], "b": []}


def test_nothing_is_shared_unless_the_definition_says_so() -> None:
    found = parts_of(MINUTES, HOURS, head=HEAD.replace("share_reads: true", ""))
    assert found == {"minutes-changes": [], "hours-changes": [], "a": [], "b": []}


def test_a_stateless_flow_shares_the_query_if_its_interval_is_as_long() -> None:
    found = parts_of(MINUTES, PLAIN, head=HEAD + "trigger: 5 s\nstate_trigger: 5 s\n")
    assert found["a-shared-changes"] == ["minutes-changes", "a"]


def test_a_query_has_one_mode() -> None:
    found = parts_of(MINUTES, HOURS, DAYS)
    assert found["a-shared-changes"] == ["minutes-changes", "hours-changes"]
    assert found["days"] == []


def test_keyed_state_in_processing_time_joins_the_query_of_aggregations() -> None:
    found = parts_of(MINUTES, SILENT, DAYS)
    assert found["a-shared-changes"] == ["minutes-changes", "silent"]
    assert found["days"] == []


def test_keyed_state_does_not_share_a_query_with_final_groups() -> None:
    """`--until-caught-up` runs no empty batches with its timers, and they would write the last groups."""
    found = parts_of(DAYS, SILENT, "weeks: {from: hours, topic: hours}", views=VIEW)
    assert found["a-shared"] == ["days", "hours", "a-views"]
    assert found["silent"] == []


def test_keyed_state_shares_a_query_with_stateless_flows() -> None:
    assert parts_of(SILENT, views=VIEW)["a-shared"] == ["silent", "a-views"]


@pytest.mark.parametrize("alone", [OTHER, VISITS, SQL, DAYS, TIMED])
def test_other_sources_modes_and_kinds_of_state_have_queries_of_their_own(alone: str) -> None:
    assert parts_of(MINUTES, HOURS, alone)["a-shared-changes"] == ["minutes-changes", "hours-changes"]


def test_exactly_once_keeps_queries_apart() -> None:
    assert not any(parts_of(MINUTES, HOURS, head=HEAD + "delivery: exactly_once\n").values())


def test_dead_letters_of_late_rows_keep_queries_apart() -> None:
    late = SOURCES.replace("delay: 1 minute", "delay: 1 minute, late: dead_letters")
    steps = "steps:\n" + "".join(
        line + "\n" for line in STEPS.splitlines() if line.startswith(("  minutes", "  hours"))
    )
    pipeline = define(HEAD + late + steps + f"sinks:\n  {MINUTES}\n  {HOURS}").require()
    assert not any(flow.parts for flow in split_flows(pipeline, build_graph(pipeline)))


def fingerprints(*sinks: str, views: str = "") -> Fingerprints:
    pipeline = define(HEAD + SOURCES + STEPS + "sinks:\n  " + "\n  ".join(sinks) + views).require()
    return Reader(pipeline, build_graph(pipeline), {}, {}).read()


def test_another_sink_of_a_flow_that_shares_a_query_is_accepted() -> None:
    after = fingerprints(MINUTES, HOURS, "more: {from: hours, topic: more, mode: update}")
    assert not find_changes(fingerprints(MINUTES, HOURS), after, {"a-shared-changes"})


@pytest.mark.parametrize(
    ("sinks", "now"),
    [([HOURS, MINUTES], "hours-changes, minutes-changes, a-views"), ([MINUTES], "minutes-changes, a-views")],
)
def test_a_change_of_the_flows_that_share_a_query_is_found(sinks: list[str], now: str) -> None:
    """Spark numbers the state of a query by the order of its operators."""
    before, after = fingerprints(MINUTES, HOURS, views=VIEW), fingerprints(*sinks, views=VIEW)
    changes = find_changes(before, after, {"a-shared-changes"})
    text = f"flow a-shared-changes: flows that share the query: minutes-changes, hours-changes, a-views → {now}"
    assert text in map(str, changes)


def test_the_query_has_the_ends_of_its_flows() -> None:
    definition = define(HEAD + SOURCES + STEPS + f"sinks:\n  {MINUTES}\n  {HOURS}\n  {PLAIN}" + VIEW).require()
    flows = {flow.name: flow for flow in split_flows(definition, build_graph(definition))}
    shared = flows["a-shared-changes"]
    assert shared.root == "a"
    assert shared.mode is SinkMode.UPDATE
    assert [each.name for each in shared.sinks] == ["minutes", "hours"]
    assert [each.name for each in shared.views] == ["newest"]
