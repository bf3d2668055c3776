"""Records of a topic: a page of them, those that a search finds, those that arrive, and their export."""

from __future__ import annotations

import asyncio
import queue
import re
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from odradek.console.cluster import feeds
from odradek.console.cluster.connection import Failure, NotAllowed, parse_time_ms
from odradek.console.cluster.feed import Feed
from odradek.console.cluster.records import PageRead, Reading, joined, read_page
from odradek.console.context import console_of
from odradek.console.pages.forms import FormError, parse_number
from odradek.console.pages.listing import choose_template
from odradek.console.pages.topic import find_topic
from odradek.console.records.json_path import PathError
from odradek.console.records.record_filter import COMPARISONS, FIELDS, RecordFilter, parse_filter
from odradek.console.views.page_links import (
    INT32_MAX,
    further_search,
    page_links,
    parse_offsets,
)
from odradek.console.views.records import FORMATS, consume_command, row
from odradek.console.web.rendering import event
from odradek.console.web.safety import AbortedResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request

    from odradek.console.cluster.feed import Taken
    from odradek.console.context import Console

STARTS = {"newest": "newest", "oldest": "oldest", "offset": "offset", "before": "before offset", "time": "time"}
LIMITS = (25, 50, 100, 200)
POLL_S = 0.3
LARGEST_TEXT = 1_000
RANGE_FIELDS = ("start", "at", "partition", "order")


@dataclass(frozen=True, slots=True)
class RecordsQuery:
    """The fields of the address: the range of records, the filter, and how values are shown."""

    reading: Reading
    wanted: RecordFilter
    form: str
    fields: Mapping[str, str]
    is_newest_first: bool


def parse_records_query(topic: str, fields: Mapping[str, str], now_ms: int) -> RecordsQuery:
    """FormError for a field that cannot be read."""
    start = fields.get("start", "newest")
    if start not in STARTS:
        raise FormError(f"{start[:20]!r} is no start; it is {', '.join(STARTS)}")
    partition = fields.get("partition", "")
    try:
        at = fields.get("at", "").strip()
        offset, offsets = parse_offsets(at) if start in ("offset", "before") else (0, {})
        reading = Reading(
            topic,
            parse_number(partition, "partition", 0, INT32_MAX) if partition else None,
            start,
            offset,
            max(parse_time_ms(at, now_ms), 0) if start == "time" else 0,
            parse_number(fields.get("limit", ""), "limit", 1, LIMITS[-1], 50),
            offsets,
        )
        wanted = parse_filter(
            fields.get("field", "any"),
            fields.get("comparison", "contains"),
            fields.get("text", "")[:LARGEST_TEXT],
            fields.get("name", "").strip()[:LARGEST_TEXT],
        )
    except PathError as error:
        raise FormError(str(error)) from None
    except FormError:
        raise
    except (ValueError, OverflowError):
        raise FormError(f"{at[:60]!r} is not a time; write 2026-01-31T12:00, epoch milliseconds, or -1h") from None
    form = fields.get("format", "auto")
    is_newest_first = fields.get("order", "newest" if reading.is_backward else "oldest") == "newest"
    return RecordsQuery(reading, wanted, form if form in FORMATS else "auto", fields, is_newest_first)


def query_of(request: Request) -> RecordsQuery:
    return parse_records_query(request.path_params["name"], request.query_params, int(time.time() * 1000))


async def show(request: Request, error: str = "", filled: Mapping[str, str] | None = None) -> Response:
    """With a filter the page comes without records: the browser requests the stream of the search."""
    console = console_of(request)
    snapshot, topic = await find_topic(request)
    status = 422
    is_failed = False
    try:
        query = query_of(request)
        is_search = query.wanted.is_active
        page = PageRead([]) if is_search else await console.call(read_page, query.reading)
    except (FormError, Failure) as failure:
        status = 403 if isinstance(failure, NotAllowed) else 422
        error = error or str(failure)
        is_failed = True
        query = parse_records_query(topic.name, {}, 0)
        is_search, page = False, PageRead([])
    prepare, form = console.settings.preparation, query.form
    records = page.records if query.is_newest_first == query.reading.is_backward else page.records[::-1]
    rows = await console.run(lambda: [row(prepare(record), form) for record in records]) if records else []
    return console.renderer.page(
        request,
        choose_template(request, "records", "records"),
        status if error else 200,
        section="topics",
        tab="records",
        topic=topic,
        query=query,
        fields=request.query_params,
        reading=query.reading,
        whole=address_of_topic(query),
        searched=None,
        rows=rows,
        page_notice=joined(page.notice, page.uncommitted),
        starts=STARTS,
        is_search=is_search,
        is_failed=is_failed,
        links=page_links(
            query.reading,
            page,
            {each: snapshot.starts.get((topic.name, each), 0) for each in page.began},
            {each: snapshot.ends.get((topic.name, each), 0) for each in page.began},
            is_newest_first=query.is_newest_first,
        ),
        limits=LIMITS,
        filter_fields=FIELDS,
        comparisons=COMPARISONS,
        formats=FORMATS,
        command=consume_command(console.cluster.bootstrap_servers, query.reading, query.wanted, rows),
        masks=console.settings.preparation.masks,
        filled=filled or {},
        error=error,
    )


def address_of_topic(query: RecordsQuery) -> str:
    """The page of the newest records of all partitions, with the same filter."""
    kept = {name: text for name, text in query.fields.items() if text and name not in RANGE_FIELDS}
    return f"/topics/{quote(query.reading.topic, safe='')}{'?' if kept else ''}{urlencode(kept)}"


def attachment(name: str) -> str:
    return f'attachment; filename="{re.sub("[^A-Za-z0-9._-]", "_", name)}"'


async def stream_search(request: Request) -> Response:
    return _stream(request, feeds.search, Feed(feeds.MOST_MATCHES), is_newest_first=False)


async def stream_tail(request: Request) -> Response:
    return _stream(request, feeds.tail, Feed(), is_newest_first=True)


def _stream(request: Request, read: Callable[..., None], feed: Feed, *, is_newest_first: bool) -> Response:
    console = console_of(request)
    query = query_of(request)
    read_feed = partial(read, console.cluster, feed, query.reading, console.settings.preparation, query.wanted)
    console.start_stream(read_feed)
    return StreamingResponse(_events(request, console, feed, query, is_newest_first), media_type="text/event-stream")


async def _events(
    request: Request, console: Console, feed: Feed, query: RecordsQuery, is_newest_first: bool
) -> AsyncIterator[bytes]:
    """Rows as HTML, rendered by the template of the page, with the counts of all that was seen."""
    try:
        while not console.is_stopping:
            taken = feed.take()
            records = taken.records
            if is_newest_first:
                records.sort(key=lambda record: (record.timestamp_ms or 0, record.offset), reverse=True)
            rows = [row(record, query.form) for record in records]
            html = (
                console.renderer.fragment("record_rows.html", rows=rows, topic_name=query.reading.topic) if rows else ""
            )
            empty = _nothing_found(console, query, taken) if taken.is_done and not taken.matched else ""
            further = further_search(query.reading, taken.rest)
            address = f"?{urlencode({**query.fields, **further})}" if further else ""
            counts = {"seen": taken.seen, "matched": taken.matched, "skipped": taken.skipped, "total": taken.total}
            texts = {"failure": taken.failure, "notice": taken.notice}
            yield event(
                "rows",
                {
                    "html": html,
                    "empty": empty,
                    "further": address,
                    **texts,
                    "done": taken.is_done,
                    **counts,
                },
            )
            if taken.is_done or await request.is_disconnected():
                return
            await asyncio.sleep(POLL_S)
    finally:
        feed.stop()


def _nothing_found(console: Console, query: RecordsQuery, taken: Taken) -> str:
    return console.renderer.fragment(
        "records_empty.html",
        searched=taken.seen,
        failure=taken.failure,
        is_whole=query.reading.partition is None and query.reading.start in ("newest", "oldest"),
        whole=address_of_topic(query),
    )


async def export(request: Request) -> Response:
    console = console_of(request)
    query = query_of(request)
    chunks: feeds.Chunks = queue.Queue(maxsize=8)
    feed = Feed()
    prepare = console.settings.preparation
    console.start_stream(
        lambda: feeds.export(console.cluster, query.reading, prepare, query.wanted, chunks, lambda: feed.is_stopped)
    )
    headers = {"content-disposition": attachment(f"{query.reading.topic}.jsonl")}
    return StreamingResponse(_chunks(console, chunks, feed), media_type="application/x-ndjson", headers=headers)


async def _chunks(console: Console, chunks: feeds.Chunks, feed: Feed) -> AsyncIterator[bytes]:
    """AbortedResponse, so that the browser reports a failed download, unless all that was read has been sent."""
    try:
        while not console.is_stopping:
            try:
                chunk = chunks.get_nowait()
            except queue.Empty:
                await asyncio.sleep(0.02)
                continue
            if isinstance(chunk, feeds.ExportEnd):
                if chunk.failure:
                    raise AbortedResponse(f"export: {chunk.failure}")
                return
            yield chunk
        raise AbortedResponse("export: the console or the session has ended")
    finally:
        feed.stop()


ROUTES = [
    Route("/topics/{name}", show),
    Route("/topics/{name}/search", stream_search),
    Route("/topics/{name}/tail", stream_tail),
    Route("/topics/{name}/export", export),
]
