"""The overview, its live panel, and the stream of samples that its charts draw."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.console.context import console_of
from odradek.console.pages.forms import Routes
from odradek.console.pages.listing import stream_samples
from odradek.console.views.overview import CHARTS, MEASURED_CHARTS, overview
from odradek.console.views.pipelines import pipeline_rows
from odradek.console.web.rendering import render
from odradek.pipelines.operating.status_record import TOPIC as STATUS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.models.history import Sample
    from odradek.console.views.pipelines import PipelineRow

ROUTES = Routes()
FIRST_READ_S = 1.0  # of the statuses of pipelines, by the first page


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
