"""Answers that wait until the records they rest on are committed, in the order of their end offsets.

The log end only grows while a broker leads a partition, so answers are added in the order in which they may go out, and
the head of the queue shows whether any of them may. The queue holds at most one answer per request in
flight, and a connection has one request in flight at a time. Each answer has the same time to wait, so the head of the
queue is also the first to run out of it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from odradek.coordinator.runtime.decision import Waiter
    from odradek.protocol.errors import ErrorCode


class CommitWait(NamedTuple):
    end_offset: int  # the answer may go out when the high watermark has reached it
    deadline_ms: float
    waiter: Waiter
    response: Any


class CommitWaits:
    def __init__(self) -> None:
        self._waits: deque[CommitWait] = deque()

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def next_deadline_ms(self) -> float | None:
        return self._waits[0].deadline_ms if self._waits else None

    def add(self, wait: CommitWait) -> None:
        assert not self._waits or self._waits[-1].end_offset <= wait.end_offset, "the log end moved back"
        self._waits.append(wait)

    def release(self, high_watermark: int) -> None:
        """Send the answers whose records are committed."""
        waits = self._waits
        while waits and waits[0].end_offset <= high_watermark:
            wait = waits.popleft()
            wait.waiter(wait.response)

    def refuse_overdue(self, now_ms: float, error: ErrorCode) -> None:
        waits = self._waits
        while waits and waits[0].deadline_ms <= now_ms:
            waits.popleft().waiter.refuse(error)

    def refuse_all(self, error: ErrorCode) -> None:
        waits, self._waits = self._waits, deque()
        for wait in waits:
            wait.waiter.refuse(error)
