"""Processes by id and time of start: an id is given again to others, the two together are not."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """Which process: `began` is the kernel's own word for when it started."""

    pid: int
    began: str

    @property
    def is_alive(self) -> bool:
        return began_of(self.pid) == self.began

    def send(self, number: signal.Signals) -> bool:
        """False where it is gone, even if another has its id now."""
        return self._send(number, os.kill)

    def send_group(self, number: signal.Signals) -> bool:
        """The same to all of the group that it is the first of."""
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
    """Linux counts from when the machine was started, which may be another time by now."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def began_of(pid: int) -> str | None:
    """None where there is no such process, or only what its parent has not yet taken note of."""
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in {"Z", "X"} else f"{fields[19]} {boot_id()}"
    asked = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = asked.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else began.strip()
