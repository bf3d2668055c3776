"""Routes, and what pages read from requests: searches, page numbers, forms within bounds; what forms change; and
streams of samples.

The token of a form is checked before anything is read from it, and each change is logged with its outcome, those that
fail or time out included.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from odradek.console import context
from odradek.console.context import console_of
from odradek.console.views.figures import FormError, parse_number
from odradek.console.views.overview import columns
from odradek.console.web.rendering import event
from odradek.console.web.safety import TOKEN_FIELD, TOKEN_HEADER
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from concurrent.futures import Future
    from typing import Any

    from odradek.console.cluster.connection import Cluster
    from odradek.console.context import Console
    from odradek.console.models import Sample
    from odradek.console.views.overview import Chart

LARGEST_BODY_BYTES = 2 * 1024 * 1024
LARGEST_FIELDS = 2_000
MOST_POSITIONS = 500
AUDIT = logging.getLogger("odradek.console.audit")

P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., Awaitable[Response]])


class Forbidden(Exception):
    """A form without the token of the browser's session."""


class Form:
    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        values = self._fields.get(name)
        return values[-1].strip() if values else default

    def raw(self, name: str) -> str | None:
        """The text as it was entered, with line breaks as LF; None without the field."""
        values = self._fields.get(name)
        return values[-1].replace("\r\n", "\n") if values else None

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._fields

    def number(self, name: str, least: int, most: int, default: int | None = None) -> int:
        return parse_number(self.text(name), name, least, most, default)


NO_FORM = Form({})
ShowForm = Callable[[Request, Form, str], Awaitable[Response]]
Handle = Callable[[Request], Awaitable[Response]]
HandleForm = Callable[[Request, Form], Awaitable[Response]]


class Routes(list[Route]):
    """The routes of a section, each declared at its function."""

    def page(self, *paths: str, method: str = "GET") -> Callable[[H], H]:
        def add(handle: H) -> H:
            self.extend(Route(path, handle, methods=[method]) for path in paths)
            return handle

        return add

    def form(self, path: str, show: ShowForm) -> Callable[[HandleForm], Handle]:
        """Decorates a function that handles a form, once its token is checked. If it raises a Failure or a FormError,
        the page of the form is shown again, with the message."""

        def decorate(handle: HandleForm) -> Handle:
            @functools.wraps(handle)
            async def respond(request: Request) -> Response:
                form = await checked_form(request)
                try:
                    return await handle(request, form)
                except (Failure, FormError) as problem:
                    return await show(request, form, str(problem))

            return self.page(path, method="POST")(respond)

        return decorate


async def checked_form(request: Request) -> Form:
    """The form of a change; Forbidden without the token that the console's own pages carry."""
    form = await _read_form(request)
    token = form.text(TOKEN_FIELD) or request.headers.get(TOKEN_HEADER, "")
    expected: str = request.app.state.tokens.token_of(request.state.session)
    if not hmac.compare_digest(token.encode(), expected.encode()):
        raise Forbidden("the form has no valid token; reload the page and try again")
    return form


async def _read_form(request: Request) -> Form:
    """FormError for a body that is too large, not URL-encoded or cut off."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_BODY_BYTES:
                raise FormError(f"the form is larger than {LARGEST_BODY_BYTES:,} bytes")
    except ClientDisconnect:  # or it took too long (`server`)
        raise FormError("the form is not complete") from None
    try:
        return Form(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=LARGEST_FIELDS, errors="strict"))
    except ValueError:
        raise FormError("the form is not UTF-8, or has too many fields") from None


def parse_positions(texts: list[str]) -> list[tuple[int, int]]:
    """`partition:offset` of each selected record."""
    if not 0 < len(texts) <= MOST_POSITIONS:
        raise FormError(f"select 1 to {MOST_POSITIONS} records")
    pairs = [text.partition(":") for text in texts]
    return [
        (parse_number(partition, "record", 0, INT32_MAX), parse_number(offset, "record", 0, INT64_MAX))
        for partition, _, offset in pairs
    ]


async def make_change(
    request: Request,
    change: str,
    function: Callable[Concatenate[Cluster, P], T],
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Call a function that changes the cluster, and log the change with its outcome. A change that is not answered in
    time may happen later: then a second line has its outcome."""

    def log_late(future: Future[Any]) -> None:
        log_change(request, f"{change}: {_outcome(future)}, after the page had been answered")

    try:
        result = await console_of(request).call_with(log_late, function, *arguments, **named)
    except Failure as failure:
        log_change(request, f"{change}: failed: {failure.message}")
        raise
    except TimeoutError:
        log_change(request, f"{change}: unknown: no answer within {context.CALL_TIMEOUT_S:g} s")
        raise
    except BaseException as error:
        log_change(request, f"{change}: unknown: {type(error).__name__}")
        raise
    log_change(request, f"{change}: done")
    return result


def _outcome(future: Future[Any]) -> str:
    if future.cancelled():
        return "not begun"
    error = future.exception()
    if error is None:
        return "done"
    return f"failed: {error.message if isinstance(error, Failure) else type(error).__name__}"


def log_change(request: Request, change: str) -> None:
    """One line: the client's address, the user if there is a login, and the change."""
    client = client_address(request)
    user = getattr(request.state, "user", "")
    text = f"{client} {user}: {change}" if user else f"{client}: {change}"
    AUDIT.info("%s", text.encode("unicode_escape").decode())


def client_address(request: Request) -> str:
    """The peer's address; behind a proxy the one that the proxy has appended last, in whichever line. A text that is
    no address is not used: the limit of an address would not hold for it."""
    if request.app.state.settings.is_behind_proxy:
        last = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        with_port = re.fullmatch(r"\[(.+)\](?::\d+)?|([\d.]+):\d+", last)
        host = last if with_port is None else with_port[1] or with_port[2]
        with contextlib.suppress(ValueError):
            return str(ipaddress.ip_address(host))
    return request.client.host if request.client is not None else "unknown"


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
