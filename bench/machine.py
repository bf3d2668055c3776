"""Properties of the machine that matter for the figures, without its name."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil


def _output_of(*command: str) -> str:
    """Standard output and error of a program; empty if it is not installed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout + done.stderr).strip()


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return _output_of("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    return platform.machine()


def file_system(directory: Path) -> str:
    """The type of the file system that holds the brokers' data."""
    longest, kind = -1, "unknown"
    for partition in psutil.disk_partitions(all=True):
        mount = partition.mountpoint
        if len(mount) > longest and directory.resolve().is_relative_to(mount):
            longest, kind = len(mount), partition.fstype
    return kind


def java_version() -> str | None:
    found = re.search(r'version "([^"]+)"', _output_of("java", "-version"))
    return found.group(1) if found else None


def facts(directory: Path, *, with_java: bool) -> dict[str, str]:
    known = {
        "Cores": str(os.cpu_count()),
        "CPU": cpu_model(),
        "Memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        "System": f"{platform.system()} {platform.release()}, data on {file_system(directory)}",
        "Python": f"{platform.python_version()}, uvloop {version('uvloop')}",
    }
    if with_java:
        known["Java"] = java_version() or "unknown"
    return known
