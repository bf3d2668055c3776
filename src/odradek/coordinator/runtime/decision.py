"""The outcome of a rule, as data: records to write, timers to set, answers to give.

`Shard.settle` carries it out in that order, so that no client gets an answer that the log does not back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Self

    from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
    from odradek.protocol.errors import ErrorCode


class Waiter(Protocol):
    """A request that waits for its answer. Exactly one of the two methods is called, once."""

    def __call__(self, response: Any, /) -> None: ...

    def refuse(self, error: ErrorCode, /) -> None:
        """Answer with an error in place of the response that the rule decided on."""


class Write(NamedTuple):
    """Records that are appended together, and the continuation that gets the outcome of the append."""

    records: Sequence[CoordinatorRecord]
    then: Callable[[ErrorCode, Any], None]


class Decision:
    """Collected while a rule runs. `now_ms` is the wall clock, for timestamps that are stored."""

    __slots__ = ("answers", "ensured_timers", "now_ms", "timers", "writes")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.writes: list[Write] = []
        self.timers: dict[Hashable, float | None] = {}
        self.ensured_timers: dict[Hashable, float] = {}
        self.answers: list[tuple[Waiter, Any]] = []

    def write(self, records: Sequence[CoordinatorRecord], then: Callable[[ErrorCode, Self], None]) -> None:
        self.writes.append(Write(records, then))

    def start_timer(self, key: Hashable, delay_ms: float) -> None:
        """Restarts the timer if it is running."""
        self.timers[key] = delay_ms

    def ensure_timer(self, key: Hashable, delay_ms: float) -> None:
        """Leaves the timer as it is if it is running."""
        self.ensured_timers[key] = delay_ms

    def stop_timer(self, key: Hashable) -> None:
        self.timers[key] = None

    def answer(self, waiter: Waiter, response: Any) -> None:
        self.answers.append((waiter, response))
