"""Ctrl-C as a request to stop, for commands that run until then."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def stop_on_interrupt(is_stopped: threading.Event, *others: signal.Signals) -> Iterator[None]:
    """Ctrl-C sets the event, so that the command can finish its work; a second one interrupts. So do `others`."""

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.default_int_handler)
        is_stopped.set()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, *others)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
