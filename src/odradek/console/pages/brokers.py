"""Brokers and their disks; the plan that moves replicas between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.routing import Route

from odradek.console.cluster import moves
from odradek.console.cluster.connection import Failure
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import Form, FormError, parse_number
from odradek.console.views.brokers import broker_rows, bytes_to_copy, used_percent
from odradek.console.views.figures import plural

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

INT32_MAX = 2**31 - 1
MOST_MOVES = 10_000


async def show(request: Request) -> Response:
    return await _page(request, Form({}))


async def _page(request: Request, form: Form, planned: list[moves.Move] | None = None, error: str = "") -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    plan = [[m.partition.topic, m.partition.index, list(m.before), list(m.after)] for m in planned or ()]
    return console.renderer.page(
        request,
        "brokers.html",
        422 if error else 200,
        section="brokers",
        rows=broker_rows(snapshot),
        is_answering=not console.watch.trouble,
        used_percent=used_percent,
        moving=snapshot.health.moving,
        is_denied=snapshot.disks.is_denied,
        form=form,
        planned=planned,
        copied=bytes_to_copy(planned or []),
        plan=json.dumps(plan),
        error=error,
    )


def parse_ids(text: str, name: str) -> tuple[int, ...]:
    return tuple(parse_number(each, name, 0, INT32_MAX) for each in text.replace(",", " ").split())


def parse_goal(form: Form) -> moves.MoveGoal:
    factor = form.text("factor")
    return moves.MoveGoal(
        tuple(form.text("topics").replace(",", " ").split()),
        parse_ids(form.text("to"), "to brokers"),
        parse_ids(form.text("drain"), "drain"),
        parse_number(factor, "replicas", 1, 100) if factor else None,
    )


async def preview(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        planned = await console.call(moves.plan, parse_goal(form))
    except (Failure, FormError) as failure:
        return await _page(request, form, error=str(failure))
    return await _page(request, form, planned)


def parse_plan(text: str) -> tuple[moves.Targets, moves.Targets]:
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


async def begin(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        after, before = parse_plan(form.text("plan"))
        change = f"move {plural(len(after), 'partition')}: {sorted(after.items())[:20]}"
        await make_change(request, change, moves.begin, after, before)
    except (Failure, FormError) as failure:
        return await _page(request, form, error=str(failure))
    await console.run(console.watch.look_again)
    return console.renderer.redirect("/brokers", f"Began to move {plural(len(after), 'partition')}.")


async def cancel(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    snapshot = await console.run(console.watch.look_again)
    running = [(each.topic, each.index) for each in snapshot.health.moving]
    if not running:
        return console.renderer.redirect("/brokers", "No partition is being moved.")
    try:
        await make_change(request, f"cancel {len(running)} moves", moves.cancel, running)
    except Failure as failure:
        return await _page(request, form, error=failure.message)
    await console.run(console.watch.look_again)
    return console.renderer.redirect("/brokers", f"Cancelled {plural(len(running), 'move')}.")


ROUTES = [
    Route("/brokers", show),
    Route("/brokers/preview", preview, methods=["POST"]),
    Route("/brokers/move", begin, methods=["POST"]),
    Route("/brokers/cancel", cancel, methods=["POST"]),
]
