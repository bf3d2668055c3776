"""Records of a topic: a page of them, a single one, a search, a live tail, an export, and the forms that write."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from odradek.console.cluster import feeds
from odradek.console.cluster import records as source
from odradek.console.cluster.connection import NotAuthorized
from odradek.console.cluster.feeds import Feed, Taken
from odradek.console.cluster.records import NewRecord, PageRead, Reading, joined
from odradek.console.pages.requests import Form, PageRequest, Routes, event_stream, parse_positions, topic_path
from odradek.console.pages.topics import checked_name, find_topic
from odradek.console.records.json_path import PathError
from odradek.console.records.record import Record, RecordFilter, json_line, parse_filter
from odradek.console.views import records as views
from odradek.console.views.figures import FormError, parse_number
from odradek.console.web.rendering import event
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX, count_text, parse_time_ms

ROUTES = Routes("topics")
STARTS = {"newest": "newest", "oldest": "oldest", "offset": "offset", "before": "before offset", "time": "time"}
LIMITS = (25, 50, 100, 200)
POLL_S = 0.3
LARGEST_TEXT = 1_000
RANGE_FIELDS = ("start", "at", "partition", "order")
PRODUCE_FIELDS = ("key", "value", "headers", "partition")


class RecordsQuery(NamedTuple):
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
    return RecordsQuery(reading, wanted, form if form in views.FORMATS else "auto", fields, is_newest_first)


def parse_offsets(text: str) -> tuple[int, dict[int, int]]:
    """One offset for all partitions, or offsets by partition. FormError for anything else."""
    if ":" not in text:
        return parse_number(text, "offset", 0, INT64_MAX), {}
    pairs = [each.partition(":") for each in text.split(",")]
    if len(pairs) > views.MOST_OFFSETS:
        raise FormError(f"offset: at most {views.MOST_OFFSETS} partitions can be named")
    return 0, {
        parse_number(partition.strip(), "partition", 0, INT32_MAX): parse_number(offset.strip(), "offset", 0, INT64_MAX)
        for partition, _colon, offset in pairs
    }


def query_of(request: PageRequest) -> RecordsQuery:
    return parse_records_query(checked_name(request), request.query_params, int(time.time() * 1000))


@ROUTES.page("/topics/{name:topic}")
async def show(request: PageRequest) -> Response:
    """With a filter the browser requests the stream of a search. The form is that of a record that was refused."""
    console, form = request.console, request.posted
    snapshot, topic = await find_topic(request)
    status, is_failed, page = None, False, PageRead([])
    try:
        query = query_of(request)
        if not query.wanted.is_active:
            page = await console.call(source.read_page, query.reading)
    except (FormError, Failure) as failure:
        status = 403 if isinstance(failure, NotAuthorized) else None
        request.error = request.error or str(failure)
        is_failed = True
        query = parse_records_query(topic.name, {}, 0)
    decode_and_mask = console.settings.decode_and_mask
    records = page.records if query.is_newest_first == query.reading.is_backward else page.records[::-1]
    rows = []
    if records:
        rows = await console.run(lambda: [views.row(decode_and_mask(record), query.form) for record in records])
    return request.render(
        "records.html",
        status,
        topic=topic,
        query=query,
        fields=request.query_params,
        reading=query.reading,
        whole=address_of_topic(query),
        searched=None,
        rows=rows,
        page_notice=joined(page.notice, page.uncommitted),
        starts=STARTS,
        is_search=query.wanted.is_active,
        is_failed=is_failed,
        links=views.page_links(
            query.reading,
            page,
            {each: snapshot.starts.get((topic.name, each), 0) for each in page.began},
            {each: snapshot.ends.get((topic.name, each), 0) for each in page.began},
            is_newest_first=query.is_newest_first,
        ),
        limits=LIMITS,
        formats=views.FORMATS,
        command=views.consume_command(console.cluster.bootstrap_servers, query.reading, query.wanted, rows),
        masks=decode_and_mask.masks,
        filled={field: form.raw(field) for field in PRODUCE_FIELDS if form.has(field)},
    )


def address_of_topic(query: RecordsQuery) -> str:
    """The page of the newest records of all partitions, with the same filter."""
    kept = {name: text for name, text in query.fields.items() if text and name not in RANGE_FIELDS}
    return topic_path(query.reading.topic, f"{'?' if kept else ''}{urlencode(kept)}")


def attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{re.sub("[^A-Za-z0-9._-]", "_", name)}"'}


@ROUTES.page("/topics/{name:topic}/search")
async def stream_search(request: PageRequest) -> Response:
    return _stream(request, feeds.search, Feed(feeds.MOST_MATCHES), is_newest_first=False)


@ROUTES.page("/topics/{name:topic}/tail")
async def stream_tail(request: PageRequest) -> Response:
    return _stream(request, feeds.tail, Feed(), is_newest_first=True)


def _stream(request: PageRequest, read: Callable[..., None], feed: Feed, *, is_newest_first: bool) -> Response:
    console, query = request.console, query_of(request)
    read_feed = partial(read, console.cluster, feed, query.reading, console.settings.decode_and_mask, query.wanted)
    console.start_stream(read_feed)
    return event_stream(_events(request, feed, query, is_newest_first))


async def _events(request: PageRequest, feed: Feed, query: RecordsQuery, is_newest_first: bool) -> AsyncIterator[bytes]:
    """Rows as HTML, rendered by the template of the page, with the counts of all that was seen."""
    try:
        while not request.console.is_stopping:
            taken = feed.take()
            records = taken.records
            if is_newest_first:
                records.sort(key=lambda record: (record.timestamp_ms or 0, record.offset), reverse=True)
            rows = [views.row(record, query.form) for record in records]
            further = views.further_search(query.reading, taken.rest)
            shown = {
                "html": request.fragment("record_rows.html", rows=rows, topic_name=query.reading.topic) if rows else "",
                "empty": _nothing_found(request, query, taken) if taken.is_done and not taken.matched else "",
                "further": f"?{urlencode({**query.fields, **further})}" if further else "",
                "done": taken.is_done,
            }
            counts = {name: getattr(taken, name) for name in ("seen", "matched", "skipped", "total")}
            yield event("rows", {**shown, **counts, "failure": taken.failure, "notice": taken.notice})
            if taken.is_done or await request.is_disconnected():
                return
            await request.console.pause(POLL_S)
    finally:
        feed.stop()


def _nothing_found(request: PageRequest, query: RecordsQuery, taken: Taken) -> str:
    return request.fragment(
        "records_empty.html",
        searched=taken.seen,
        failure=taken.failure,
        is_whole=query.reading.partition is None and query.reading.start in ("newest", "oldest"),
        whole=address_of_topic(query),
    )


@ROUTES.page("/topics/{name:topic}/export")
async def export(request: PageRequest) -> Response:
    console, query, feed = request.console, query_of(request), Feed()
    decode_and_mask = console.settings.decode_and_mask
    chunks = feeds.export(console.cluster, query.reading, decode_and_mask, query.wanted, lambda: feed.is_stopped)
    headers = attachment(f"{query.reading.topic}.jsonl")
    return StreamingResponse(console.stream(chunks, feed.stop), media_type="application/x-ndjson", headers=headers)


def new_record(form: Form) -> NewRecord:
    """FormError for headers that are not name=value. An empty key is no key; `null` of the form makes a null value."""
    key, value = form.raw("key").encode(), None if form.has("null") else form.raw("value").encode()
    headers = tuple((name, text.encode()) for name, text in form.pairs("headers", "header"))
    return NewRecord(key or None, value, headers, form.number("partition", 0, INT32_MAX, source.CHOSEN_BY_KEY))


@ROUTES.form("/topics/{name:topic}", show)
async def produce(request: PageRequest) -> Response:
    name = request.path_params["name"]
    records = [new_record(request.posted)]
    (written,) = await request.change(f"write a record to {name}", source.write_records, name, records)
    await request.look_again()  # so that the page counts it
    notice = f"Wrote a record to partition {written.partition} at offset {written.offset}."
    return request.redirect(topic_path(name), notice)


@ROUTES.form("/topics/{name:topic}/replay", show)
async def replay_selection(request: PageRequest) -> Response:
    name, target = request.path_params["name"], request.posted.text("target")
    if not target:
        raise FormError("name the topic that the records go to")
    positions = parse_positions(request.posted.all("record"))
    change = f"copy {count_text(len(positions), 'record')} of {name} to {target}"
    count = await request.change(change, source.replay, name, positions, target)
    await request.look_again()
    return request.redirect(topic_path(target), f"Copied {count_text(count, 'record')} of {name} to {target}.")


PARTS: Mapping[str, Callable[[Record], bytes | None]] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "json": json_line,
}


def record_address(request: PageRequest) -> views.RecordAddress:
    """FormError without a partition and an offset."""
    fields = request.query_params
    form = fields.get("format", "auto")
    return views.RecordAddress(
        checked_name(request),
        parse_number(fields.get("partition", ""), "partition", 0, INT32_MAX),
        parse_number(fields.get("offset", ""), "offset", 0, INT64_MAX),
        form if form in views.FORMATS else "auto",
    )


async def read_prepared(request: PageRequest, at: views.RecordAddress) -> Record:
    console = request.console
    record = await console.call(source.read_record, at.topic, at.partition, at.offset)
    return await console.run(lambda: console.settings.decode_and_mask(record))


@ROUTES.page("/topics/{name:topic}/record")
async def show_record(request: PageRequest) -> Response:
    console = request.console
    at = record_address(request)
    record = await read_prepared(request, at)
    view = await console.run(lambda: views.detail(record, at.form))
    template = "record.html" if request.headers.get("hx-request") == "true" else "record_page.html"
    return request.render(template, view=view, formats=views.FORMATS, at=at)


@ROUTES.page("/topics/{name:topic}/record/previous", "/topics/{name:topic}/record/next")
async def step(request: PageRequest) -> Response:
    """To the previous or the next record of the partition: some offsets have none."""
    console = request.console
    is_forward = request.url.path.endswith("/next")
    at = record_address(request)
    start, word = ("offset", "after") if is_forward else ("before", "before")
    reading = Reading(at.topic, at.partition, start, limit=1, offsets={at.partition: at.offset + is_forward})
    page = await console.call(source.read_page, reading)
    for record in page.records:
        return request.redirect(at._replace(offset=record.offset).address(), page.notice)
    missing = f"There is no record {word} offset {at.offset} of partition {at.partition}."
    return request.redirect(at.address(), joined(missing, page.notice))


@ROUTES.page(*(f"/topics/{{name}}/record/{part}" for part in PARTS))
async def download_record(request: PageRequest) -> Response:
    """The value, the key, or the line of an export: decoded and masked as the page shows it, whole."""
    part = request.url.path.rpartition("/")[2]
    at = record_address(request)
    record = await read_prepared(request, at)
    headers = attachment(f"{at.topic}-{at.partition}-{at.offset}.{part}")
    return Response(PARTS[part](record) or b"", headers=headers, media_type="application/octet-stream")
