"""How much memory Python takes for a call."""

from __future__ import annotations

import re
import resource
import sys
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.alone import call_alone

if TYPE_CHECKING:
    from collections.abc import Callable


class TakenMemory(NamedTuple):
    kept_bytes: int
    peak_bytes: int


def memory_of(call: Callable[[], object]) -> TakenMemory:
    """Measured in a forked process: Python 3.11 may abort if tracemalloc is stopped while another thread allocates."""

    def measure() -> TakenMemory:
        tracemalloc.start()
        call()
        return TakenMemory(*tracemalloc.get_traced_memory())

    return call_alone(measure)


def peak_resident_bytes() -> int:
    """Of this process. On Linux, `getrusage` includes what the process had before it was this program."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
