"""A child process: when it is ready, what is kept of its log, and its end."""

from __future__ import annotations

import signal
import sys
import threading

from odradek.local.child_process import ChildProcess

READY = """
import signal, sys
print("odradek: warning: slow", file=sys.stderr, flush=True)
print("a line of a library")
print('{"event": "ready", "port": 1}', flush=True)
"""


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_an_object_on_its_output_reports_that_it_is_ready() -> None:
    lines: list[str] = []
    has_ended = threading.Event()
    child = ChildProcess(on_line=lines.append, on_output_end=has_ended.set)
    child.start(program(READY + "signal.pause()"))
    assert child.wait_until_ready(60)
    assert child.facts == {"event": "ready", "port": 1}
    assert child.is_running
    assert child.end(signal.SIGTERM, 60)
    assert has_ended.wait(60)
    assert lines == list(child.lines) == ["odradek: warning: slow"]


def test_one_that_ends_without_being_ready_gives_its_last_line() -> None:
    child = ChildProcess()
    for _ in range(2):  # it can be started again
        child.start(program("import sys; sys.exit('odradek: error: no such file')"))
        assert not child.wait_until_ready(60)
        assert child.wait(60)
        assert child.error_text() == "no such file"


def test_one_that_ignores_the_signal_is_killed() -> None:
    child = ChildProcess()
    child.start(program("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + READY + "signal.pause()"))
    assert child.wait_until_ready(60)
    assert not child.end(signal.SIGTERM, 0.1)
    assert not child.is_running


def test_one_that_was_not_started_has_ended() -> None:
    child = ChildProcess()
    assert not child.is_running
    assert child.end(signal.SIGTERM, 1)
