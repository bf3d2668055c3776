"""Waiting for a condition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0  # not how long it takes, but how long a busy machine may need

Value = TypeVar("Value")


def eventually(
    condition: Callable[[], Value],
    what: str | Callable[[], object] = "it",
    *,
    seconds: float = PATIENCE_S,
    pause_s: float = 0.01,
) -> Value:
    """The first true value; a function instead of `what` says what there is instead."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what if isinstance(what, str) else what()}"
        time.sleep(pause_s)  # a poll's pause
    return value
