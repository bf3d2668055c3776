"""A request to stop arrives at any instruction of the main thread."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from odradek.cli.framework.interrupt import stop_on_interrupt

WAIT_S = 30


@pytest.mark.timeout(60)
def test_signal_while_the_main_thread_holds_the_lock_of_the_event() -> None:
    is_stopped = threading.Event()
    with stop_on_interrupt(is_stopped, signal.SIGTERM):
        with is_stopped._cond:  # type: ignore[attr-defined]  # what wait() holds when it begins and ends
            os.kill(os.getpid(), signal.SIGTERM)
        assert is_stopped.wait(WAIT_S)


def test_second_interrupt_raises() -> None:
    is_stopped = threading.Event()
    with stop_on_interrupt(is_stopped):
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stopped.wait(WAIT_S)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt(threading.Event()):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
