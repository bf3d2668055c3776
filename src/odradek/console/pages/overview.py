"""The overview with its live panel and charts; brokers and their disks; the plan that moves replicas between them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.admin.cluster_state import read_state
from odradek.admin.log_directories import read_sizes
from odradek.admin.partitions import Move, MoveGoal, alter_reassignments, planned_moves, with_sizes
from odradek.console.pages.requests import Form, PageRequest, Routes, stream_samples
from odradek.console.views.figures import parse_number
from odradek.console.views.overview import CHARTS, MEASURED_CHARTS, broker_rows, overview, used_percent
from odradek.console.views.pipelines import PipelineRow, pipeline_rows
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, count_text
from odradek.pipelines.operating.status_record import TOPIC as STATUS_TOPIC

if TYPE_CHECKING:
    from starlette.responses import Response

    from odradek.admin.cluster import Cluster
    from odradek.console.models import Sample

ROUTES = Routes("overview")
BROKER_ROUTES = Routes("brokers")
FIRST_READ_S = 1.0  # of the statuses of pipelines, by the first page


@ROUTES.page("/", "/overview/panel")
async def show(request: PageRequest) -> Response:
    console, watch = request.console, request.console.watch
    snapshot = await request.snapshot()
    is_answering = not watch.trouble
    failing: list[PipelineRow] = []
    if STATUS_TOPIC in snapshot.topics:
        await console.run(lambda: console.pipelines.wait_until_read(FIRST_READ_S))
        with console.pipelines.reading() as pipelines:
            rows = pipeline_rows(pipelines.all(), time.time(), is_masked=console.settings.is_masked)
        failing = [row for row in rows if row.tone == "bad"]
    return request.render(
        "overview_panel.html" if request.url.path.endswith("/panel") else "overview.html",
        view=overview(snapshot, watch.samples, watch.topic_rates, is_answering=is_answering),
        charts=MEASURED_CHARTS if snapshot.traffic else CHARTS,
        snapshot=snapshot,
        is_answering=is_answering,
        failing=failing,
    )


@ROUTES.page("/events/samples")
async def stream(request: PageRequest) -> Response:
    watch = request.console.watch

    def read(seen: int) -> tuple[Sequence[Sample], int]:
        watch.note_look()  # while the stream is open the watch does not pause
        return watch.samples.since(seen), watch.samples.count

    return stream_samples(request, MEASURED_CHARTS, read)


@BROKER_ROUTES.page("/brokers")
async def show_brokers(request: PageRequest, planned: Sequence[Move] | None = None) -> Response:
    snapshot = await request.snapshot()
    plan = [[m.partition.topic, m.partition.index, list(m.before), list(m.after)] for m in planned or ()]
    return request.render(
        "brokers.html",
        snapshot=snapshot,
        rows=broker_rows(snapshot),
        is_answering=not request.console.watch.trouble,
        used_percent=used_percent,
        planned=planned,
        copied=sum(move.bytes_to_copy or 0 for move in planned or ()),
        plan=json.dumps(plan),
    )


def plan_moves(cluster: Cluster, goal: MoveGoal) -> list[Move]:
    state = read_state(cluster.requests)
    if not state.knows_reassignments:
        raise Failure("no controller answers; wait for an election, and try again")
    if not goal.topics and not goal.drain:
        raise Failure("name topics, or a broker to drain")
    moves = planned_moves(state, goal)
    return with_sizes(moves, read_sizes(cluster.requests, state, [move.partition for move in moves]))


def parse_ids(text: str, name: str) -> tuple[int, ...]:
    return tuple(parse_number(each, name, 0, INT32_MAX) for each in text.replace(",", " ").split())


def parse_goal(form: Form) -> MoveGoal:
    return MoveGoal(
        form.text("topics").replace(",", " ").split(),
        (),
        parse_ids(form.text("to"), "to brokers"),
        parse_ids(form.text("drain"), "drain"),
        parse_number(form.text("factor"), "replicas", 1, 100) if form.text("factor") else None,
    )


@BROKER_ROUTES.form("/brokers/preview", show_brokers)
async def preview(request: PageRequest) -> Response:
    return await show_brokers(request, await request.console.call(plan_moves, parse_goal(request.posted)))


class PlannedMove(NamedTuple):
    """A partition with its replicas before and after, as a preview has shown them."""

    key: tuple[str, int]
    before: tuple[int, ...]
    after: tuple[int, ...]


def planned_move(topic: Any, index: Any, before: Any, after: Any) -> PlannedMove:
    """ValueError or TypeError for a row that is not one of a preview."""
    return PlannedMove((str(topic), int(index)), tuple(map(int, before)), tuple(map(int, after)))


def begin_moves(cluster: Cluster, moves: Sequence[PlannedMove]) -> None:
    """Failure if a partition has other replicas than the preview showed."""
    present = {(each.topic, each.index): each.replicas for each in read_state(cluster.requests).partitions}
    for each in moves:
        if present.get(each.key) != each.before:
            topic, index = each.key
            raise Failure(f"{topic}-{index} has other replicas than the preview shows; look at a new preview")
    alter_reassignments(cluster.requests, {each.key: each.after for each in moves})


@BROKER_ROUTES.form("/brokers/move", show_brokers)
async def begin(request: PageRequest) -> Response:
    moves = request.posted.plan(planned_move)
    counted = count_text(len(moves), "partition")
    after = sorted((each.key, each.after) for each in moves)
    await request.change(f"move {counted}: {after[:20]}", begin_moves, moves)
    await request.look_again()
    return request.redirect("/brokers", f"Began to move {counted}.")


@BROKER_ROUTES.form("/brokers/cancel", show_brokers)
async def cancel(request: PageRequest) -> Response:
    running = [(each.topic, each.index) for each in (await request.look_again()).health.moving]
    if not running:
        return request.redirect("/brokers", "No partition is being moved.")
    await request.change(
        f"cancel {len(running)} moves", lambda cluster: alter_reassignments(cluster.requests, dict.fromkeys(running))
    )
    await request.look_again()
    return request.redirect("/brokers", f"Cancelled {count_text(len(running), 'move')}.")
