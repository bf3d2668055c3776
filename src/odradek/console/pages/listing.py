"""What several pages have in common: searches, numbers of pages, lists that may be denied, samples of charts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from starlette.responses import StreamingResponse

from odradek.console.context import console_of
from odradek.console.views.figures import FormError, parse_number
from odradek.console.views.overview import columns
from odradek.console.web.rendering import event
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.cluster.connection import Cluster
    from odradek.console.context import Console
    from odradek.console.models.history import Sample
    from odradek.console.views.overview import Chart

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_SEARCH = 200
LARGEST_PAGE_NUMBER = 1_000_000
POLL_S = 0.5
KEEP_ALIVE_POLLS = 30


def search_text(request: Request) -> str:
    return request.query_params.get("q", "")[:LONGEST_SEARCH]


def page_number(request: Request) -> int:
    """FormError unless the parameter is a whole number, or absent."""
    return parse_number(request.query_params.get("page", ""), "page", 1, LARGEST_PAGE_NUMBER, 1)


def parse_pairs(text: str, noun: str) -> list[tuple[str, str]]:
    """One `name=value` on each line; FormError for anything else."""
    pairs = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise FormError(f"{line[:60]!r} is not name=value; write one {noun} on each line")
        pairs.append((name.strip(), value.strip()))
    return pairs


async def list_or_denial(
    console: Console, empty: T, function: Callable[Concatenate[Cluster, P], T], *arguments: P.args, **named: P.kwargs
) -> tuple[T, str]:
    """The list with an empty message, or the empty list and why the cluster refused: the page shows the message."""
    try:
        return await console.call(function, *arguments, **named), ""
    except Failure as failure:
        return empty, failure.message


def stream_samples(
    request: Request, charts: Sequence[Chart], read: Callable[[int], tuple[Sequence[Sample], int]]
) -> Response:
    """The events from which a page draws its charts. `read` takes the number of samples that were sent, and returns the
    later ones and the number of all."""
    console = console_of(request)
    return StreamingResponse(
        console.update_page(_sample_events(request, console, charts, read)), media_type="text/event-stream"
    )


async def _sample_events(
    request: Request, console: Console, charts: Sequence[Chart], read: Callable[[int], tuple[Sequence[Sample], int]]
) -> AsyncIterator[bytes]:
    """The samples of the last hour at first, then each new one."""
    seen = silent = 0
    while not console.is_stopping and not await request.is_disconnected():
        samples, seen = read(seen)
        silent = 0 if samples else silent + 1
        if samples:
            yield event("samples", columns(samples, charts))
        elif silent >= KEEP_ALIVE_POLLS:
            silent = 0
            yield b": waiting\n\n"
        await asyncio.sleep(POLL_S)
