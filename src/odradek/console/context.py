"""The objects that a page uses: the cluster, its watch, threads for calls that block, and the settings."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from odradek.console.cluster.connection import Cluster, NotAuthorized, trouble_of
from odradek.console.cluster.topic_watches import ExampleWatch, PipelineWatch, example_views
from odradek.console.web.safety import AbortedResponse
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from starlette.requests import Request

    from odradek.console.cluster.watch import ClusterWatch
    from odradek.console.settings import ConsoleSettings

CALLS = 8  # that block at the same time; further ones wait
STREAMS = 12  # live tails, searches and exports at the same time; further ones are refused
RENEWALS = 2  # of tokens at the same time: a provider that does not answer takes no threads of pages
STREAMS_OF_SESSION = 6  # of these, so that one user leaves some to the others
PAGE_STREAMS = 100  # of pages that update themselves: half of all connections
PAGE_STREAMS_OF_SESSION = 20
CALL_TIMEOUT_S = 30.0
TOO_MANY_STREAMS = f"{STREAMS} tails, searches and exports are running; close one of them, and try again"
TOO_MANY_PAGES = "too many pages are open; close one of them, and try again"

P = ParamSpec("P")
T = TypeVar("T")


class TooManyStreams(Exception):
    """The console runs as many tails, searches and exports, or updates as many pages, as it allows."""


class Slots:
    """Limits what runs at the same time: of one session, and of all sessions, which share `total`."""

    def __init__(self, most: int, refusal: str, total: Slots | None = None) -> None:
        self._most = most
        self._refusal = refusal
        self._total = total
        self._running = 0

    def check(self) -> None:
        """TooManyStreams if as many run as are allowed."""
        if self._total is not None:
            self._total.check()
        if self._running >= self._most:
            raise TooManyStreams(self._refusal)

    def count(self, change: int) -> None:
        self._running += change
        if self._total is not None:
            self._total.count(change)


class Threads:
    """The threads of the process: all users share them."""

    def __init__(self) -> None:
        self.calls = ThreadPoolExecutor(CALLS, "console-call")
        self.streams = ThreadPoolExecutor(STREAMS, "console-stream")
        self.renewals = ThreadPoolExecutor(RENEWALS, "console-renewal")
        self.stream_slots = Slots(STREAMS, TOO_MANY_STREAMS)
        self.page_slots = Slots(PAGE_STREAMS, TOO_MANY_PAGES)
        self.is_stopping = False
        self.begins_stop = asyncio.Event()  # as `is_stopping`, for the event loop

    def begin_stop(self) -> None:
        """Streams and readings of records end; threads accept what else pages that are being made need."""
        self.is_stopping = True
        self.begins_stop.set()

    def stop(self) -> None:
        self.is_stopping = True
        for pool in (self.calls, self.streams, self.renewals):
            pool.shutdown(wait=False, cancel_futures=True)


class Console:
    """The console of one session: everything that it reads and changes goes over the connections of its cluster, which
    are those of its user. Without a login there is one for all browsers."""

    def __init__(
        self, settings: ConsoleSettings, cluster: Cluster, watch: ClusterWatch, threads: Threads | None = None,
        most_streams: int = STREAMS,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.cluster = cluster
        self.watch = watch
        self.pipelines = PipelineWatch(cluster)  # these start with the first page that shows them
        self._examples: Mapping[str, ExampleWatch] = {}
        self._threads = threads or Threads()
        # Without a login all browsers share this console.
        most_pages = PAGE_STREAMS if settings.login is None else PAGE_STREAMS_OF_SESSION
        self._stream_slots = Slots(most_streams, TOO_MANY_STREAMS, self._threads.stream_slots)
        self._page_slots = Slots(most_pages, TOO_MANY_PAGES, self._threads.page_slots)
        self._is_closed = False
        cluster.is_stopped = lambda: self._threads.is_stopping  # sessions of a user share it

    def for_another_session(self) -> Console:
        """The console of another session of the same user, with the same connections and watches."""
        console = Console(self.settings, self.cluster, self.watch, self._threads, STREAMS_OF_SESSION)
        console.pipelines, console._examples = self.pipelines, self.examples
        return console

    @property
    def examples(self) -> Mapping[str, ExampleWatch]:
        """A watch for each example that declares a page."""
        if not self._examples:
            self._examples = {
                name: ExampleWatch(self.cluster, self.settings.decode_and_mask, name, view)
                for name, view in example_views().items()
            }
        return self._examples

    @property
    def is_stopping(self) -> bool:
        """Streams end when this is true."""
        return self._is_closed or self._threads.is_stopping

    async def pause(self, seconds: float) -> None:
        """Between two events of a stream; ends early when the console stops."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._threads.begins_stop.wait()

    async def call(self, function: Callable[Concatenate[Cluster, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function that blocks on a thread, with the cluster as its first argument. TimeoutError after 30 s."""
        return await self.run(lambda: function(self.cluster, *arguments, **named))

    async def run(self, function: Callable[[], T], on_late_end: Callable[[Future[T]], None] | None = None) -> T:
        """After a TimeoutError, `on_late_end` gets the outcome of a function that has begun, on its thread."""
        future = self._threads.calls.submit(function)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return await asyncio.shield(asyncio.wrap_future(future))
        except NotAuthorized as refusal:
            raise NotAuthorized(trouble_of(refusal)) from None
        except (TimeoutError, asyncio.CancelledError):
            if not future.cancel() and on_late_end is not None:
                future.add_done_callback(on_late_end)
            raise

    def start_stream(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run a function that ends when its reader goes away; TooManyStreams when as many run as are allowed."""
        self._stream_slots.check()
        self._stream_slots.count(1)
        future = asyncio.get_running_loop().run_in_executor(self._threads.streams, function)

        def end(future: asyncio.Future[Any]) -> None:
            self._stream_slots.count(-1)
            if not future.cancelled():
                future.exception()  # a stream reports its failure to its reader

        future.add_done_callback(end)
        return future

    def stream(self, chunks: Iterator[bytes], on_end: Callable[[], None]) -> AsyncIterator[bytes]:
        """What a generator that blocks yields, each step on a thread. TooManyStreams when too many run."""
        self._stream_slots.check()
        return _counted(self._stream_slots, self._stream(chunks, on_end))

    async def _stream(self, chunks: Iterator[bytes], on_end: Callable[[], None]) -> AsyncIterator[bytes]:
        """AbortedResponse, so that the browser reports a failed download, unless all that was read has been sent."""
        loop = asyncio.get_running_loop()
        try:
            while not self.is_stopping:
                chunk = await loop.run_in_executor(self._threads.streams, next, chunks, None)
                if chunk is None:
                    return
                yield chunk
        except Failure as failure:
            raise AbortedResponse(failure.message) from None
        finally:
            on_end()
        raise AbortedResponse("the console or the session has ended")

    def update_page(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same events, of a page that updates itself; TooManyStreams when as many run as are allowed."""
        self._page_slots.check()
        return _counted(self._page_slots, events)

    def close(self) -> None:
        """End the streams of this session."""
        self._is_closed = True

    def stop_watches(self, *, wait: bool = True) -> None:
        """Call it when the last session of the user has ended."""
        self.watch.stop(wait=wait)
        self.pipelines.stop()
        for each in self._examples.values():
            each.stop()


async def _counted(slots: Slots, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    slots.count(1)
    try:
        async for each in events:
            yield each
    finally:
        slots.count(-1)


def console_of(request: Request) -> Console:
    """The console of the request's session, or the one of a console without a login."""
    own: Console | None = getattr(request.state, "console", None)
    return own if own is not None else cast("Console", request.app.state.console)


def has_console(request: Request) -> bool:
    """Whether the request has a session, or there is no login."""
    return getattr(request.state, "console", None) is not None or request.app.state.console is not None
