"""`odradek pipeline run` as a child process of another command, which stops it when it ends."""

from __future__ import annotations

import math
import signal
import threading
import time
from typing import TYPE_CHECKING, Self

from odradek.conventions.failures import Failure
from odradek.local.child_process import ChildProcess, odradek_command
from odradek.pipelines.operating import attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STOP_TIMEOUT_S = attempts.STOP_TIMEOUT_S + 15.0  # it kills its attempt, a session of its own with Java, before that
ENDING_S = 5.0
RUNNING = " runs: "  # in the line which reports that all flows have been started


class PipelineProcess:
    """Reports its output. It is restarted after failures; `is_stopped` is set when it has given up, or is done."""

    def __init__(self, arguments: Sequence[str], is_stopped: threading.Event, report: Callable[[str], None]) -> None:
        self._arguments = arguments
        self._is_stopped = is_stopped
        self._report = report
        self._is_running = threading.Event()
        self._has_output_ended = threading.Event()
        self._is_stop_requested = False
        self._child = ChildProcess(on_line=self._take_line, on_output_end=self._end_output)

    def __enter__(self) -> Self:
        self._child.start(odradek_command("pipeline", "run", "--restart", *self._arguments))
        return self

    def _take_line(self, line: str) -> None:
        self._report(line)
        if RUNNING in line:
            self._is_running.set()

    def _end_output(self) -> None:
        self._has_output_ended.set()
        self._is_running.set()
        self._is_stopped.set()

    def wait_until_running(self, timeout_s: float = math.inf) -> bool:
        """Wait until all flows are started, the process has ended, or the time is over; False in the last case."""
        ends_at = time.monotonic() + timeout_s
        while not self._is_running.wait(min(0.1, max(0.0, ends_at - time.monotonic()))):
            if self._is_stopped.is_set() or time.monotonic() >= ends_at:
                return False
        return True

    def __exit__(self, *_error: object) -> None:
        self._is_stop_requested = not self._has_ended()
        self._child.end(signal.SIGINT, STOP_TIMEOUT_S)

    def _has_ended(self) -> bool:
        """Whether it has ended, or is about to: its output has ended."""
        if self._has_output_ended.is_set():
            self._child.wait(ENDING_S)
        return not self._child.is_running

    def raise_failure(self) -> None:
        """Raise a Failure if the process ended without being stopped."""
        process = self._child.process
        if not self._is_stop_requested and process is not None and process.returncode:
            raise Failure(f"the pipeline ended: {self._child.error_text()}")
