"""What a page may use: the cluster, its watch, threads for calls that block, and the settings of the console."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from odradek.console.cluster.pipelines import PipelineWatch
from odradek.console.cluster.rigs import RigWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from odradek.console.cluster.connection import Cluster
    from odradek.console.cluster.watch import ClusterWatch
    from odradek.console.rendering import Renderer
    from odradek.console.settings import ConsoleSettings

CALLS = 8  # that block at the same time; further ones wait
STREAMS = 12  # live tails, searches and exports at the same time; further ones are refused
CALL_TIMEOUT_S = 30.0

P = ParamSpec("P")
T = TypeVar("T")


class TooManyStreams(Exception):
    """All places for tails, searches and exports are taken."""


class Console:
    def __init__(self, settings: ConsoleSettings, cluster: Cluster, watch: ClusterWatch, renderer: Renderer) -> None:
        self.settings = settings
        self.cluster = cluster
        self.watch = watch
        self.renderer = renderer
        self.pipelines = PipelineWatch(cluster)  # these start with the first page that shows them
        self.rigs = RigWatch(cluster, settings.preparation)
        self.is_stopping = False
        self._calls = ThreadPoolExecutor(CALLS, "console-call")
        self._streams = ThreadPoolExecutor(STREAMS, "console-stream")
        self._running_streams = 0

    async def call(self, function: Callable[Concatenate[Cluster, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function that blocks on a thread, with the cluster as its first argument. TimeoutError after 30 s."""
        return await self.run(lambda: function(self.cluster, *arguments, **named))

    async def run(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await loop.run_in_executor(self._calls, function)

    def start_stream(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run a function that ends when its reader goes away; TooManyStreams when all places are taken."""
        if self._running_streams >= STREAMS:
            raise TooManyStreams
        self._running_streams += 1
        future = asyncio.get_running_loop().run_in_executor(self._streams, function)
        future.add_done_callback(self._end_stream)
        return future

    def _end_stream(self, future: asyncio.Future[Any]) -> None:
        self._running_streams -= 1
        if not future.cancelled():
            future.exception()  # a stream reports its failure to its reader

    def start(self) -> None:
        self.watch.start()

    def stop(self) -> None:
        self.is_stopping = True
        self.watch.stop()
        self.pipelines.stop()
        self.rigs.stop()
        self._calls.shutdown(wait=False, cancel_futures=True)
        self._streams.shutdown(wait=False, cancel_futures=True)


def console_of(request: Request) -> Console:
    return cast("Console", request.app.state.console)
