"""The overview with its live panel and charts; brokers and their disks; the plan that moves replicas between them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from odradek.console.cluster import topics
from odradek.console.context import console_of
from odradek.console.pages.forms import NO_FORM, Form, Routes, make_change, stream_samples
from odradek.console.views.figures import FormError, parse_number
from odradek.console.views.overview import CHARTS, MEASURED_CHARTS, broker_rows, overview, used_percent
from odradek.console.views.pipelines import pipeline_rows
from odradek.console.web.rendering import redirect, render
from odradek.conventions.figures import INT32_MAX, count_text
from odradek.pipelines.operating.status_record import TOPIC as STATUS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.models import Sample
    from odradek.console.views.pipelines import PipelineRow

ROUTES = Routes()
FIRST_READ_S = 1.0  # of the statuses of pipelines, by the first page
MOST_MOVES = 10_000


@ROUTES.page("/", "/overview/panel")
async def show(request: Request) -> Response:
    console = console_of(request)
    watch = console.watch
    snapshot = await console.run(watch.snapshot)
    is_answering = not watch.trouble
    failing: list[PipelineRow] = []
    if STATUS_TOPIC in snapshot.topics:
        await console.run(lambda: console.pipelines.wait_until_read(FIRST_READ_S))
        with console.pipelines.reading() as pipelines:
            rows = pipeline_rows(pipelines.all(), time.time(), is_masked=console.settings.is_masked)
        failing = [row for row in rows if row.tone == "bad"]
    return render(
        request,
        "overview_panel.html" if request.url.path.endswith("/panel") else "overview.html",
        section="overview",
        view=overview(snapshot, watch.samples, watch.topic_rates, is_answering=is_answering),
        charts=MEASURED_CHARTS if snapshot.traffic else CHARTS,
        snapshot=snapshot,
        is_answering=is_answering,
        failing=failing,
    )


@ROUTES.page("/events/samples")
async def stream(request: Request) -> Response:
    watch = console_of(request).watch

    def read(seen: int) -> tuple[Sequence[Sample], int]:
        watch.note_look()  # while the stream is open the watch does not pause
        return watch.samples.since(seen), watch.samples.count

    return stream_samples(request, MEASURED_CHARTS, read)


@ROUTES.page("/brokers")
async def show_brokers(
    request: Request, form: Form = NO_FORM, error: str = "", planned: list[topics.Move] | None = None
) -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    plan = [[m.partition.topic, m.partition.index, list(m.before), list(m.after)] for m in planned or ()]
    return render(
        request,
        "brokers.html",
        section="brokers",
        rows=broker_rows(snapshot),
        is_answering=not console.watch.trouble,
        used_percent=used_percent,
        moving=snapshot.health.moving,
        is_denied=snapshot.disks.is_denied,
        form=form,
        planned=planned,
        copied=sum(move.bytes_to_copy or 0 for move in planned or ()),
        plan=json.dumps(plan),
        error=error,
    )


def parse_ids(text: str, name: str) -> tuple[int, ...]:
    return tuple(parse_number(each, name, 0, INT32_MAX) for each in text.replace(",", " ").split())


def parse_goal(form: Form) -> topics.MoveGoal:
    factor = form.text("factor")
    return topics.MoveGoal(
        tuple(form.text("topics").replace(",", " ").split()),
        parse_ids(form.text("to"), "to brokers"),
        parse_ids(form.text("drain"), "drain"),
        parse_number(factor, "replicas", 1, 100) if factor else None,
    )


@ROUTES.form("/brokers/preview", show_brokers)
async def preview(request: Request, form: Form) -> Response:
    planned = await console_of(request).call(topics.plan_moves, parse_goal(form))
    return await show_brokers(request, form, planned=planned)


def parse_plan(text: str) -> tuple[topics.Targets, topics.Targets]:
    """Replicas after and before, as the preview's form carries them."""
    try:
        rows = json.loads(text)
        after = {(str(t), int(i)): tuple(int(r) for r in a) for t, i, _b, a in rows}
        before = {(str(t), int(i)): tuple(int(r) for r in b) for t, i, b, _a in rows}
    except (ValueError, TypeError):
        raise FormError("the preview cannot be read; look at a new one") from None
    if not 0 < len(after) <= MOST_MOVES:
        raise FormError("the preview is empty or too long; look at a new one")
    return after, before


@ROUTES.form("/brokers/move", show_brokers)
async def begin(request: Request, form: Form) -> Response:
    console = console_of(request)
    after, before = parse_plan(form.text("plan"))
    counted = count_text(len(after), "partition")
    change = f"move {counted}: {sorted(after.items())[:20]}"
    await make_change(request, change, topics.begin_moves, after, before)
    await console.run(console.watch.look_again)
    return redirect(request, "/brokers", f"Began to move {counted}.")


@ROUTES.form("/brokers/cancel", show_brokers)
async def cancel(request: Request, _form: Form) -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.look_again)
    running = [(each.topic, each.index) for each in snapshot.health.moving]
    if not running:
        return redirect(request, "/brokers", "No partition is being moved.")
    await make_change(request, f"cancel {len(running)} moves", topics.cancel_moves, running)
    await console.run(console.watch.look_again)
    return redirect(request, "/brokers", f"Cancelled {count_text(len(running), 'move')}.")
