"""Waiting for a condition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0  # not how long it takes, but how long a busy machine may need


def eventually(
    condition: Callable[[], object], what: str = "it", *, seconds: float = PATIENCE_S, pause_s: float = 0.01
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(pause_s)  # a poll's pause
