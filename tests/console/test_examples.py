"""The page of an example: states, readings and episodes from its topics; not shown without them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.cluster import Cluster
from odradek.console.cluster.topic_watches import ExampleWatch, example_views
from odradek.console.models import MOST_ENTITIES, UNKNOWN, ExampleModel, KnownPipeline, parse_record
from odradek.console.pages.examples import has_examples
from odradek.console.records.masking import DecodeAndMask
from odradek.console.views import examples
from odradek.examples.live_view.loading import load_view
from odradek.pipelines.operating.status import State
from odradek.pipelines.operating.status_record import GraphNode
from tests.console.conftest import Visitor, running_console
from tests.console.test_pipelines import FAILED, known_with
from tests.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.testing import RunningBroker

NOW_S = 1_800_000_000.0


def reading(pump: int, pressure: object = 101.5, temperature: float = 30.0) -> bytes:
    readings = {"pressure": pressure, "temperature": temperature, "oil_percentage": 18}
    return json.dumps({"event_ID": 1, "hcid": pump, "production": 47, "sensor_readings": readings}).encode()


def warning(pump: int, rule: str, at_s: float) -> bytes:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))
    return json.dumps({"hcid": pump, "rule": rule, "value": 180.0, "bound": 150.0, "reported_at": moment}).encode()


@pytest.fixture
def model() -> ExampleModel:
    return ExampleModel(example_views()["rigs"])


def take(model: ExampleModel, topic: str, key: bytes, value: bytes | None, time_s: float) -> None:
    model.take(parse_record(topic, key, value), time_s)


def test_pumps_have_the_state_of_their_last_warning(model: ExampleModel) -> None:
    for pump in (1, 2, 3, 10):
        take(model, "rigs", str(pump).encode(), reading(pump), NOW_S)
    take(model, "warnings", b"2", warning(2, "pressure high", NOW_S), NOW_S + 1)
    take(model, "warnings", b"3", warning(3, "pressure rising", NOW_S), NOW_S + 1)
    take(model, "warnings", b"10", warning(10, "silent", NOW_S), NOW_S + 1)
    assert examples.entity_states(model, NOW_S + 2) == [
        ("1", "calm"), ("2", "over limit"), ("3", "rising"), ("10", "silent"),
    ]  # fmt: skip
    counts = {"calm": 1, "rising": 1, "over limit": 1, "silent": 1, UNKNOWN: 0}
    assert examples.state_counts(model, examples.entity_states(model, NOW_S + 2)) == counts
    take(model, "rigs", b"10", reading(10), NOW_S + 3)
    assert dict(examples.entity_states(model, NOW_S + 40))["2"] == "calm"  # warnings hold for 30 seconds
    assert {state for _pump, state in examples.entity_states(model, NOW_S + 90)} == {"silent"}


def test_readings_are_kept_by_the_second_for_minutes(model: ExampleModel) -> None:
    for turn in range(2000):
        take(model, "rigs", b"7", reading(7, 100 + turn / 10), NOW_S + turn / 4)
    points = model.points_since("7", 0)
    assert len(points) == 300
    assert points[-1].values == pytest.approx((299.9, 30.0))
    assert [point.second for point in points] == sorted({point.second for point in points})
    assert model.points_since("7", points[-2].second) == points[-1:]


def test_the_time_from_event_to_alert_is_that_of_the_records(model: ExampleModel) -> None:
    take(model, "warnings", b"2", warning(2, "pressure high", NOW_S), NOW_S + 0.75)
    assert model.latency_ms(NOW_S + 1)["p50"] == pytest.approx(750)
    (warned,) = examples.episodes(model, NOW_S + 5)
    assert (warned.entity, warned.event, warned.values, warned.latency, warned.color) == (
        "2", "pressure high", (("value", "180.0"), ("limit", "150.0")), "750 ms", "red"
    )  # fmt: skip


def test_malformed_readings_and_many_pumps_do_no_harm(model: ExampleModel) -> None:
    for value in (None, b"", b"{", b"[]", b"{}", b'{"sensor_readings": 5}', reading(1, [1, 2]), reading(1, "n/a")):
        take(model, "rigs", b"1", value, NOW_S)
    assert model.points_since("1", 0)[-1].values[0] is None
    for pump in range(MOST_ENTITIES + 50):
        take(model, "rigs", f"p{pump}".encode(), reading(pump), NOW_S)
    assert len(model.states(NOW_S)) == MOST_ENTITIES


def test_the_menu_keeps_the_page_while_the_watch_pauses() -> None:
    watch = SimpleNamespace(latest=None)
    rigs = ExampleWatch(Cluster("127.0.0.1:1", {}), DecodeAndMask(), "rigs", example_views()["rigs"])
    console = SimpleNamespace(watch=watch, examples={"rigs": rigs})
    request: Any = SimpleNamespace(state=SimpleNamespace(console=console))
    assert not has_examples(request)
    for topics in ({"rigs": None}, {}):
        watch.latest = SimpleNamespace(topics=topics)
        assert has_examples(request) == bool(topics)
        watch.latest = None  # as after a pause
        assert has_examples(request) == bool(topics)


def test_without_a_pipeline_that_evaluates_readings_no_pump_is_calm(model: ExampleModel) -> None:
    def writer(**changes: Any) -> KnownPipeline:
        known = known_with(**changes)
        sink = GraphNode("sink/w", "sink", "w", "topic warnings", (), ("warnings",))
        return KnownPipeline(replace(known.published, nodes=(sink,)))

    def trouble_of(*pipelines: KnownPipeline, is_masked: bool = False) -> examples.Trouble:
        return examples.pipeline_trouble(pipelines, "warnings", 1001.0, is_masked=is_masked)

    assert not trouble_of().text
    assert not trouble_of(known_with(**FAILED)).text  # of other topics
    assert not trouble_of(writer(batch_s=995.0)).text
    assert not trouble_of(writer(**FAILED), writer(batch_s=995.0)).text
    beginning = trouble_of(writer())
    assert beginning.text.endswith("first batch running")
    assert beginning.tone == "warn"  # and not a failure: every start looks like this
    failing = trouble_of(writer(**FAILED))
    assert failing.text.endswith("restarted, no batch finished, 7 restarts: cannot cast '4111'")
    assert failing.tone == "bad"
    assert "4111" not in trouble_of(writer(**FAILED), is_masked=True).text
    assert "stopped" in trouble_of(writer(state=State.STOPPED)).text

    for pump in (1, 2):
        take(model, "rigs", str(pump).encode(), reading(pump), NOW_S)
    take(model, "warnings", b"2", warning(2, "pressure high", NOW_S), NOW_S + 1)
    pumps = examples.entity_states(model, NOW_S + 2, is_evaluated=False)
    assert pumps == [("1", UNKNOWN), ("2", "over limit")]
    assert examples.state_counts(model, pumps)["calm"] == 0


def test_the_page_is_shown_while_the_topics_exist(odradek_broker: RunningBroker) -> None:
    """It begins with what is there, and moves: an event for every second."""
    servers = odradek_broker.bootstrap_servers
    cluster = Cluster(servers, {})
    with running_console(servers) as address:
        visitor = Visitor(address)
        assert visitor.get("/examples/rigs").status == 404
        assert visitor.get("/examples/none").status == 404
        assert 'href="/examples"' not in visitor.get("/").source
        assert cluster.create_topic("rigs", 2)
        producer = cluster.producer({})

        def produce() -> None:
            for pump in range(1, 6):
                producer.produce("rigs", reading(pump), str(pump).encode())
            producer.produce("rigs", b"{", b"1")
            producer.flush(30)

        produce()
        eventually(lambda: 'href="/examples"' in visitor.get("/").source)
        assert cluster.create_topic("warnings", 1)
        producer.produce("warnings", warning(3, "<b>pressure</b> high", time.time()), b"3")

        def has_warning() -> bool:
            produce()
            return "&lt;b&gt;pressure" in visitor.get("/examples/rigs").source

        eventually(has_warning)
        page = visitor.get("/examples/rigs?entity=3").source
        assert '<label class="entity red"><input type="radio" name="entity" value="3" checked>' in page
        assert page.count('<label class="entity green">') == 4


def test_the_page_opens_with_what_is_known(odradek_broker: RunningBroker) -> None:
    """With the last records of its topics, also if they are old, without waiting for others."""
    servers = odradek_broker.bootstrap_servers
    cluster = Cluster(servers, {})
    for name in ("rigs", "warnings"):
        assert cluster.create_topic(name, 2)
    hour_ago_ms = round((time.time() - 3600) * 1000)
    producer = cluster.producer({})
    for number in range(200):
        producer.produce("rigs", reading(number % 20), str(number % 20), partition=number % 2, timestamp=hour_ago_ms)
    producer.produce("warnings", warning(3, "pressure high", time.time() - 3601), "3", 0, timestamp=hour_ago_ms)
    producer.flush(30)
    with running_console(servers) as address:
        visitor = Visitor(address)
        eventually(lambda: visitor.get("/examples").status == 303)
        page = visitor.get("/examples/rigs").source
    assert page.count('<label class="entity magenta">') == 20
    assert "pressure high" in page


ANOTHER = """
title: trains, on their way
panels:
  state:
    figures:
      states: {entities: trains, seen_in: stops, topic: late, key: train, column: why,
               values: {late: {is: ["*"], color: yellow}}}
  rate: {chart: {topic: stops}}
readings:
  topic: stops
  values: {Delay: {column: delay_s, unit: s, low: 0, high: 300}}
"""


def test_the_page_of_another_example_is_its_declaration(tmp_path: Path) -> None:
    (tmp_path / "view.yml").write_text(ANOTHER)
    model = ExampleModel(load_view(str(tmp_path / "view.yml"), {}))
    take(model, "stops", b"ICE 7", b'{"delay_s": 12}', NOW_S)
    take(model, "late", b"", b'{"train": "ICE 7", "why": "snow"}', NOW_S + 1)
    shown = examples.page_view(model, {}, NOW_S + 2, is_evaluated=True)
    assert shown["entities"] == [("ICE 7", "late")]
    assert shown["counts"] == {"calm": 0, "late": 1, UNKNOWN: 0}
    assert [(tile.title, tile.text) for tile in shown["tiles"]] == [("Trains", "1"), ("Readings", "–")]
    assert shown["episodes"] == []
    assert examples.chart_points(model.points_since("ICE 7", 0), 1) == {"time": [int(NOW_S)], "values": [[12.0]]}
