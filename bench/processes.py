"""CPU time, resident memory and open files of a process with its children; the limit on open files."""

import contextlib
import os
import resource
import shutil
import sys
import time
from pathlib import Path

import psutil

CPU_CLOCK_OF_PROCESS = 2


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def cpu_seconds(pid: int) -> float:
    """User and system time of the process, of its running children, and of those it has waited for."""
    total = 0.0
    for process in _family(pid):
        try:
            total += _own_cpu_seconds(process)
            if process.pid == pid:
                times = process.cpu_times()
                total += times.children_user + times.children_system
        except psutil.NoSuchProcess:  # ended since it was listed: its time is part of its parent's
            continue
    return total


def _own_cpu_seconds(process: psutil.Process) -> float:
    """Of all threads. Linux has a clock for each process; elsewhere the figure is in ticks of 10 ms."""
    if sys.platform == "linux":
        # clock_getcpuclockid(3), which Python lacks for other processes: the complement of the id and 3 bits of type.
        with contextlib.suppress(OSError):
            return time.clock_gettime(~process.pid << 3 | CPU_CLOCK_OF_PROCESS)
    times = process.cpu_times()
    return float(times.user + times.system)


def lowest_priority() -> tuple[str, ...]:
    """The words before a command that gets only the time that others leave."""
    return ("chrt", "--idle", "0") if shutil.which("chrt") else ("nice", "-n", "19")


def is_alive(pid: int) -> bool:
    """True for a running process, False for one that has ended, even if its exit status was not collected."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def resident_mb(pid: int) -> float:
    total = 0
    for process in _family(pid):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def children_resident_mb(pid: int) -> float:
    """Of its running children alone."""
    total = 0
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / 1e6


def disk_bytes_read(pid: int) -> int | None:
    """Bytes that were read from the disk for the process; None where the system does not count them."""
    process = psutil.Process(pid)
    return int(process.io_counters().read_bytes) if hasattr(process, "io_counters") else None


def open_files(pid: int) -> int:
    """Descriptors of the process, sockets included."""
    count: int = psutil.Process(pid).num_fds()
    return count


def disk_usage_bytes(directory: Path) -> int:
    """Blocks in use, not apparent sizes: Apache Kafka's index files are sparse."""
    total = 0
    for parent, _, files in os.walk(directory):
        for name in files:
            with contextlib.suppress(FileNotFoundError):  # deleted by the broker since it was listed
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


def raise_open_files_limit(wanted: int) -> int:
    """Raise the soft limit of this process and its children, up to the hard limit; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
        return reachable
    return wanted if soft == resource.RLIM_INFINITY else soft
