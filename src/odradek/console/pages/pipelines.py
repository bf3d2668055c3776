"""Pipelines that publish their status: the list, one with its graph and charts, and their dead letters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

from odradek.admin import letters as dead_letters
from odradek.console.cluster.records import Unreadable
from odradek.console.pages.requests import PageRequest, Routes, parse_positions, stream_samples
from odradek.console.records.record import Record
from odradek.console.views.figures import FormError
from odradek.console.views.pipelines import CHARTS, ListedLetter, choices, letter_row, pipeline_rows, pipeline_view
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from starlette.responses import Response

    from odradek.admin.cluster import Cluster
    from odradek.console.context import Console
    from odradek.console.models import KnownPipeline, Sample
    from odradek.console.views.pipelines import PipelineRow


SHOWN_LETTERS = 200
READ_LETTERS = 2_000  # the newest of all partitions, the same number of each
LEAST_OF_PARTITION = 20
READ_BYTES = 64 * 1024 * 1024
LONGEST_VALUE = 16 * 1024


class ListedLetters(NamedTuple):
    """The newest dead letters of a selection, newest first, of `found`. `notice` names unreadable batches."""

    letters: list[ListedLetter]
    found: int
    notice: str


def list_letters(cluster: Cluster, selection: dead_letters.Selection) -> ListedLetters:
    """Only so many records are read, and long values are cut: a dead letter may be as large as any record."""
    topic = selection.topic
    partitions = cluster.choose_partitions(topic, ())
    share = max(READ_LETTERS // len(partitions), LEAST_OF_PARTITION)
    since = {each: max(0, end - share) for each, end in cluster.latest_offsets(topic, partitions).items()}
    unreadable = Unreadable()
    ledger = dead_letters.read_ledger(cluster, topic, must_be_complete=False, on_unreadable=unreadable.add)
    newest: list[ListedLetter] = []
    found = size_bytes = 0
    for each in dead_letters.find_letters(cluster, selection, since=since, on_unreadable=unreadable.add):
        found += 1
        size_bytes += each.size_bytes
        short = each._replace(value=None if each.value is None else each.value[:LONGEST_VALUE])
        newest.append(ListedLetter(short, each.position in ledger))
        if len(newest) >= 2 * SHOWN_LETTERS:
            newest = _newest(newest)
        if size_bytes > READ_BYTES:
            break
    return ListedLetters(_newest(newest), found, unreadable.notice)


def _newest(letters: list[ListedLetter]) -> list[ListedLetter]:
    return nlargest(SHOWN_LETTERS, letters, key=lambda each: (each.found.timestamp_ms, each.found.position))


ROUTES = Routes("pipelines")
LETTER_FILTERS = ("pipeline", "step", "reason")
LONGEST_FILTER = 300


async def read_pipelines(
    console: Console, choose: Callable[[Iterable[KnownPipeline]], Iterable[KnownPipeline]] = iter
) -> list[PipelineRow]:
    await console.run(console.pipelines.wait_until_read)
    with console.pipelines.reading() as pipelines:
        return pipeline_rows(choose(pipelines.all()), time.time(), is_masked=console.settings.is_masked)


@ROUTES.page("/pipelines", "/pipelines/table")
async def show_list(request: PageRequest) -> Response:
    rows = await read_pipelines(request.console)
    template = "pipelines_table.html" if request.url.path.endswith("/table") else "pipelines.html"
    return request.render(template, rows=rows, trouble=request.console.pipelines.trouble)


@ROUTES.page("/pipeline", "/pipeline/panel")
async def show(request: PageRequest) -> Response:
    console = request.console
    snapshot = await request.snapshot()
    await console.run(console.pipelines.wait_until_read)
    with console.pipelines.reading() as pipelines:
        known = pipelines.get(request.query_params.get("key", ""))
        if known is None:
            raise HTTPException(404)
        view = pipeline_view(known, snapshot.topics, time.time(), is_masked=console.settings.is_masked)
    template = "pipeline_panel.html" if request.url.path.endswith("/panel") else "pipeline.html"
    return request.render(template, view=view, charts=CHARTS, trouble=console.pipelines.trouble)


@ROUTES.page("/events/pipeline")
async def stream(request: PageRequest) -> Response:
    key = request.query_params.get("key", "")

    def read(seen: int) -> tuple[Sequence[Sample], int]:
        with request.console.pipelines.reading() as pipelines:
            known = pipelines.get(key)
            return ([], seen) if known is None else (known.samples.since(seen), known.samples.count)

    return stream_samples(request, CHARTS, read)


def selection_of(request: PageRequest) -> dead_letters.Selection:
    topic = request.required("topic", "dead-letter topic")
    pipeline, step, reason = (request.query(name, LONGEST_FILTER) for name in LETTER_FILTERS)
    return dead_letters.Selection(topic, None, pipeline, step, reason)


def address_of(selection: dead_letters.Selection) -> str:
    fields = {"topic": selection.topic, **{name: getattr(selection, name) for name in LETTER_FILTERS}}
    return f"/dead-letters?{urlencode({name: value for name, value in fields.items() if value})}"


@ROUTES.page("/dead-letters")
async def show_letters(request: PageRequest) -> Response:
    selection, settings = selection_of(request), request.console.settings
    listed, total, passed_over = await request.console.call(list_letters, selection)
    shown = [settings.decode_and_mask(_record_of(each, selection.topic)) for each in listed]
    return request.render(
        "dead_letters.html",
        selection=selection,
        rows=[letter_row(*each, is_masked=settings.is_masked) for each in zip(listed, shown, strict=True)],
        total=total,
        passed_over=passed_over,
        choices=choices(listed),
    )


def _record_of(listed: ListedLetter, topic: str) -> Record:
    """The original record, as its topic's schema decodes it."""
    found = listed.found
    return Record(found.letter.source_topic or topic, *found.position, found.timestamp_ms, found.key, found.value)


@ROUTES.form("/dead-letters/preview", show_letters)
async def preview_redrive(request: PageRequest) -> Response:
    """What would be written: the selected letters, or all that the filter matches."""
    selection, form = selection_of(request), request.posted
    if not form.has("all"):
        selection = replace(selection, positions=frozenset(parse_positions(form.all("record"))))
    plan = await request.console.call(dead_letters.plan_redrive, selection, again=form.has("again"))
    bounds = {"ends": plan.ends} if selection.positions is None else {"records": form.all("record")}
    return request.render(
        "redrive.html",
        selection=selection,
        plan=plan,
        again=form.has("again"),
        bounds=json.dumps({**bounds, "count": plan.records}),
        back=address_of(selection),
    )


def _planned(selection: dead_letters.Selection, text: str) -> dead_letters.Selection:
    """The selection of a preview, which its form carries; FormError if it cannot be read."""
    try:
        bounds = json.loads(text)
        limit = min(int(bounds["count"]), dead_letters.MOST_LETTERS)
        if "records" in bounds:
            return replace(selection, positions=frozenset(parse_positions(bounds["records"])))
        ends = {int(partition): int(end) for partition, end in bounds["ends"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise FormError("the preview cannot be read; look at a new one") from None
    return replace(selection, ends=ends, limit=max(limit, 1))


@ROUTES.form("/dead-letters/redrive", show_letters)
async def redrive(request: PageRequest) -> Response:
    selection = selection_of(request)
    planned = _planned(selection, request.posted.text("bounds"))
    again = request.posted.has("again")

    def write(cluster: Cluster) -> dead_letters.Redrive:
        """On a thread: the change is logged even if the page does not wait for it."""
        done = dead_letters.redrive(cluster, planned, again=again)
        if done.records:
            request.log(f"wrote {done.records} dead letters of {planned.topic} back ({_targets(done)})")
        return done

    done = await request.change(f"write dead letters of {selection.topic} back", write)
    notice = "Nothing was written back."
    if done.records:
        notice = f"Wrote {count_text(done.records, 'dead letter')} back: {_targets(done)}."
    return request.redirect(address_of(selection), notice)


def _targets(done: dead_letters.Redrive) -> str:
    return ", ".join(f"{count:,} to {topic}" for topic, count in done.topics.most_common())
