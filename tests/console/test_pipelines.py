"""The pages of pipelines: what they publish from any machine, their graph, and dead letters that are written back."""

from __future__ import annotations

import html
import itertools
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.admin.cluster import Cluster
from odradek.console.models import MOST_PIPELINES, KnownPipeline, Pipelines, parse_update
from odradek.console.settings import ConsoleSettings
from odradek.console.views.pipelines import GAP, HEIGHT, draw, pipeline_row, pipeline_rows, pipeline_view, state_of
from odradek.console.web.rendering import Renderer
from odradek.console.web.safety import Tokens
from odradek.pipelines.letters.letter import WITH_ORIGIN
from odradek.pipelines.operating.status import ExpectationStatus, FlowStatus, PipelineStatus, State
from odradek.pipelines.operating.status_record import TOPIC, TOPIC_CONFIG, GraphNode, PublishedPipeline, encode
from tests.console.conftest import Visitor, running_console
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

NODES = (
    GraphNode("source/rigs", "source", "rigs", "topic rigs", (), ("rigs",)),
    GraphNode("step/readings", "step", "readings", "sql, 2 expectations", ("source/rigs",)),
    GraphNode("step/rising", "step", "rising", "sql", ("step/readings",)),
    GraphNode("view/state", "view", "state", "latest by hcid", ("step/readings",)),
    GraphNode("sink/pressure", "sink", "pressure", "topic pressure", ("step/rising", "source/rigs"), ("pressure",)),
)


def published(name: str, updated_s: float, rows: int = 0, state: State = State.RUNNING) -> PublishedPipeline:
    flow = FlowStatus(
        "readings", batch=rows, batch_ms=140.0, batches=9, input_per_s=1000, processed_per_s=998.4, read={"rigs": rows},
        lag={"rigs": 123}, written={"pressure": rows, "state": 2 * rows}, late_rows=17, state_rows=300,
        state_bytes=2_400_000, watermark="2026-01-31T12:00:00.000Z", unparsed=4,
    )  # fmt: skip
    expectations = (
        ExpectationStatus("readings", "has an id", "quarantine", 0, 5000),
        ExpectationStatus("readings", "plausible <i>", "quarantine", 50, 5000),
    )
    status = PipelineStatus(
        name, state, engine="standard", updated_s=updated_s, started_s=updated_s - 60, running_since_s=updated_s - 60,
        flows=(flow,), expectations=expectations, note="<b>waits</b>",
    )  # fmt: skip
    return PublishedPipeline(
        "machine-7", status, NODES, f"{name}-dead", ("standard engine", "at least once"), updated_s
    )


def take(pipelines: Pipelines, key: bytes | None, value: bytes | None) -> None:
    update = parse_update(key, value)
    if update is not None:
        pipelines.take(update)


def test_rates_of_sinks_are_those_of_the_last_statuses() -> None:
    pipelines = Pipelines()
    for turn in range(5):
        take(pipelines, *encode(published("p", 1000.0 + 2 * turn, 100 * turn)))
    known = pipelines.get("p@machine-7")
    assert known is not None
    assert known.written_per_s == {"pressure": 50.0, "state": 100.0}
    take(pipelines, *encode(published("p", 1010.0, 3)))  # started again: counts begin at zero
    assert known.written_per_s == {}
    take(pipelines, *encode(published("p", 900.0, 9)))  # an older status that comes late
    assert known.published.status.updated_s == 1010.0
    assert len(known.samples) == 6


def test_what_is_not_a_status_is_ignored_and_the_number_of_pipelines_is_bounded() -> None:
    pipelines = Pipelines()
    key, value = encode(published("p", 1000.0))
    for wrong in ((None, value), (b"other", value), (key, b"{}"), (key, b"\xff")):
        take(pipelines, *wrong)
    assert pipelines.all() == []
    for number in range(MOST_PIPELINES + 5):
        take(pipelines, *encode(published(f"p{number}", 1000.0)))
    assert len(pipelines.all()) == MOST_PIPELINES
    take(pipelines, b"p200@machine-7", None)
    assert pipelines.get("p200@machine-7") is None


def test_a_graph_has_a_box_for_each_node_and_an_edge_for_each_input() -> None:
    pipelines = Pipelines()
    for turn in range(2):
        take(pipelines, *encode(published("p", 1000.0 + turn, 10 * turn)))
    known = pipelines.get("p@machine-7")
    assert known is not None
    drawing = draw(known, {})
    assert drawing is not None
    assert {box.name: box.figure for box in drawing.boxes} == {
        "rigs": "", "readings": "50 of 5.0 k failed", "rising": "", "state": "20 rows/s", "pressure": "10 rows/s"
    }  # fmt: skip
    assert len(drawing.edges) == 5


GRAPHS = st.lists(st.sets(st.integers(0, 11), max_size=3), min_size=1, max_size=12)


@given(GRAPHS)
def test_boxes_do_not_overlap_and_are_right_of_those_that_they_read(graph: list[set[int]]) -> None:
    nodes = tuple(
        GraphNode(
            str(at), "step" if before else "source", str(at), "", tuple(str(each) for each in before if each < at)
        )
        for at, before in enumerate(graph)
    )
    pipelines = Pipelines()
    take(pipelines, *encode(replace(published("p", 1000.0), nodes=nodes)))
    (known,) = pipelines.all()
    drawing = draw(known, {})
    assert drawing is not None
    boxes = {box.name: box for box in drawing.boxes}
    for box in drawing.boxes:
        assert 0 < box.x < box.x + box.width < drawing.width
        assert 0 < box.y < drawing.height - HEIGHT
    for one, other in itertools.combinations(drawing.boxes, 2):
        assert one.x != other.x or abs(one.y - other.y) >= HEIGHT + GAP
    for node in nodes:
        assert all(boxes[each].x + boxes[each].width < boxes[node.id].x for each in node.inputs)


def test_the_figures_of_a_pipeline() -> None:
    pipelines = Pipelines()
    take(pipelines, *encode(published("p", 1000.0, 10)))
    known = pipelines.get("p@machine-7")
    assert known is not None
    row = pipeline_row(known, 1001.0)
    assert (row.state, row.tone, row.batch, row.lag, row.status.late_rows, row.state_size) == (
        "running", "good", "140 ms", "123", 17, "2.4 MB"
    )  # fmt: skip


def test_with_masks_neither_an_error_nor_a_line_of_output_is_shown() -> None:
    """They may quote a value."""
    pipelines = Pipelines()
    running = published("p", 1000.0)
    status = replace(running.status, last_error="cannot cast '4111'", note="WARN cannot cast '4111'")
    take(pipelines, *encode(replace(running, status=status)))
    (known,) = pipelines.all()
    assert pipeline_view(known, {}, 1001.0).last_error == "cannot cast '4111'"
    hidden = pipeline_view(known, {}, 1001.0, is_masked=True).last_error
    assert hidden
    assert "4111" not in hidden
    assert "4111" in pipeline_row(known, 1001.0).note
    assert "4111" not in pipeline_row(known, 1001.0, is_masked=True).note


def test_without_an_answer_of_the_cluster_the_list_does_not_say_that_there_are_no_pipelines() -> None:
    renderer = Renderer(Tokens(), ConsoleSettings(), "kafka:9092")
    for trouble, notice in (("", ""), ("no answer", ""), ("", "Shown is the state of 9 s ago.")):
        shown = renderer.fragment("pipelines_table.html", rows=[], trouble=trouble, state_notice=notice)
        assert ("No pipelines" in shown) == (not trouble and not notice)


def test_a_pipeline_that_is_gone_is_not_shown_as_running() -> None:
    pipelines = Pipelines()
    take(pipelines, *encode(published("p", 1000.0)))
    (known,) = pipelines.all()
    assert state_of(known, 1060.0) == ("not heard from for 1 min", "bad")
    take(pipelines, *encode(published("p", 1001.0, state=State.STOPPED)))
    assert state_of(known, 9000.0) == ("stopped", "")


def known_with(name: str = "p", *, batch_s: float | None = None, lag: int = 5, **changes: Any) -> KnownPipeline:
    """A pipeline that publishes at 1000 s, whose last batch began at `batch_s`."""
    given = published(name, 1000.0)
    at = None if batch_s is None else datetime.fromtimestamp(batch_s, UTC).isoformat()
    batches = 0 if at is None else 9
    flow = replace(given.status.flows[0], batch_at=at, batches=batches, processed_per_s=0, lag={"rigs": lag})
    return KnownPipeline(replace(given, status=replace(given.status, flows=(flow,), **changes)))


FAILED: dict[str, Any] = {"restarts": 7, "last_error": "cannot cast '4111'", "last_error_s": 990.0}


@pytest.mark.parametrize(
    ("known", "state"),
    [
        (known_with(batch_s=995.0), ("running", "good")),
        (known_with(), ("first batch running", "warn")),
        (known_with(lag=0), ("running", "good")),  # no record has arrived
        (known_with(batch_s=980.0, **FAILED), ("restarted, no batch finished", "bad")),
        (known_with(**FAILED), ("restarted, no batch finished", "bad")),
        (known_with(batch_s=995.0, **FAILED), ("running, restarted", "warn")),
        (known_with(batch_s=995.0, **{**FAILED, "last_error_s": 100.0}), ("running", "good")),
        (known_with(state=State.WAITING, next_try_s=1013.0, **FAILED), ("failed, restarts in 12 s", "bad")),
        (known_with(state=State.WAITING, **FAILED), ("failed, restarts in 0 ms", "bad")),
        (known_with(state=State.STARTING, **FAILED), ("restarting", "bad")),
        (known_with(state=State.STARTING), ("starting", "warn")),
    ],
)
def test_a_pipeline_that_restarts_again_and_again_is_not_shown_as_good(
    known: KnownPipeline, state: tuple[str, str]
) -> None:
    assert state_of(known, 1001.0) == state
    row = pipeline_row(known, 1001.0)
    is_failing = state[1] != "good" and known.published.status.restarts
    assert row.reason == ("cannot cast '4111'" if is_failing else "")


def test_failures_come_first_with_their_reason_and_restarts() -> None:
    known = [known_with("a", batch_s=995.0), known_with("b"), known_with("c", **FAILED)]
    rows = pipeline_rows(known, 1001.0)
    assert [row.status.name for row in rows] == ["c", "b", "a"]
    renderer = Renderer(Tokens(), ConsoleSettings(), "kafka:9092")
    page = html.unescape(renderer.fragment("pipelines_table.html", rows=rows, trouble=""))
    assert "1 of 3 pipelines fails" in page
    for words in ("restarted, no batch finished", "cannot cast '4111'", "7 restarts"):
        assert words in page
    hidden = renderer.fragment("pipelines_table.html", rows=pipeline_rows(known, 1001.0, is_masked=True), trouble="")
    assert "4111" not in hidden
    panel = html.unescape(
        renderer.fragment("pipeline_panel.html", view=pipeline_view(known[2], {}, 1001.0), trouble="")
    )
    assert panel.index("Last error, 11 s ago: cannot cast '4111'") < panel.index("tiles")
    assert "7 restarts" in panel


def test_the_overview_begins_with_pipelines_that_fail(
    visitor: Visitor, bootstrap_server: str, publish: Callable[[PublishedPipeline], None], new_name: Callable[[], str]
) -> None:
    name = new_name()
    failed = published(name, time.time(), state=State.FAILED)
    publish(replace(failed, status=replace(failed.status, last_error="<i>cannot cast", restarts=3)))
    eventually(lambda: f">{name}</a>: failed, 3 restarts: <i>cannot cast" in visitor.get("/overview/panel").text)
    panel = visitor.get("/overview/panel").source
    assert "<i>" not in panel
    assert panel.index(name) < panel.index("headline")
    with running_console(bootstrap_server) as address:  # the first page of a new console waits for the statuses
        assert f">{name}</a>: failed" in Visitor(address).get("/").text


@pytest.fixture
def publish(bootstrap_server: str) -> Callable[[PublishedPipeline], None]:
    cluster = Cluster(bootstrap_server, {})
    cluster.create_topic(TOPIC, 1, configs=TOPIC_CONFIG)
    producer = cluster.producer({})

    def write(each: PublishedPipeline) -> None:
        key, value = encode(each)
        producer.produce(TOPIC, value, key)
        assert producer.flush(30) == 0

    return write


def test_pipelines_of_other_machines_are_listed_and_drawn(
    visitor: Visitor, publish: Callable[[PublishedPipeline], None], new_name: Callable[[], str]
) -> None:
    name = new_name()
    publish(published(name, time.time(), 5))
    eventually(lambda: name in visitor.get("/pipelines").text)
    page = visitor.get("/pipelines").source
    assert "&lt;b&gt;waits&lt;/b&gt;" in page
    assert "<b>waits" not in page
    shown = visitor.get(f"/pipeline?key={name}@machine-7")
    assert shown.status == 200
    for words in ("998", "140 ms", "17 late rows", "plausible <i>", "4,950", "Graph", "standard engine", "machine-7"):
        assert words in shown.text
    assert shown.source.count('<g class="graph-node') == 5
    assert "<i>" not in shown.source
    assert "<html" not in visitor.get(f"/pipeline/panel?key={name}@machine-7", HX_Request="true").source
    publish(published(name, time.time(), 9, State.FAILED))
    eventually(lambda: '<span class="tag bad">failed</span>' in visitor.get("/pipelines/table").source)
    assert visitor.get("/pipeline?key=none").status == 404


def test_dead_letters_are_previewed_and_written_back_once(
    visitor: Visitor, bootstrap_server: str, topic: str, new_name: Callable[[], str]
) -> None:
    dead = new_name()
    cluster = Cluster(bootstrap_server, {})
    assert cluster.create_topic(dead, 1)
    producer = cluster.producer({})
    for number in range(5):
        step = b"rigs" if number < 3 else b"<script>"
        values = (b"not JSON: <i>", b"p", step, topic.encode(), b"1:%d" % number, b"id")
        headers: list[tuple[str, str | bytes | None]] = [*zip(WITH_ORIGIN, values, strict=True), ("own", b"1")]
        producer.produce(dead, b"<img %d>" % number, b"k", headers=headers)
    assert producer.flush(30) == 0
    page = visitor.get(f"/dead-letters?topic={dead}")
    assert page.source.count('name="record"') == 5
    assert "<img" not in page.source
    assert "<script>" not in page.source.partition("<main")[2]
    assert visitor.get(f"/dead-letters?topic={dead}&step=rigs").source.count('name="record"') == 3

    chosen = [("record", "0:1"), ("record", "0:4"), ("chosen", "1")]
    preview = visitor.post(f"/dead-letters/preview?topic={dead}", chosen)
    assert "Preview: 2 dead letters" in preview.text
    assert end_of(cluster, topic) == 0
    done = visitor.post(f"/dead-letters/redrive?topic={dead}", {"bounds": bounds_of(preview.text)})
    assert f"Wrote 2 dead letters back: 2 to {topic}." in done.text
    assert done.text.count("redriven</span>") == 2

    preview = visitor.post(f"/dead-letters/preview?topic={dead}&step=rigs", {"all": "1"})
    assert "Preview: 2 dead letters" in preview.text
    assert "1 were redriven before" in preview.text
    producer.produce(dead, b"late", headers=[*zip(WITH_ORIGIN, values, strict=True)])
    assert producer.flush(30) == 0
    visitor.post(f"/dead-letters/redrive?topic={dead}&step=rigs", {"bounds": bounds_of(preview.text)})
    again = visitor.post(f"/dead-letters/redrive?topic={dead}&step=rigs", {"bounds": bounds_of(preview.text)})
    assert "Nothing was written back" in again.text
    assert end_of(cluster, topic) >= 4
    assert visitor.post(f"/dead-letters/redrive?topic={dead}", {"bounds": "{}"}).status == 422
    assert visitor.post(f"/dead-letters/preview?topic={dead}", {"chosen": "1"}).status == 422
    assert visitor.post(f"/dead-letters/redrive?topic={dead}", {"bounds": "{}"}, token="x").status == 403


def test_a_read_only_console_writes_nothing_back(bootstrap_server: str, topic: str) -> None:
    with running_console(bootstrap_server, is_read_only=True) as address:
        visitor = Visitor(address)
        assert "Redrive" not in visitor.get(f"/dead-letters?topic={topic}").text
        assert visitor.post(f"/dead-letters/redrive?topic={topic}", {"bounds": "{}"}).status == 403


def bounds_of(page: str) -> str:
    return page.partition('name="bounds" value="')[2].partition('">')[0]


def end_of(cluster: Cluster, topic: str) -> int:
    return cluster.latest_offsets(topic, [1])[1]
