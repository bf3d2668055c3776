"""What a rule has decided, as data: records to write, timers to set, answers to give.

Whoever runs the rules writes first; only then do timers start and clients hear anything (`group_shard`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from odradek.configuration.config_types import ConfigResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.coordinator.groups.consumer.patterns import PatternMatch
    from odradek.coordinator.groups.group import Group
    from odradek.coordinator.groups.group_records import CoordinatorRecord
    from odradek.coordinator.groups.group_settings import ConsumerSettings, GroupSettings
    from odradek.metadata.image import MetadataImage
    from odradek.protocol.errors import ErrorCode

# A request that waits: calling it with the response is all that can be done with it.
Waiter: TypeAlias = "Callable[[Any], None]"


class TimerKind(enum.Enum):
    """Of a classic group as a whole, or of one member: that is in the key."""

    JOIN = "join"  # so long to join a generation
    SYNC = "sync"  # …and so long to ask for the assignment
    SESSION = "session"  # a member must be heard of
    REVOCATION = "revocation"  # a member must give partitions back


class TimerKey(NamedTuple):
    kind: TimerKind
    group_id: str
    member_id: str = ""


class Write(NamedTuple):
    """Records that belong together, and what follows when they are in the log (or the error that kept them out)."""

    records: Sequence[CoordinatorRecord]
    then: Callable[[ErrorCode, Decision], None]


class Decision:
    """Collected while a rule runs. `now_ms` is the wall clock, for what is stamped and stored; `image` is what the
    cluster agrees on; `groups` are the shard's, as they are after all that was written."""

    __slots__ = ("answers", "ensured_timers", "groups", "image", "matches", "now_ms", "settings", "timers", "writes")

    def __init__(self, now_ms: int, settings: GroupSettings, image: MetadataImage, groups: Mapping[str, Group]) -> None:
        self.now_ms = now_ms
        self.settings = settings
        self.image = image
        self.groups = groups
        self.writes: list[Write] = []
        self.timers: dict[TimerKey, float | None] = {}
        self.ensured_timers: dict[TimerKey, float] = {}
        self.matches: list[PatternMatch] = []
        self.answers: list[tuple[Waiter, Any]] = []

    def consumer_settings(self, group_id: str) -> ConsumerSettings:
        """Those of this group, where they differ from the broker's."""
        return self.settings.consumer.with_overrides(self.image.configs_of(ConfigResourceType.GROUP, group_id))

    def write(self, records: Sequence[CoordinatorRecord], then: Callable[[ErrorCode, Decision], None]) -> None:
        self.writes.append(Write(records, then))

    def start_timer(self, key: TimerKey, delay_ms: float) -> None:
        """Anew when it runs already."""
        self.timers[key] = delay_ms

    def ensure_timer(self, key: TimerKey, delay_ms: float) -> None:
        """Unless it runs already."""
        self.ensured_timers[key] = delay_ms

    def stop_timer(self, key: TimerKey) -> None:
        self.timers[key] = None

    def answer(self, waiter: Waiter, response: Any) -> None:
        self.answers.append((waiter, response))
