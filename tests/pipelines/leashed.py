"""Process groups that tests start and kill; none outlives the test run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

WAIT_S = 300.0  # a limit for a busy machine, not the expected time
QUICK_JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # for JVMs that live for seconds
# A process group that ends when its standard input is closed, which the kernel does when the test process dies.
LEASH = 'exec 3<&0; (cat <&3 >/dev/null; kill -9 0) & "$@" 3<&- </dev/null; exit $?'


class Leashed:
    """A command in a separate process group, with its output in a file."""

    def __init__(self, command: Sequence[str], output: Path, environment: Mapping[str, str] = QUICK_JAVA) -> None:
        self.output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                ["sh", "-c", LEASH, "leash", *command],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def until(self, find: Callable[[], Any], pause_s: float = 0.05) -> Any:
        """Polls until something is found while the process runs; fails with its output if it ends or takes too long."""
        give_up_at = time.monotonic() + WAIT_S
        while not (found := find()):
            assert self.is_running, self.text
            assert time.monotonic() < give_up_at, self.text
            time.sleep(pause_s)  # a poll's pause
        return found

    def until_said(self, words: str, times: int = 1) -> None:
        self.until(lambda: self.text.count(words) >= times)

    def wait(self, timeout_s: float) -> int:
        """The exit code of a command that ends by itself."""
        code = self._process.wait(timeout_s)
        self.kill()
        return code

    def kill(self) -> None:
        """Sends SIGKILL to the whole group, to simulate a crash."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        give_up_at = time.monotonic() + WAIT_S
        while has_processes(self._process.pid):  # until then they hold their locks
            assert time.monotonic() < give_up_at, "a killed process group did not end"
            time.sleep(0.01)  # a poll's pause
        if self._process.stdin is not None:
            self._process.stdin.close()


def has_processes(group: int) -> bool:
    """Whether a process of this group runs. A zombie does not count: it holds no files, and init may reap it late."""
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False
