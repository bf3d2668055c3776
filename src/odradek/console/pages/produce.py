"""The forms of the records page that write: one record, or a selection of records into a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from odradek.console.cluster.connection import Failure
from odradek.console.cluster.writing import CHOSEN_BY_KEY, NewRecord, replay, write_records
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import Form, FormError, parse_number
from odradek.console.pages.records import show
from odradek.console.views.figures import plural
from odradek.console.views.page_links import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_REPLAYED = 500
PRODUCE_FIELDS = ("key", "value", "headers", "partition")


def new_record(form: Form) -> NewRecord:
    """FormError for headers that are not name=value. An empty key is no key; `null` of the form makes a null value."""
    key = form.raw("key") or ""
    value = None if form.has("null") else (form.raw("value") or "").encode()
    headers = []
    for line in filter(None, map(str.strip, (form.raw("headers") or "").splitlines())):
        name, equals, text = line.partition("=")
        if not equals or not name.strip():
            raise FormError(f"{line[:60]!r} is not name=value; write one header on each line")
        headers.append((name.strip(), text.strip().encode()))
    partition = form.number("partition", 0, INT32_MAX, CHOSEN_BY_KEY)
    return NewRecord(key.encode() if key else None, value, tuple(headers), partition)


async def produce(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = request.path_params["name"]
    try:
        (written,) = await make_change(request, f"write a record to {name}", write_records, name, [new_record(form)])
    except (Failure, FormError) as failure:
        text = str(failure)
        return await show(request, text, {field: form.raw(field) or "" for field in PRODUCE_FIELDS})
    await console.run(console.watch.look_again)  # so that the page counts it
    notice = f"Wrote a record to partition {written.partition} at offset {written.offset:,}."
    return console.renderer.redirect(f"/topics/{name}", notice)


def parse_positions(texts: list[str]) -> list[tuple[int, int]]:
    """`partition:offset` of each selected record."""
    if not 0 < len(texts) <= MOST_REPLAYED:
        raise FormError(f"select 1 to {MOST_REPLAYED} records")
    positions = []
    for text in texts:
        partition, _, offset = text.partition(":")
        positions.append(
            (parse_number(partition, "record", 0, INT32_MAX), parse_number(offset, "record", 0, INT64_MAX))
        )
    return positions


async def replay_selection(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name, target = request.path_params["name"], form.text("target")
    try:
        if not target:
            raise FormError("name the topic that the records go to")
        positions = parse_positions(form.all("record"))
        change = f"copy {plural(len(positions), 'record')} of {name} to {target}"
        count = await make_change(request, change, replay, name, positions, target)
    except (Failure, FormError) as failure:
        return await show(request, str(failure))
    await console.run(console.watch.look_again)
    return console.renderer.redirect(f"/topics/{target}", f"Copied {plural(count, 'record')} of {name} to {target}.")


ROUTES = [
    Route("/topics/{name}", produce, methods=["POST"]),
    Route("/topics/{name}/replay", replay_selection, methods=["POST"]),
]
