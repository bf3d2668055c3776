"""Long work in a process of its own, at low priority: a thread would share the interpreter lock with the event loop.

The process starts when it is first needed and ends with the broker, also when the broker is killed: it reads its
requests from a pipe, which the operating system closes when the broker ends."""

import asyncio
import pickle
import struct
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from odradek.conventions.dataclass import dataclass
from odradek.host.disk import Disk

T = TypeVar("T")
Arguments = ParamSpec("Arguments")

FRAME = struct.Struct(">BI")
ITEM, END, FAILURE, PROGRESS = range(4)
STALLED_S = 300.0
"""Work that reports no progress for so long waits for a disk that hangs, and is given up."""
KILLED_S = 5.0  # a killed process that waits for such a disk ends later


@dataclass(frozen=True, slots=True)
class BackgroundContext:
    """The part of the host that background work may use. Everything blocks."""

    disk: Disk
    monotonic_ms: Callable[[], float]
    pause_ms: Callable[[float], None]
    report_progress: Callable[[], None] = lambda: None
    """Work that takes long calls it at intervals far below STALLED_S."""


class Background(Protocol):
    def stream(
        self,
        work: Callable[Concatenate[BackgroundContext, Arguments], Iterator[T]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> AsyncGenerator[T, None]:
        """The items that the work yields, as they come. One work at a time. Its exceptions are raised here, and
        BackgroundEnded when its process ended. To stop the work early, close the iterator."""

    async def close(self) -> None:
        """End the running work, and return when it has ended."""


class BackgroundEnded(Exception):
    """The process ended before its work was done, or could not be started."""


class BackgroundProcess:
    """Starts this interpreter again with `odradek.host.background_main`; requests and answers are pickled."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def stream(
        self,
        work: Callable[Concatenate[BackgroundContext, Arguments], Iterator[T]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> AsyncGenerator[T, None]:
        process = await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        is_done = False
        try:
            request = pickle.dumps((work, args, kwargs))
            process.stdin.write(FRAME.pack(ITEM, len(request)) + request)
            await process.stdin.drain()
            while True:
                kind, answer = await _read_answer(process.stdout)
                if kind == PROGRESS:
                    continue
                if kind != ITEM:
                    is_done = True
                    if kind == FAILURE:
                        raise answer
                    return
                yield answer
        except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionResetError) as problem:
            raise BackgroundEnded(f"the process for background work has ended with {process.returncode}") from problem
        finally:
            if not is_done:
                await self.close()

    async def _start(self) -> asyncio.subprocess.Process:
        process = self._process
        if process is None or process.returncode is not None:
            try:
                process = self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "odradek.host.background_main",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,  # the broker handles Ctrl-C
                )
            except OSError as problem:  # not a failure of the log directory
                raise BackgroundEnded(f"no process for background work could be started: {problem}") from problem
        return process

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), KILLED_S)
            if process.stdin is not None:
                process.stdin.close()


async def _read_answer(stream: asyncio.StreamReader) -> tuple[int, Any]:
    try:
        async with asyncio.timeout(STALLED_S):
            kind, size_bytes = FRAME.unpack(await stream.readexactly(FRAME.size))
            return kind, pickle.loads(await stream.readexactly(size_bytes))
    except TimeoutError as problem:
        raise BackgroundEnded(f"background work has made no progress for {STALLED_S:.0f} s") from problem


def real_background_context(disk: Disk, report_progress: Callable[[], None] = lambda: None) -> BackgroundContext:
    return BackgroundContext(
        disk=disk,
        monotonic_ms=lambda: time.monotonic() * 1000.0,
        pause_ms=lambda duration_ms: time.sleep(duration_ms / 1000.0),
        report_progress=report_progress,
    )
