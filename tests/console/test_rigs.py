"""The page of the rigs example: states, readings and warnings from its topics; not shown without them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.cluster import Cluster
from odradek.console.cluster.topic_watches import RigWatch
from odradek.console.models import MOST_PUMPS, KnownPipeline, RigModel, parse_record
from odradek.console.pages.rigs import has_rigs
from odradek.console.records.masking import DecodeAndMask
from odradek.console.views import rigs
from odradek.examples.folders import find_example
from odradek.examples.live_view.loading import load_view
from odradek.pipelines.operating.status import State
from odradek.pipelines.operating.status_record import GraphNode
from tests.console.conftest import Visitor, running_console
from tests.console.test_pipelines import FAILED, known_with
from tests.console.waiting import wait_for

if TYPE_CHECKING:
    from odradek.testing import RunningBroker

NOW_S = 1_800_000_000.0


def reading(pump: int, pressure: object = 101.5, temperature: float = 30.0) -> bytes:
    readings = {"pressure": pressure, "temperature": temperature, "oil_percentage": 18}
    return json.dumps({"event_ID": 1, "hcid": pump, "production": 47, "sensor_readings": readings}).encode()


def warning(pump: int, rule: str, at_s: float) -> bytes:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))
    return json.dumps({"hcid": pump, "rule": rule, "value": 180.0, "bound": 150.0, "reported_at": moment}).encode()


@pytest.fixture
def model() -> RigModel:
    return RigModel(load_view(find_example("rigs").view, {}))


def take(model: RigModel, topic: str, key: bytes, value: bytes | None, time_s: float) -> None:
    model.take(parse_record(topic, key, value), time_s)


def test_pumps_have_the_state_of_their_last_warning(model: RigModel) -> None:
    for pump in (1, 2, 3, 10):
        take(model, "rigs", str(pump).encode(), reading(pump), NOW_S)
    take(model, "warnings", b"2", warning(2, "pressure high", NOW_S), NOW_S + 1)
    take(model, "warnings", b"3", warning(3, "pressure rising", NOW_S), NOW_S + 1)
    take(model, "warnings", b"10", warning(10, "silent", NOW_S), NOW_S + 1)
    assert rigs.pump_states(model, NOW_S + 2) == [("1", "calm"), ("2", "over"), ("3", "rising"), ("10", "silent")]
    counts = {"calm": 1, "rising": 1, "over": 1, "silent": 1, "unknown": 0}
    assert rigs.state_counts(rigs.pump_states(model, NOW_S + 2)) == counts
    take(model, "rigs", b"10", reading(10), NOW_S + 3)
    assert dict(rigs.pump_states(model, NOW_S + 40))["2"] == "calm"  # warnings hold for 30 seconds
    assert {state for _pump, state in rigs.pump_states(model, NOW_S + 90)} == {"silent"}


def test_readings_are_kept_by_the_second_for_minutes(model: RigModel) -> None:
    for turn in range(2000):
        take(model, "rigs", b"7", reading(7, 100 + turn / 10), NOW_S + turn / 4)
    points = model.points_since("7", 0)
    assert len(points) == 300
    assert points[-1].pressure == pytest.approx(299.9)
    assert [point.second for point in points] == sorted({point.second for point in points})
    assert model.points_since("7", points[-2].second) == points[-1:]


def test_the_time_from_event_to_alert_is_that_of_the_records(model: RigModel) -> None:
    take(model, "warnings", b"2", warning(2, "pressure high", NOW_S), NOW_S + 0.75)
    assert model.latency_ms(NOW_S + 1)["p50"] == pytest.approx(750)
    (warned,) = rigs.warnings(model, NOW_S + 5)
    assert (warned.pump, warned.rule, warned.value, warned.latency, warned.tone) == (
        "2", "pressure high", "180.0", "750 ms", "over"
    )  # fmt: skip


def test_malformed_readings_and_many_pumps_do_no_harm(model: RigModel) -> None:
    for value in (None, b"", b"{", b"[]", b"{}", b'{"sensor_readings": 5}', reading(1, [1, 2]), reading(1, "n/a")):
        take(model, "rigs", b"1", value, NOW_S)
    assert model.points_since("1", 0)[-1].pressure is None
    for pump in range(MOST_PUMPS + 50):
        take(model, "rigs", f"p{pump}".encode(), reading(pump), NOW_S)
    assert len(model.pumps()) == MOST_PUMPS


def test_the_menu_keeps_the_page_while_the_watch_pauses() -> None:
    watch = SimpleNamespace(latest=None)
    console = SimpleNamespace(watch=watch, rigs=RigWatch(Cluster("127.0.0.1:1", {}), DecodeAndMask()))
    request: Any = SimpleNamespace(state=SimpleNamespace(console=console))
    assert not has_rigs(request)
    for topics in ({"rigs": None}, {}):
        watch.latest = SimpleNamespace(topics=topics)
        assert has_rigs(request) == bool(topics)
        watch.latest = None  # as after a pause
        assert has_rigs(request) == bool(topics)


def test_without_a_pipeline_that_evaluates_readings_no_pump_is_calm(model: RigModel) -> None:
    def writer(**changes: Any) -> KnownPipeline:
        known = known_with(**changes)
        sink = GraphNode("sink/w", "sink", "w", "topic warnings", (), ("warnings",))
        return KnownPipeline(replace(known.published, nodes=(sink,)))

    def trouble_of(*pipelines: KnownPipeline, is_masked: bool = False) -> rigs.Trouble:
        return rigs.pipeline_trouble(pipelines, 1001.0, is_masked=is_masked)

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
    pumps = rigs.pump_states(model, NOW_S + 2, is_evaluated=False)
    assert pumps == [("1", "unknown"), ("2", "over")]
    assert rigs.state_counts(pumps)["calm"] == 0


def test_the_page_is_shown_while_the_topics_exist(odradek_broker: RunningBroker) -> None:
    """It begins with what is there, and moves: an event for every second."""
    servers = odradek_broker.bootstrap_servers
    cluster = Cluster(servers, {})
    with running_console(servers) as address:
        visitor = Visitor(address)
        assert visitor.get("/rigs").status == 404
        assert 'href="/rigs"' not in visitor.get("/").source
        assert cluster.create_topic("rigs", 2)
        producer = cluster.producer({})

        def produce() -> None:
            for pump in range(1, 6):
                producer.produce("rigs", reading(pump), str(pump).encode())
            producer.produce("rigs", b"{", b"1")
            producer.flush(30)

        produce()
        wait_for(lambda: 'href="/rigs"' in visitor.get("/").source)
        assert cluster.create_topic("warnings", 1)
        producer.produce("warnings", warning(3, "<b>pressure</b> high", time.time()), b"3")

        def has_warning() -> bool:
            produce()
            return "&lt;b&gt;pressure" in visitor.get("/rigs").source

        wait_for(has_warning)
        page = visitor.get("/rigs?pump=3").source
        assert '<label class="pump over"><input type="radio" name="pump" value="3" checked>' in page
        assert page.count('<label class="pump calm">') == 4
