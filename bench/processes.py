"""What a broker costs: CPU time, resident memory and open files of a process with its children; the limit on files."""

import contextlib
import os
import resource
from pathlib import Path

import psutil


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def cpu_seconds(pid: int) -> float:
    """User and system time so far of the process, its living children, and those it has waited for."""
    total = 0.0
    for process in _family(pid):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # ended since it was listed: its time is now in its parent's
            continue
        total += times.user + times.system
        if process.pid == pid:
            total += times.children_user + times.children_system
    return total


def is_alive(pid: int) -> bool:
    """Running, and not merely waiting to be reaped by us."""
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
    """Of its children alone, as far as they have not ended."""
    total = 0
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / 1e6


def disk_bytes_read(pid: int) -> int | None:
    """What the process had to have from the disk so far; None where the system does not tell."""
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
            with contextlib.suppress(FileNotFoundError):  # the broker is deleting it, which is what is waited for
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


def raise_open_files_limit(wanted: int) -> int:
    """Lift the soft limit for us and for what we start, as far as the hard limit lets us; returns what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
        return reachable
    return wanted if soft == resource.RLIM_INFINITY else soft
