"""Dead letters of a topic, and the forms that write them back: a preview, then the redrive of what it shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.routing import Route

from odradek.console.cluster import pipelines
from odradek.console.cluster.connection import Failure
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, log_change, make_change
from odradek.console.pages.forms import Form, FormError
from odradek.console.pages.produce import parse_positions
from odradek.console.records.record import Record
from odradek.console.views.figures import plural
from odradek.console.views.letters import choices, letter_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.cluster.connection import Cluster

FILTERS = ("pipeline", "step", "reason")
LONGEST = 300


def selection_of(fields: Mapping[str, str]) -> pipelines.Selection:
    topic = fields.get("topic", "")
    if not topic:
        raise FormError("name a dead-letter topic")
    pipeline, step, reason = (fields.get(name, "")[:LONGEST] for name in FILTERS)
    return pipelines.Selection(topic, None, pipeline, step, reason)


def address_of(selection: pipelines.Selection) -> str:
    fields = {"topic": selection.topic, **{name: getattr(selection, name) for name in FILTERS}}
    return f"/dead-letters?{urlencode({name: value for name, value in fields.items() if value})}"


async def show(request: Request, error: str = "") -> Response:
    console = console_of(request)
    selection = selection_of(request.query_params)
    listed, total, passed_over = await console.call(pipelines.list_letters, selection)
    prepare = console.settings.preparation
    rows = [
        letter_row(each, prepare(_record_of(each, selection.topic)), is_masked=bool(prepare.masks)) for each in listed
    ]
    return console.renderer.page(
        request,
        "dead_letters.html",
        422 if error else 200,
        section="pipelines",
        selection=selection,
        rows=rows,
        total=total,
        passed_over=passed_over,
        choices=choices(listed),
        error=error,
    )


def _record_of(listed: pipelines.ListedLetter, topic: str) -> Record:
    """The original record, as its topic's schema decodes it."""
    found = listed.found
    name = found.letter.source_topic or topic
    return Record(name, found.position[0], found.position[1], found.timestamp_ms, found.key, found.value)


async def preview(request: Request) -> Response:
    """What would be written: the selected letters, or all that the filter matches."""
    console = console_of(request)
    form = await checked_form(request)
    try:
        selection = _chosen(request, form)
        plan = await console.call(pipelines.plan_redrive, selection, again=form.has("again"))
    except (Failure, FormError) as failure:
        return await show(request, str(failure))
    bounds = {"ends": plan.ends} if selection.positions is None else {"records": form.all("record")}
    return console.renderer.page(
        request,
        "redrive.html",
        section="pipelines",
        selection=selection,
        plan=plan,
        again=form.has("again"),
        bounds=json.dumps({**bounds, "count": plan.records}),
        back=address_of(selection),
    )


def _chosen(request: Request, form: Form) -> pipelines.Selection:
    selection = selection_of(request.query_params)
    if form.has("all"):
        return selection
    return replace(selection, positions=frozenset(parse_positions(form.all("record"))))


def _planned(selection: pipelines.Selection, text: str) -> pipelines.Selection:
    """The selection of a preview, which its form carries; FormError if it cannot be read."""
    try:
        bounds = json.loads(text)
        limit = min(int(bounds["count"]), pipelines.MOST_LETTERS)
        if "records" in bounds:
            return replace(selection, positions=frozenset(parse_positions(bounds["records"])))
        ends = {int(partition): int(end) for partition, end in bounds["ends"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise FormError("the preview cannot be read; look at a new one") from None
    return replace(selection, ends=ends, limit=max(limit, 1))


async def apply(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    selection = selection_of(request.query_params)
    try:
        planned = _planned(selection, form.text("bounds"))
        change = f"write dead letters of {selection.topic} back"
        done = await make_change(request, change, _redrive, request, planned, again=form.has("again"))
    except (Failure, FormError) as failure:
        return await show(request, str(failure))
    if not done.records:
        return console.renderer.redirect(address_of(selection), "Nothing was written back.")
    notice = f"Wrote {plural(done.records, 'dead letter')} back: {_targets(done)}."
    return console.renderer.redirect(address_of(selection), notice)


def _redrive(cluster: Cluster, request: Request, selection: pipelines.Selection, *, again: bool) -> pipelines.Redrive:
    """On a thread: the change is logged even if the page does not wait for it."""
    done = pipelines.redrive(cluster, selection, again=again)
    if done.records:
        log_change(request, f"wrote {done.records} dead letters of {selection.topic} back ({_targets(done)})")
    return done


def _targets(done: pipelines.Redrive) -> str:
    return ", ".join(f"{count:,} to {topic}" for topic, count in done.topics.most_common())


ROUTES = [
    Route("/dead-letters", show),
    Route("/dead-letters/preview", preview, methods=["POST"]),
    Route("/dead-letters/redrive", apply, methods=["POST"]),
]
