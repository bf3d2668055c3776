"""Identifies processes by id and start time, because the kernel reuses ids."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """Identifies a process; `began` is its start time as the kernel states it."""

    pid: int
    began: str

    @property
    def is_alive(self) -> bool:
        return began_of(self.pid) == self.began

    def send(self, number: signal.Signals) -> bool:
        """Sends a signal; False if the process has ended, even if another has its id."""
        return self._send(number, os.kill)

    def send_group(self, number: signal.Signals) -> bool:
        """Sends a signal to the process group that the process leads."""
        return self._send(number, os.killpg)

    def _send(self, number: signal.Signals, kill: Callable[[int, int], None]) -> bool:
        if not self.is_alive:
            return False
        try:
            kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def own_mark() -> ProcessMark:
    return mark_of(os.getpid())


def mark_of(pid: int) -> ProcessMark:
    return ProcessMark(pid, began_of(pid) or "")


@functools.cache
def boot_id() -> str:
    """The id of the current boot: Linux gives start times relative to the boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def began_of(pid: int) -> str | None:
    """The start time of a process; None if it does not exist or is a zombie."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in {"Z", "X"} else f"{fields[19]} {boot_id()}"
    asked = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = asked.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else began.strip()
