"""What this process uses of the machine: memory, processor time, file descriptors."""

from __future__ import annotations

import os
import resource
import sys
import time
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_KIB_OF_MAX_RSS = 1 if sys.platform == "darwin" else 1024


class ProcessUsage(NamedTuple):
    """`open_files` is None where the system does not report it. `started_s` is seconds since 1970."""

    resident_bytes: int
    cpu_s: float
    open_files: int | None
    largest_open_files: int
    started_s: float


_IMPORTED_S = time.time()


def read_process_usage() -> ProcessUsage:
    """Blocks for the time of a few system calls: call it on a worker."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessUsage(
        resident_bytes=_resident_bytes(usage.ru_maxrss * _KIB_OF_MAX_RSS),
        cpu_s=usage.ru_utime + usage.ru_stime,
        open_files=_count_open_files(),
        largest_open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        started_s=_started_s(),
    )


def _resident_bytes(largest_bytes: int) -> int:
    """On systems without /proc, the largest size so far."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return largest_bytes


def _count_open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # the directory itself is open while it is read
    except OSError:
        return None


def _started_s() -> float:
    """The time of the import on systems without /proc."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            started_ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="ascii") as file:
            uptime_s = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return _IMPORTED_S
    return time.time() - uptime_s + started_ticks / _TICKS_PER_SECOND
