"""Reads facts one after another, with a deadline for all of them and a line of progress.

A step that fails leaves its fact unknown, with the reason; the other steps go on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.protocol.errors import ErrorCode

T = TypeVar("T")
A = TypeVar("A")

MOST_THREADS = 8
MOVED_OR_DELETED = frozenset({
    ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
})  # fmt: skip


class OutOfTime(Failure):
    """The time of the whole command is over."""


class Reader:
    """Owns the deadline and the reasons of missing facts."""

    def __init__(self, limit_s: float, show: Callable[[str], object] = lambda _step: None) -> None:
        """`show` is called with what is read, and with an empty text when that has ended."""
        self._show = show
        self.reasons: dict[str, str] = {}
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s

    def read(self, name: str, words: str, step: Callable[[], T]) -> T | None:
        """The fact that the step returns; None if it fails or if the time is over."""
        self._show(words)
        try:
            self.check_time()
            return step()
        except Failure as failure:
            self.reasons[name] = failure.message
            return None
        finally:
            self._show("")

    def leave_out(self, name: str, error_codes: Counter[int], noun: str, right: str, text: str) -> None:
        """Some of a fact could not be read. `text` has a place for `3 topics`, for each of which `right` is needed."""
        refused = Counter({ErrorCode(each): error_codes[each] for each in error_codes.keys() - MOVED_OR_DELETED})
        if refused:
            errors = ", ".join(each.name for each in sorted(refused))
            needed = f"; this user needs {right}" if "AUTHORIZATION_FAILED" in errors else ""
            things = text.format(count_text(refused.total(), noun))
            self.reasons[name] = f"{things} could not be read ({errors}){needed}"

    def check_time(self) -> None:
        """Called between the requests of a long step."""
        if time.monotonic() > self._deadline:
            raise OutOfTime(f"{self._limit_s:g} s were over; --timeout SECONDS gives more")

    def pause(self, pause_s: float) -> None:
        time.sleep(max(min(pause_s, self._deadline - time.monotonic()), 0))


def all_at_once(step: Callable[[A], T], arguments: Iterable[A]) -> list[T]:
    """The results in order, from a few threads: brokers that do not answer cost their time limit once."""
    with ThreadPoolExecutor(MOST_THREADS) as pool:
        return list(pool.map(step, arguments))
