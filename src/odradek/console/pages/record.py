"""One record: its page or drawer, the steps to the records before and after it, and its parts as downloads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from odradek.console.cluster.records import Reading, joined, read_page, read_record
from odradek.console.context import console_of
from odradek.console.pages.records import attachment
from odradek.console.records.record import json_line
from odradek.console.views.figures import parse_number
from odradek.console.views.paging import RecordAddress
from odradek.console.views.records import FORMATS, detail
from odradek.console.web.rendering import redirect, render
from odradek.conventions.figures import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from odradek.console.records.record import Record


class Part(NamedTuple):
    suffix: str  # of a downloaded file
    read: Callable[[Record], bytes | None]


PARTS = {
    "key": Part(".key", lambda record: record.key),
    "value": Part(".value", lambda record: record.value),
    "json": Part(".json", json_line),
}


def record_of(request: Request) -> RecordAddress:
    """FormError without a partition and an offset."""
    fields = request.query_params
    form = fields.get("format", "auto")
    return RecordAddress(
        request.path_params["name"],
        parse_number(fields.get("partition", ""), "partition", 0, INT32_MAX),
        parse_number(fields.get("offset", ""), "offset", 0, INT64_MAX),
        form if form in FORMATS else "auto",
    )


async def read_prepared(request: Request, at: RecordAddress) -> Record:
    console = console_of(request)
    record = await console.call(read_record, at.topic, at.partition, at.offset)
    return await console.run(lambda: console.settings.decode_and_mask(record))


async def show_record(request: Request) -> Response:
    console = console_of(request)
    at = record_of(request)
    record = await read_prepared(request, at)
    view = await console.run(lambda: detail(record, at.form))
    template = "record.html" if request.headers.get("hx-request") == "true" else "record_page.html"
    return render(request, template, section="topics", view=view, formats=FORMATS, at=at)


async def step(request: Request, *, is_forward: bool) -> Response:
    """To the previous or the next record of the partition: some offsets have none."""
    console = console_of(request)
    at = record_of(request)
    start, word = ("offset", "after") if is_forward else ("before", "before")
    reading = Reading(at.topic, at.partition, start, limit=1, offsets={at.partition: at.offset + is_forward})
    page = await console.call(read_page, reading)
    for record in page.records:
        return redirect(request, at._replace(offset=record.offset).address(), page.notice)
    missing = f"There is no record {word} offset {at.offset:,} of partition {at.partition}."
    return redirect(request, at.address(), joined(missing, page.notice))


async def download_record(request: Request, *, part: str) -> Response:
    """The value, the key, or the line of an export: decoded and masked as the page shows it, whole."""
    at = record_of(request)
    record = await read_prepared(request, at)
    headers = {"content-disposition": attachment(f"{at.topic}-{at.partition}-{at.offset}{PARTS[part].suffix}")}
    return Response(PARTS[part].read(record) or b"", headers=headers, media_type="application/octet-stream")


ROUTES = [
    Route("/topics/{name}/record", show_record),
    *(Route(f"/topics/{{name}}/record/{way}", partial(step, is_forward=way == "next")) for way in ("previous", "next")),
    *(Route(f"/topics/{{name}}/record/{part}", partial(download_record, part=part)) for part in PARTS),
]
