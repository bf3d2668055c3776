"""The page of the rigs example: its pumps, the readings of one of them, and warnings as they come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from odradek.console.context import console_of, has_console
from odradek.console.models import READINGS
from odradek.console.pages.requests import PageRequest, Routes, event_stream
from odradek.console.views import rigs
from odradek.console.web.rendering import event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.context import Console

ROUTES = Routes("rigs")
TURN_S = 1.0
LONGEST_NAME = 80


def has_rigs(request: Request) -> bool:
    """Whether the example's topic exists, as far as the last round has seen, also after a pause of the watch."""
    if not has_console(request):
        return False
    console = console_of(request)
    snapshot = console.watch.latest
    if snapshot is not None:
        console.rigs.has_topic = READINGS in snapshot.topics
    return console.rigs.has_topic


@ROUTES.page("/rigs")
async def show(request: PageRequest) -> Response:
    console = request.console
    snapshot = await request.snapshot()
    if READINGS not in snapshot.topics:
        raise HTTPException(404)
    await console.run(console.rigs.load_view)
    await console.run(console.pipelines.wait_until_read)
    now_s = time.time()
    trouble = _pipeline_trouble(console, now_s)
    with console.rigs.reading() as model:
        view = rigs.rigs_view(model, snapshot.topics, now_s, is_evaluated=not trouble.text)
    chosen = request.query("pump", LONGEST_NAME) or rigs.first_choice(view["pumps"])
    return request.render("rigs.html", view=view, chosen=chosen, charts=rigs.CHARTS, trouble=trouble)


def _pipeline_trouble(console: Console, now_s: float) -> rigs.Trouble:
    with console.pipelines.reading() as pipelines:
        return rigs.pipeline_trouble(pipelines.all(), now_s, is_masked=console.settings.is_masked)


@ROUTES.page("/events/rigs")
async def stream(request: PageRequest) -> Response:
    console = request.console
    await console.run(console.rigs.load_view)
    return event_stream(console.update_page(_turns(request, console)))


async def _turns(request: PageRequest, console: Console) -> AsyncIterator[bytes]:
    """The state of all pumps and the new readings of the chosen one, every second."""
    chosen = request.query("pump", LONGEST_NAME)
    last_second = 0
    shown: dict[str, Any] = {}
    while not console.is_stopping and not await request.is_disconnected():
        now_s = time.time()
        snapshot = console.watch.latest
        trouble = _pipeline_trouble(console, now_s)
        with console.rigs.reading() as model:
            topics = {} if snapshot is None else snapshot.topics
            turn = rigs.rigs_view(model, topics, now_s, is_evaluated=not trouble.text)
            chosen = chosen or rigs.first_choice(turn["pumps"])
            points = model.points_since(chosen, last_second)
        turn["warnings"] = request.fragment("rigs_warnings.html", warnings=turn["warnings"])
        if points:
            last_second = points[-1].second
        changed = {name: value for name, value in turn.items() if shown.get(name) != value}
        shown = turn
        always = {
            "chosen": chosen,
            "now": now_s,
            "points": rigs.chart_points(points),
            "trouble": console.rigs.trouble or trouble.text,
            "tone": "bad" if console.rigs.trouble else trouble.tone,
        }
        yield event("turn", {**always, **changed})
        await console.pause(TURN_S)
