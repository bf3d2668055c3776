"""`odradek pipeline run` as a child process of another command, which stops it when it ends."""

from __future__ import annotations

import collections
import contextlib
import math
import signal
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING, Self

from odradek.conventions.failures import Failure, without_prefix
from odradek.local.child_process import start_command, stop_command
from odradek.pipelines.operating import attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STOP_TIMEOUT_S = attempts.STOP_TIMEOUT_S + 15.0  # it kills its attempt, a session of its own with Java, before that
ENDING_S = 5.0
RUNNING = " runs: "  # in the line which reports that all flows have been started
KEPT_LINES = 20


class PipelineProcess:
    """Reports its output. It is restarted after failures; `is_stopped` is set when it has given up, or is done."""

    def __init__(self, arguments: Sequence[str], is_stopped: threading.Event, report: Callable[[str], None]) -> None:
        self._arguments = arguments
        self._is_stopped = is_stopped
        self._report = report
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        self._is_running = threading.Event()
        self._has_output_ended = threading.Event()  # its standard error has ended
        self._is_stop_requested = False

    def __enter__(self) -> Self:
        self._process, self._lifetime = start_command(["pipeline", "run", "--restart"], self._arguments)
        threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True).start()
        return self

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.append(line.rstrip("\n"))
                self._report(self._lines[-1])
                if RUNNING in line:
                    self._is_running.set()
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
        if self._is_stop_requested:
            self._process.send_signal(signal.SIGINT)
        stop_command(self._process, self._lifetime, STOP_TIMEOUT_S)

    def _has_ended(self) -> bool:
        """Whether it has ended, or is about to: its output has ended."""
        if self._has_output_ended.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_S)
        return self._process.poll() is not None

    def raise_failure(self) -> None:
        """Raise a Failure if the process ended without being stopped."""
        if not self._is_stop_requested and self._process.returncode:
            last = without_prefix(self._lines[-1]) if self._lines else f"exit code {self._process.returncode}"
            raise Failure(f"the pipeline ended: {last}")
