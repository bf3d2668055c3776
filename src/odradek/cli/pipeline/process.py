"""`odradek pipeline run` as a process of another command: started, listened to, stopped, never left behind."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Self

from odradek.cli.framework.failure import Failure, without_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STOP_TIMEOUT_S = 30.0
ENDING_S = 5.0
RUNNING = " runs: "  # in the line that says that all flows have been started
KEPT_LINES = 20


class PipelineProcess:
    """Tells what it prints until it runs; `is_stopped` is set when it ends by itself."""

    def __init__(self, arguments: Sequence[str], is_stopped: threading.Event, tell: Callable[[str], None]) -> None:
        self._arguments = arguments
        self._is_stopped = is_stopped
        self._tell = tell
        self._lines: collections.deque[str] = collections.deque(maxlen=KEPT_LINES)
        self._is_running = threading.Event()
        self._is_silent = threading.Event()  # its standard error has ended
        self._is_asked_to_stop = False

    def __enter__(self) -> Self:
        watched, self._leash = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "odradek", "pipeline", "run", f"--stop-with={watched}", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[watched],
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C in the terminal is ours to handle, in our order
            )
        finally:
            os.close(watched)
        threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True).start()
        return self

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.append(line.rstrip("\n"))
                if not self._is_running.is_set():
                    self._tell(self._lines[-1])
                if RUNNING in line:
                    self._is_running.set()
        self._is_silent.set()
        self._is_running.set()
        self._is_stopped.set()

    def wait_until_running(self) -> None:
        while not self._is_running.wait(0.1) and not self._is_stopped.is_set():
            pass

    def __exit__(self, *_error: object) -> None:
        self._is_asked_to_stop = not self._has_ended()
        if self._is_asked_to_stop:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._leash)

    def _has_ended(self) -> bool:
        """By itself, or is about to: its last words have come."""
        if self._is_silent.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_S)
        return self._process.poll() is not None

    def raise_failure(self) -> None:
        """When it ended without being asked to."""
        if not self._is_asked_to_stop and self._process.returncode:
            last = without_prefix(self._lines[-1]) if self._lines else f"exit code {self._process.returncode}"
            raise Failure(f"the pipeline ended: {last}")
