"""The end of a pipeline's process: whether it is reported, by itself and on request."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.up import STOP_TIMEOUT_S, PipelineProcess
from odradek.conventions.failures import Failure
from odradek.pipelines.operating import attempts, supervising

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW_END = """
import os, sys, threading
sys.stderr.write("odradek: error: it broke\\n")
sys.stderr.flush()
os.close(2)
threading.Event().wait(1)
os._exit(1)
"""
FAILS_LATER = """
import sys
sys.stderr.write("p runs: a\\nfailed: it broke; retrying in 1 s\\np runs: a\\n")
"""
LISTENS = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
sys.stderr.write("p runs: a\\n")
sys.stderr.flush()
signal.pause()
"""


def process_of(
    script: str,
    monkeypatch: pytest.MonkeyPatch,
    is_stopped: threading.Event,
    report: Callable[[str], None] = lambda _line: None,
) -> PipelineProcess:
    """With a script in place of `odradek pipeline run`."""
    started = subprocess.Popen

    def start(arguments: list[str], **rest: Any) -> subprocess.Popen[str]:
        assert arguments[3:6] == ["pipeline", "run", "--restart"]
        return started([sys.executable, "-c", script], **rest)

    monkeypatch.setattr("odradek.local.child_process.subprocess.Popen", start)
    return PipelineProcess([], is_stopped, report)


def test_one_that_has_said_its_last_words_was_not_asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    is_stopped = threading.Event()
    with process_of(SLOW_END, monkeypatch, is_stopped) as process:
        assert is_stopped.wait(60)
    with pytest.raises(Failure, match="the pipeline ended: it broke"):
        process.raise_failure()


def test_one_that_was_asked_to_stop_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    with process_of(LISTENS, monkeypatch, threading.Event()) as process:
        process.wait_until_running()
    process.raise_failure()


def test_a_failure_after_the_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    is_stopped, lines = threading.Event(), list[str]()
    with process_of(FAILS_LATER, monkeypatch, is_stopped, lines.append):
        assert is_stopped.wait(60)
    assert lines == ["p runs: a", "failed: it broke; retrying in 1 s", "p runs: a"]


def test_one_is_killed_later_than_it_kills_its_own_attempt() -> None:
    """Nobody else would kill an attempt that does not stop, which is in a session of its own."""
    assert attempts.STOP_TIMEOUT_S + 10 * supervising.POLL_S < STOP_TIMEOUT_S
