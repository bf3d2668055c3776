"""The end of a pipeline's process: whether it is reported, by itself and on request."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from odradek.cli.framework.failure import Failure
from odradek.cli.pipeline.process import PipelineProcess

SLOW_END = """
import os, sys, threading
sys.stderr.write("odradek: error: it broke\\n")
sys.stderr.flush()
os.close(2)
threading.Event().wait(1)
os._exit(1)
"""
LISTENS = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
sys.stderr.write("p runs: a\\n")
sys.stderr.flush()
signal.pause()
"""


def process_of(script: str, monkeypatch: pytest.MonkeyPatch, is_stopped: threading.Event) -> PipelineProcess:
    """With a script in place of `odradek pipeline run`."""
    started = subprocess.Popen

    def start(_arguments: object, **rest: Any) -> subprocess.Popen[str]:
        return started([sys.executable, "-c", script], **rest)

    monkeypatch.setattr("odradek.cli.pipeline.process.subprocess.Popen", start)
    return PipelineProcess([], is_stopped, lambda _line: None)


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
