"""The overview, its live panel, and the stream of samples that its charts draw."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse
from starlette.routing import Route

from odradek.console.context import console_of
from odradek.console.views.charts import CHARTS, MEASURED_CHARTS, columns
from odradek.console.views.overview import overview
from odradek.console.views.pipelines import pipeline_rows
from odradek.console.web.rendering import event
from odradek.pipelines.operating.status_record import TOPIC as STATUS_TOPIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.context import Console
    from odradek.console.views.pipelines import PipelineRow

POLL_S = 0.5
KEEP_ALIVE_POLLS = 30


async def show(request: Request) -> Response:
    console = console_of(request)
    watch = console.watch
    snapshot = await console.run(watch.snapshot)
    is_answering = not watch.trouble
    view = overview(snapshot, watch.samples, watch.topic_rates, is_answering=is_answering)
    charts = MEASURED_CHARTS if snapshot.traffic else CHARTS
    failing: list[PipelineRow] = []
    if STATUS_TOPIC in snapshot.topics:
        is_masked = bool(console.settings.preparation.masks)
        with console.pipelines.reading() as pipelines:
            rows = pipeline_rows(pipelines.all(), time.time(), is_masked=is_masked)
        failing = [row for row in rows if row.tone == "bad"]
    template = "overview_panel.html" if request.url.path.endswith("/panel") else "overview.html"
    return console.renderer.page(
        request,
        template,
        section="overview",
        view=view,
        charts=charts,
        snapshot=snapshot,
        is_answering=is_answering,
        failing=failing,
    )


async def stream(request: Request) -> Response:
    console = console_of(request)
    return StreamingResponse(console.update_page(_samples(request, console)), media_type="text/event-stream")


async def _samples(request: Request, console: Console) -> AsyncIterator[bytes]:
    """The samples of the last hour at first, then each new one. While the stream is open the watch does not pause."""
    seen = 0
    silent = 0
    watch = console.watch
    while not console.is_stopping:
        watch.note_look()
        samples = watch.samples
        silent += 1
        if samples.count > seen:
            yield event("samples", columns(samples.since(seen)))
            seen = samples.count
            silent = 0
        elif silent >= KEEP_ALIVE_POLLS:
            yield b": waiting\n\n"
            silent = 0
        if await request.is_disconnected():
            return
        await asyncio.sleep(POLL_S)


ROUTES = [Route("/", show), Route("/overview/panel", show), Route("/events/samples", stream)]
