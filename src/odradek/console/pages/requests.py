"""The requests to pages: what they ask for, forms within bounds, what forms change, and streams of samples.

The token of a form is checked before anything is read from it, and each change is logged with its outcome, those that
fail or time out included.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qs, quote

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from odradek.console import context
from odradek.console.context import Console, console_of
from odradek.console.views.figures import FormError, Page, page_of, parse_number
from odradek.console.views.overview import Chart, columns
from odradek.console.web.rendering import event, renderer_of
from odradek.console.web.safety import TOKEN_FIELD, TOKEN_HEADER
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from concurrent.futures import Future

    from odradek.console.cluster.connection import Cluster
    from odradek.console.cluster.snapshot import Snapshot
    from odradek.console.models import Sample

LARGEST_BODY_BYTES = 2 * 1024 * 1024
LARGEST_FIELDS = 2_000
MOST_POSITIONS = 500
MOST_PLANNED = 10_000
LONGEST_SEARCH = 200
LARGEST_PAGE_NUMBER = 1_000_000
POLL_S = 0.5
KEEP_ALIVE_POLLS = 30
AUDIT = logging.getLogger("odradek.console.audit")

P = ParamSpec("P")
T = TypeVar("T")


class Forbidden(Exception):
    """A form without the token of the browser's session."""


class Form:
    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        values = self._fields.get(name)
        return values[-1].strip() if values else default

    def raw(self, name: str) -> str:
        """The text as it was entered, with line breaks as LF."""
        return self._fields.get(name, [""])[-1].replace("\r\n", "\n")

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._fields

    def number(self, name: str, least: int, most: int, default: int | None = None) -> int:
        return parse_number(self.text(name), name, least, most, default)

    def pairs(self, name: str, noun: str) -> list[tuple[str, str]]:
        """One `name=value` on each line; FormError for anything else."""
        pairs = [line.partition("=") for line in filter(None, map(str.strip, self.raw(name).splitlines()))]
        for key, equals, value in pairs:
            if not equals or not key.strip():
                line = f"{key}{equals}{value}"
                raise FormError(f"{line[:60]!r} is not name=value; write one {noun} on each line")
        return [(key.strip(), value.strip()) for key, _, value in pairs]

    def plan(self, parse_row: Callable[..., T]) -> list[T]:
        """The rows of a preview, which its form carries."""
        try:
            rows = [parse_row(*row) for row in json.loads(self.text("plan"))]
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise FormError("the preview cannot be read; look at a new one") from None
        if not 0 < len(rows) <= MOST_PLANNED:
            raise FormError("the preview is empty or too long; look at a new one")
        return rows

    def confirm(self, name: str, what: str, done: str) -> None:
        """FormError unless the name was typed."""
        if self.text("confirmation") != name.strip():
            raise FormError(f"nothing was {done}: type the {what}, {name}, to confirm")


def parse_positions(texts: list[str]) -> list[tuple[int, int]]:
    """`partition:offset` of each selected record."""
    if not 0 < len(texts) <= MOST_POSITIONS:
        raise FormError(f"select 1 to {MOST_POSITIONS} records")
    pairs = [text.partition(":") for text in texts]
    return [
        (parse_number(partition, "record", 0, INT32_MAX), parse_number(offset, "record", 0, INT64_MAX))
        for partition, _, offset in pairs
    ]


class PageRequest(Request):
    """`posted` is the form that was sent, and `error` says why it was refused."""

    section = ""
    posted = Form({})
    error = ""

    @property
    def console(self) -> Console:
        return console_of(self)

    @property
    def search(self) -> str:
        return self.query("q", LONGEST_SEARCH)

    def query(self, name: str, longest: int) -> str:
        return self.query_params.get(name, "")[:longest]

    def required(self, name: str, noun: str) -> str:
        """FormError without the parameter."""
        text = self.query_params.get(name, "")
        if not text:
            raise FormError(f"name a {noun}")
        return text

    def page_of(self, rows: Sequence[T]) -> Page[T]:
        """The page of a long list that the request asks for. FormError for a number that is none."""
        number = parse_number(self.query_params.get("page", ""), "page", 1, LARGEST_PAGE_NUMBER, 1)
        return page_of(rows, number)

    async def snapshot(self) -> Snapshot:
        return await self.console.run(self.console.watch.snapshot)

    async def look_again(self) -> Snapshot:
        """A snapshot that shows a change."""
        return await self.console.run(self.console.watch.look_again)

    async def list_or_denial(
        self, function: Callable[Concatenate[Cluster, P], T], *arguments: P.args, **named: P.kwargs
    ) -> tuple[T | None, str]:
        """The list with an empty message, or None and why the cluster refused: the page shows the message."""
        try:
            return await self.console.call(function, *arguments, **named), ""
        except Failure as failure:
            return None, failure.message

    async def read_form(self) -> Form:
        """The form of a change; Forbidden without the token that the console's own pages carry."""
        self.posted = await _read_form(self)
        token = self.posted.text(TOKEN_FIELD) or self.headers.get(TOKEN_HEADER, "")
        expected: str = self.app.state.tokens.token_of(self.state.session)
        if not hmac.compare_digest(token.encode(), expected.encode()):
            raise Forbidden("the form has no valid token; reload the page and try again")
        return self.posted

    async def change(
        self, change: str, function: Callable[Concatenate[Cluster, P], T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Call a function that changes the cluster, and log the change with its outcome. A change that is not answered
        in time may happen later: then a second line has its outcome."""

        def log_late(future: Future[Any]) -> None:
            self.log(f"{change}: {_outcome(future)}, after the page had been answered")

        try:
            result: T = await self.console.run(lambda: function(self.console.cluster, *arguments, **named), log_late)
        except Failure as failure:
            self.log(f"{change}: failed: {failure.message}")
            raise
        except TimeoutError:
            self.log(f"{change}: unknown: no answer within {context.CALL_TIMEOUT_S:g} s")
            raise
        except BaseException as error:
            self.log(f"{change}: unknown: {type(error).__name__}")
            raise
        self.log(f"{change}: done")
        return result

    def log(self, change: str) -> None:
        """One line: the client's address, the user if there is a login, and the change."""
        user = getattr(self.state, "user", "")
        text = f"{client_address(self)}{' ' if user else ''}{user}: {change}"
        AUDIT.info("%s", text.encode("unicode_escape").decode())

    def render(self, template: str, status: int | None = None, **values: Any) -> Response:
        always = {"section": self.section, "form": self.posted, "error": self.error, "search": self.search}
        return renderer_of(self).page(self, template, status, **always, **values)

    def fragment(self, template: str, **values: Any) -> str:
        return renderer_of(self).fragment(template, **values)

    def redirect(self, location: str, notice: str = "") -> Response:
        return renderer_of(self).redirect(location, notice)


def topic_path(name: str, page: str = "") -> str:
    """The path of a page about a topic."""
    return f"/topics/{quote(name, safe='')}{page}"


class _TopicName(Convertor[str]):
    """A topic in a path, such as `{name:topic}`. The name of one in a stream, /plant/pumps:warning, has slashes, which
    servers decode before they look for the page, and of which proxies may merge the first with the one before it."""

    regex = "(?:/?[^:/]+(?:/[^:/]+)*:)?[^/]+"

    def convert(self, value: str) -> str:
        return f"/{value}" if ":" in value and not value.startswith("/") else value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("topic", _TopicName())

H = TypeVar("H", bound=Callable[..., Awaitable[Response]])


class Routes(list[Route]):
    """The routes of a section, each declared at its function, which takes a PageRequest."""

    def __init__(self, section: str = "") -> None:
        super().__init__()
        self._section = section

    def page(self, *paths: str, method: str = "GET") -> Callable[[H], H]:
        def add(handle: H) -> H:
            async def respond(request: Request) -> Response:
                given = PageRequest(request.scope, request.receive)
                given.section = self._section
                return await handle(given)

            self.extend(Route(path, respond, methods=[method]) for path in paths)
            return handle

        return add

    def form(self, path: str, show: Callable[[PageRequest], Awaitable[Response]]) -> Callable[[H], H]:
        """Decorates a function that handles a form, once its token is checked. If it raises a Failure or a FormError,
        the page of the form is shown again, with the message."""

        def decorate(handle: H) -> H:
            async def respond(request: PageRequest) -> Response:
                await request.read_form()
                try:
                    return await handle(request)
                except (Failure, FormError) as problem:
                    request.error = str(problem)
                    return await show(request)

            self.page(path, method="POST")(respond)
            return handle

        return decorate


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


def _outcome(future: Future[Any]) -> str:
    if future.cancelled():
        return "not begun"
    error = future.exception()
    if error is None:
        return "done"
    return f"failed: {error.message if isinstance(error, Failure) else type(error).__name__}"


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


def stream_samples(
    request: PageRequest, charts: Sequence[Chart], read: Callable[[int], tuple[Sequence[Sample], int]]
) -> Response:
    """The events from which a page draws its charts: the samples of the last hour at first, then each new one. `read`
    takes the number of samples that were sent, and returns the later ones and the number of all."""
    console = request.console

    async def events() -> AsyncIterator[bytes]:
        seen = silent = 0
        while not console.is_stopping and not await request.is_disconnected():
            samples, seen = read(seen)
            silent = 0 if samples else silent + 1
            if samples:
                yield event("samples", columns(samples, charts))
            elif silent >= KEEP_ALIVE_POLLS:
                silent = 0
                yield b": waiting\n\n"
            await console.pause(POLL_S)

    return event_stream(console.update_page(events()))


def event_stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream")
