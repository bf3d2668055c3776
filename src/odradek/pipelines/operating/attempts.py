"""One attempt to run a pipeline as a child process, which reports by events and ends when its parent does."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from typing import TYPE_CHECKING, Self

from odradek.host.lifetime_pipe import LifetimePipe
from odradek.pipelines.operating.events import EventLines, note
from odradek.pipelines.operating.processes import mark_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.operating.processes import ProcessMark

STOP_TIMEOUT_S = 30.0
CHUNK_BYTES = 65536


class Attempt:
    """Starts the child with two more arguments: a descriptor for events, and one that closes when this process ends."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._lines = EventLines()
        self._text = b""
        self._selector = selectors.DefaultSelector()
        self._lifetime = LifetimePipe()

    def __enter__(self) -> Self:
        self._events, events_writer = os.pipe()
        try:
            with self._lifetime.opened() as watched:
                self._process = subprocess.Popen(
                    [*self._arguments, f"--events={events_writer}", f"--stop-with={watched}"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[events_writer, watched],
                    start_new_session=True,  # so that Ctrl-C in the terminal reaches this process only
                )
        except BaseException:
            os.close(self._events)
            self._selector.close()
            raise
        finally:
            os.close(events_writer)
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._selector.register(self._events, selectors.EVENT_READ)
        self._selector.register(self._output.fileno(), selectors.EVENT_READ)
        return self

    def poll(self, timeout_s: float) -> Iterator[Event]:
        """The events that arrive within this time; a line printed by the child becomes a note."""
        for key, _mask in self._selector.select(timeout_s):
            data = os.read(key.fd, CHUNK_BYTES)
            if not data:
                self._selector.unregister(key.fd)
            elif key.fd == self._events:
                yield from self._lines.take(data)
            else:
                *lines, self._text = (self._text + data).split(b"\n")
                yield from (note(line.decode(errors="replace")) for line in lines if line.strip())

    @property
    def is_over(self) -> bool:
        """Whether the child has closed its event pipe, as it does when it ends; its own children may print longer."""
        return self._events not in self._selector.get_map()

    @property
    def mark(self) -> ProcessMark:
        return mark_of(self._process.pid)

    def interrupt(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kills the child and all processes that it has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        return self._process.wait(STOP_TIMEOUT_S)

    def __exit__(self, *_error: object) -> None:
        self.interrupt()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._selector.close()
        self._output.close()
        os.close(self._events)
        self._lifetime.close()
