"""How much memory Python takes for a call."""

from __future__ import annotations

import tracemalloc
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
