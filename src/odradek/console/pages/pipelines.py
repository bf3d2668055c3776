"""Pipelines that publish their status: the list, one with its graph, and the samples of its charts."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.routing import Route

from odradek.console.context import console_of
from odradek.console.views.pipelines import CHARTS, columns, pipeline_rows, pipeline_view
from odradek.console.web.rendering import event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.context import Console

POLL_S = 0.5
KEEP_ALIVE_POLLS = 30
FIRST_READ_S = 3.0


async def show_list(request: Request) -> Response:
    console = console_of(request)
    await console.run(lambda: console.pipelines.wait_until_read(FIRST_READ_S))
    now_s, is_masked = time.time(), bool(console.settings.preparation.masks)
    with console.pipelines.reading() as pipelines:
        rows = pipeline_rows(pipelines.all(), now_s, is_masked=is_masked)
    template = "pipelines_table.html" if request.url.path.endswith("/table") else "pipelines.html"
    return console.renderer.page(request, template, section="pipelines", rows=rows, trouble=console.pipelines.trouble)


async def show(request: Request) -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    await console.run(lambda: console.pipelines.wait_until_read(FIRST_READ_S))
    is_masked = bool(console.settings.preparation.masks)
    with console.pipelines.reading() as pipelines:
        known = pipelines.get(request.query_params.get("key", ""))
        view = None if known is None else pipeline_view(known, snapshot.topics, time.time(), is_masked=is_masked)
    if view is None:
        raise HTTPException(404)
    template = "pipeline_panel.html" if request.url.path.endswith("/panel") else "pipeline.html"
    return console.renderer.page(
        request, template, section="pipelines", view=view, charts=CHARTS, trouble=console.pipelines.trouble
    )


async def stream(request: Request) -> Response:
    console = console_of(request)
    return StreamingResponse(console.update_page(_samples(request, console)), media_type="text/event-stream")


async def _samples(request: Request, console: Console) -> AsyncIterator[bytes]:
    """The samples of the last hour at first, then each new one."""
    key = request.query_params.get("key", "")
    seen = silent = 0
    while not console.is_stopping and not await request.is_disconnected():
        with console.pipelines.reading() as pipelines:
            known = pipelines.get(key)
            new = [] if known is None else known.samples.since(seen)
            seen = seen if known is None else known.samples.count
        silent = 0 if new else silent + 1
        if new:
            yield event("samples", columns(new))
        elif silent >= KEEP_ALIVE_POLLS:
            silent = 0
            yield b": waiting\n\n"
        await asyncio.sleep(POLL_S)


ROUTES = [
    Route("/pipelines", show_list),
    Route("/pipelines/table", show_list),
    Route("/pipeline", show),
    Route("/pipeline/panel", show),
    Route("/events/pipeline", stream),
]
