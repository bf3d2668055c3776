"""Compatible changes of a definition are accepted; incompatible ones are reported with the old and the new value."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.loading import define_yaml
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.spark_functions import aggregate_names
from odradek.pipelines.operating.fingerprints import (
    Fingerprints,
    Reader,
    as_recorded,
    find_changes,
    merge,
)
from odradek.pipelines.planning.sql_parts import FUNCTIONS

DEFINITION = """
    pipeline: p
    warehouse: sqlite:///w.db
    spark: {spark.sql.shuffle.partitions: 2}
    sources:
      rigs:
        topic: rigs
        schema: "id BIGINT, hcid BIGINT, pressure DOUBLE, at TIMESTAMP"
        watermark: {column: at, delay: 1 minute}
    steps:
      readings:
        sql: select id, hcid, pressure, at from rigs where pressure > 0
      per_minute:
        from: readings
        window: {column: at, size: 1 minute}
        by: [hcid]
        aggregate: {mean: avg(pressure)}
      unique: {from: readings, deduplicate: {key: [id], within: 10 minutes}}
      counted:
        sql: select hcid, count(*) as events from readings group by hcid
    sinks:
      pressure: {from: readings, topic: pressure, key: hcid}
      minutes: {from: per_minute, table: minutes, key: [hcid, window_start]}
      ids: {from: unique, topic: ids}
      archive: {from: readings, files: {path: out, format: json}}
      counts: {from: counted, table: counts, key: [hcid]}
    views:
      last: {from: readings, key: [hcid], order_by: at}
      totals: {from: readings, by: [hcid], aggregate: {events: count(*)}}
"""


def read(*replacements: tuple[str, str], cluster: str = "c-1", engine: str = "standard") -> Fingerprints:
    text = textwrap.dedent(DEFINITION)
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    definition = define_yaml(text, "p.yml", {}, None, Problems())
    assert definition.is_sound, definition.problems
    assert definition.pipeline is not None
    pipeline = definition.pipeline
    return Reader(pipeline, build_graph(pipeline), {}, {pipeline.bootstrap_servers: cluster}).read()


def changes(*replacements: tuple[str, str], cluster: str = "c-1") -> list[str]:
    before = read()
    return [str(each) for each in find_changes(before, read(*replacements, cluster=cluster), set(before.flows))]


def test_the_same_definition_goes_on() -> None:
    assert changes() == []


CARRIED = {
    "another SQL of a step without state": ("where pressure > 0", "where pressure > 10"),
    "an expectation": ("where pressure > 0", "where pressure > 0\n    expect: {plausible: pressure < 400}"),
    "a sink": ("sinks:\n", "sinks:\n  more: {from: readings, topic: more}\n"),
    "a sink less": ("  ids: {from: unique, topic: ids}\n", "  ids: {from: unique, topic: identifiers}\n"),
    "a stateful step of its own": (
        "sinks:\n",
        "  few: {from: rigs, deduplicate: {key: [id], within: 1 minute}}\nsinks:\n  few: {from: few, topic: few}\n",
    ),
    "a longer watermark": ("delay: 1 minute", "delay: 2 minutes"),
    "another layout of an aggregate": ("avg(pressure)", "AVG( pressure )"),
    "another layout of a query": ("count(*) as events from", "COUNT( * ) as events /* all */ from"),
    "another trigger": ("pipeline: p\n", "pipeline: p\ntrigger: 1 s\n"),
    "another SQL around a group": ("from readings group by", "from readings where hcid > 0 group by"),
}


@pytest.mark.parametrize("replacement", CARRIED.values(), ids=CARRIED.keys())
def test_a_checkpoint_carries(replacement: tuple[str, str]) -> None:
    assert changes(replacement) == []


REFUSED = {
    "topics rigs of cluster c-1 → topics wells of cluster c-1": ("topic: rigs", "topic: wells"),
    "flow per_minute-changes: step per_minute: windows of 1 minute of at, by hcid: avg(pressure) → "
    "windows of 1 minute of at, by hcid, id: avg(pressure)": (
        "by: [hcid]\n", "by: [hcid, id]\n", "[hcid, window_start]", "[hcid, id, window_start]"
    ),
    "by hcid: max(pressure)": ("avg(pressure)", "max(pressure)"),
    "windows of 2 minutes of at": ("size: 1 minute}", "size: 2 minutes}"),
    "flow unique: step unique: deduplicated by id within 10 minutes of at → deduplicated by hcid within 10 minutes": (
        "deduplicate: {key: [id]", "deduplicate: {key: [hcid]"
    ),
    "deduplicated by id within 20 minutes of at": ("within: 10 minutes", "within: 20 minutes"),
    "flow unique: type of id in step unique: BIGINT → STRING": ("id BIGINT, hcid", "id STRING, hcid"),
    "partitions of the state: 2 → 4": ("partitions: 2", "partitions: 4"),
    "flow files-archive: files: json in out → json in elsewhere": ("path: out", "path: elsewhere"),
    "flow view-totals: view totals: by hcid: COUNT(*) → by hcid: SUM(pressure)": (
        "aggregate: {events: count(*)}", "aggregate: {events: sum(pressure)}"
    ),
    "step counted: count(*); group by hcid → max(id); group by hcid": (
        "select hcid, count(*) as", "select hcid, max(id) as"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("messages", "replacement"), REFUSED.items(), ids=REFUSED.keys())
def test_a_checkpoint_does_not_carry(messages: str, replacement: tuple[str, ...]) -> None:
    found = changes(*zip(replacement[::2], replacement[1::2], strict=True))
    assert found
    assert any(messages.lower() in each.lower() for each in found), found


def test_a_number_of_state_partitions_is_nothing_to_flows_without_state() -> None:
    assert not any("flow rigs:" in each or "files" in each for each in changes(("partitions: 2", "partitions: 4")))


def test_offsets_of_another_cluster_mean_nothing() -> None:
    assert any("cluster c-1 → topics rigs of cluster c-2" in each for each in changes(cluster="c-2"))


def test_a_sink_that_another_flow_feeds_would_start_over() -> None:
    found = changes(
        (
            "pressure: {from: readings, topic: pressure, key: hcid}",
            "pressure: {from: unique, topic: pressure, key: hcid}",
        )
    )
    assert found == ["sink pressure: fed by: flow rigs → flow unique"]


def test_another_engine_has_other_checkpoints() -> None:
    before = read()
    after = Fingerprints("realtime")
    assert [str(each) for each in find_changes(before, after, set(before.flows))] == [
        "the pipeline: engine: standard → realtime"
    ]


def test_the_name_of_the_pipeline_is_kept_and_another_takes_nothing_over() -> None:
    before = read()
    assert Fingerprints.of_object(before.as_object()).pipeline == "p"
    other = replace(before, pipeline="q", flows={})
    assert merge(before, other) == other


def test_the_realtime_engine_has_one_flow() -> None:
    text = """
        pipeline: p
        engine: realtime
        sources: {one: {topics: [one, other], schema: "id INT"}}
        sinks: {a: {from: one, topic: a}, b: {from: one, topic: b}}
    """
    definition = define_yaml(textwrap.dedent(text), "p.yml", {}, None, Problems())
    pipeline = definition.require()
    found = Reader(pipeline, build_graph(pipeline), {}, {}).read()
    assert found.flows.keys() == {"realtime"}
    assert found.flows["realtime"].facts == {"source one": "topics one, other"}


def test_a_flow_that_has_not_begun_may_change_in_any_way() -> None:
    before = read()
    after = read(("topic: rigs", "topic: wells"), ("partitions: 2", "partitions: 4"))
    assert find_changes(before, after, set()) == []


def test_a_flow_that_is_gone_is_remembered_for_when_it_comes_back() -> None:
    before = read()
    gone = read(("  archive: {from: readings, files: {path: out, format: json}}\n", ""))
    kept = merge(before, gone)
    back = read(("path: out", "path: elsewhere"))
    assert [each.where for each in find_changes(kept, back, set(kept.flows))] == ["flow files-archive"]


def sketched(arguments: str) -> Fingerprints:
    return read(("count(*) as events from", f"hll_sketch_agg({arguments}) as events from"))


def test_another_sketch_is_a_change() -> None:
    before, after = sketched("id"), sketched("hcid")
    assert [each.what for each in find_changes(before, after, set(before.flows))] == ["step counted"]


def test_every_aggregate_function_of_spark_determines_the_state() -> None:
    assert aggregate_names() <= FUNCTIONS  # those of a new release need a new version of the fingerprints


def test_settings_that_one_side_does_not_know_are_no_change() -> None:
    before = read()
    after = read(("    spark: {spark.sql.shuffle.partitions: 2}\n".strip() + "\n", ""))
    assert find_changes(before, after, set(before.flows)) == []


def test_the_state_of_functions_is_recorded() -> None:
    step = "  few: {from: [readings], python: 'json:dumps', schema: id INT}\nsinks:\n  few: {from: few, topic: few}\n"
    pipeline = define_yaml(
        textwrap.dedent(DEFINITION).replace("sinks:\n", step), "p.yml", {}, None, Problems()
    ).require()
    stored = Fingerprints("standard", functions={"few": False})
    for known, flow in ((None, "rigs"), (stored, "few")):
        recorded = as_recorded(pipeline, known)
        found = Reader(recorded, build_graph(recorded), {}, {}).read()
        assert found.ends["sink few"] == flow
        assert Fingerprints.of_object(found.as_object()).functions == ({} if known is None else {"few": False})


def test_fingerprints_are_kept_as_json() -> None:
    found = read()
    assert Fingerprints.of_object(found.as_object()) == found


def test_the_time_zone_of_state_is_compared_where_both_sides_have_it() -> None:
    zones = [("partitions: 2", f"partitions: 2, spark.sql.session.timeZone: {name}") for name in ("UTC", "Asia/Tokyo")]
    old, utc, tokyo = read(), read(zones[0]), read(zones[1])
    begun = set(old.flows)
    assert find_changes(old, utc, begun) == []
    assert {str(each) for each in find_changes(utc, tokyo, {"per_minute-changes", "rigs"})} == {
        "flow per_minute-changes: time zone: UTC → Asia/Tokyo"
    }
