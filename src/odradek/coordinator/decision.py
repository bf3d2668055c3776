"""What a rule has decided, as data: records to write, timers to set, answers to give.

Whoever runs the rules writes first; only then do timers start and clients hear anything (`group_shard`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.coordinator.group_records import CoordinatorRecord
    from odradek.coordinator.group_settings import GroupSettings
    from odradek.protocol.errors import ErrorCode

# A request that waits: calling it with the response is all that can be done with it.
Waiter: TypeAlias = "Callable[[Any], None]"


class TimerKind(enum.Enum):
    JOIN = "join"  # a group's members have so long to join a generation
    SYNC = "sync"  # …and so long to ask for their assignment
    SESSION = "session"  # a member must be heard of


class TimerKey(NamedTuple):
    kind: TimerKind
    group_id: str
    member_id: str = ""


class Write(NamedTuple):
    """Records that belong together, and what follows when they are in the log (or the error that kept them out)."""

    records: Sequence[CoordinatorRecord]
    then: Callable[[ErrorCode, Decision], None]


class Decision:
    """Collected while a rule runs. `now_ms` is the wall clock, for what is stamped and stored."""

    __slots__ = ("answers", "now_ms", "settings", "timers", "writes")

    def __init__(self, now_ms: int, settings: GroupSettings) -> None:
        self.now_ms = now_ms
        self.settings = settings
        self.writes: list[Write] = []
        self.timers: dict[TimerKey, float | None] = {}
        self.answers: list[tuple[Waiter, Any]] = []

    def write(self, records: Sequence[CoordinatorRecord], then: Callable[[ErrorCode, Decision], None]) -> None:
        self.writes.append(Write(records, then))

    def start_timer(self, key: TimerKey, delay_ms: float) -> None:
        """Anew when it runs already."""
        self.timers[key] = delay_ms

    def stop_timer(self, key: TimerKey) -> None:
        self.timers[key] = None

    def answer(self, waiter: Waiter, response: Any) -> None:
        self.answers.append((waiter, response))
