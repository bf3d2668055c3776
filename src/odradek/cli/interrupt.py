"""Ctrl-C as a wish to stop, for commands that run until then."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def stop_on_interrupt(is_stopped: threading.Event) -> Iterator[None]:
    """Ctrl-C sets the event, so that nothing is cut off half-way; a second Ctrl-C does cut it off."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        is_stopped.set()

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
