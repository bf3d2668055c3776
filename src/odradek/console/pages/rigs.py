"""The page of the rigs example: its pumps, the readings of one of them, and warnings as they come."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.routing import Route

from odradek.console.context import console_of, has_console
from odradek.console.models.rigs import READINGS
from odradek.console.views import rigs
from odradek.console.web.rendering import event, render, render_fragment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.context import Console

TURN_S = 1.0
LONGEST_NAME = 80
FIRST_READ_S = 3.0


def has_rigs(request: Request) -> bool:
    """Whether the example's topic exists, as far as the last round has seen, also after a pause of the watch."""
    if not has_console(request):
        return False
    console = console_of(request)
    snapshot = console.watch.latest
    if snapshot is not None:
        console.rigs.has_topic = READINGS in snapshot.topics
    return console.rigs.has_topic


async def show(request: Request) -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    if READINGS not in snapshot.topics:
        raise HTTPException(404)
    await console.run(console.rigs.load_view)
    await console.run(lambda: console.pipelines.wait_until_read(FIRST_READ_S))
    now_s = time.time()
    trouble = _pipeline_trouble(console, now_s)
    with console.rigs.reading() as model:
        pumps = rigs.pump_states(model, now_s, is_evaluated=not trouble)
        view = {
            "pumps": pumps,
            "counts": rigs.state_counts(pumps),
            "figures": rigs.figures(model, snapshot.topics, now_s),
            "warnings": rigs.warnings(model, now_s),
        }
    chosen = request.query_params.get("pump", "")[:LONGEST_NAME] or rigs.first_choice(pumps)
    return render(request, "rigs.html", section="rigs", view=view, chosen=chosen, charts=rigs.CHARTS, trouble=trouble)


def _pipeline_trouble(console: Console, now_s: float) -> str:
    with console.pipelines.reading() as pipelines:
        return rigs.pipeline_trouble(pipelines.all(), now_s, is_masked=console.settings.is_masked)


async def stream(request: Request) -> Response:
    console = console_of(request)
    await console.run(console.rigs.load_view)
    return StreamingResponse(console.update_page(_turns(request, console)), media_type="text/event-stream")


async def _turns(request: Request, console: Console) -> AsyncIterator[bytes]:
    """The state of all pumps and the new readings of the chosen one, every second."""
    chosen = request.query_params.get("pump", "")[:LONGEST_NAME]
    last_second = 0
    shown: dict[str, Any] = {}
    while not console.is_stopping and not await request.is_disconnected():
        now_s = time.time()
        snapshot = console.watch.latest
        trouble = _pipeline_trouble(console, now_s)
        with console.rigs.reading() as model:
            pumps = rigs.pump_states(model, now_s, is_evaluated=not trouble)
            chosen = chosen or rigs.first_choice(pumps)
            points = model.points_since(chosen, last_second)
            turn: dict[str, Any] = {
                "pumps": pumps,
                "counts": rigs.state_counts(pumps),
                "figures": rigs.figures(model, {} if snapshot is None else snapshot.topics, now_s),
                "warnings": render_fragment(request, "rigs_warnings.html", warnings=rigs.warnings(model, now_s)),
            }
        if points:
            last_second = points[-1].second
        changed = {name: value for name, value in turn.items() if shown.get(name) != value}
        shown = turn
        yield event(
            "turn",
            {
                "chosen": chosen,
                "now": now_s,
                "points": rigs.chart_points(points),
                "trouble": console.rigs.trouble or trouble,
            }
            | changed,
        )
        await asyncio.sleep(TURN_S)


ROUTES = [Route("/rigs", show), Route("/events/rigs", stream)]
