"""Ctrl-C, which interrupts a command, or requests that it stops; and SIGTERM where it means the same."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.conventions.failures import Terminated

if TYPE_CHECKING:
    from types import FrameType


interrupts: list[int] = []  # signals that have interrupted this process


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Handles a signal."""
    interrupts.append(number)
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def interrupt_on_terminate() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does, so that a command ends in order."""
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


class SignalSafeSetter:
    """Sets an event from a signal handler.

    A handler runs in the main thread, between any two of its instructions. `event.wait()` holds the event's lock when
    it begins and when it ends; a handler that runs at that moment and calls `event.set()` would wait for its own thread
    forever. So another thread sets the event, and the handler puts a request into a queue: `SimpleQueue.put` is
    reentrant.
    """

    def __init__(self, event: threading.Event) -> None:
        self._event = event
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        threading.Thread(target=self._wait, name="signal-setter", daemon=True).start()

    def set(self) -> None:
        self._requests.put(True)

    def close(self) -> None:
        """The event stays as it is."""
        self._requests.put(False)

    def _wait(self) -> None:
        while self._requests.get():
            self._event.set()


@contextmanager
def stop_on_interrupt(is_stopped: threading.Event, *others: signal.Signals) -> Iterator[None]:
    """Ctrl-C sets the event, so that the command can finish its work; a second one interrupts. So do `others`."""
    setter = SignalSafeSetter(is_stopped)

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.default_int_handler)
        setter.set()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, *others)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        setter.close()
