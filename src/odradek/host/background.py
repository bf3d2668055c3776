"""Long work in a process of its own, at low priority: a thread would share the interpreter's lock with the event loop.

The process starts when it is first needed and ends with the broker, also when the broker is killed: it watches the pipe
through which it is asked, which the operating system closes with whoever holds the other end."""

import asyncio
import pickle
import struct
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from odradek.host.disk import Disk

T = TypeVar("T")
Arguments = ParamSpec("Arguments")

FRAME = struct.Struct(">BI")
ITEM, END, FAILURE = range(3)


@dataclass(frozen=True, slots=True)
class Backroom:
    """The outside world of work that runs there. Everything blocks."""

    disk: Disk
    monotonic_ms: Callable[[], float]
    pause_ms: Callable[[float], None]


class Background(Protocol):
    def stream(
        self,
        work: Callable[Concatenate[Backroom, Arguments], Iterator[T]],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> AsyncGenerator[T, None]:
        """What the work yields, as it comes. One at a time. What it raises is raised here, and BackgroundEnded when its
        process was ended. To stop the work before its end, close the iterator."""

    async def close(self) -> None:
        """Ends the work that is running, and returns when it has ended."""


class BackgroundEnded(Exception):
    """The process has ended before its work had, or could not be started."""


class BackgroundProcess:
    """Starts this interpreter again with `odradek.host.background_main`; what is asked and answered is pickled."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def stream(
        self,
        work: Callable[Concatenate[Backroom, Arguments], Iterator[T]],
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
                kind, size_bytes = FRAME.unpack(await process.stdout.readexactly(FRAME.size))
                answer = pickle.loads(await process.stdout.readexactly(size_bytes))
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
                    start_new_session=True,  # Ctrl-C is the broker's to handle
                )
            except OSError as problem:  # no fault of the disk that the work is about
                raise BackgroundEnded(f"no process for background work could be started: {problem}") from problem
        return process

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if process.stdin is not None:
                process.stdin.close()


def real_backroom(disk: Disk) -> Backroom:
    return Backroom(
        disk=disk,
        monotonic_ms=lambda: time.monotonic() * 1000.0,
        pause_ms=lambda duration_ms: time.sleep(duration_ms / 1000.0),
    )
