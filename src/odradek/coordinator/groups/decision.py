"""The decision of a rule of groups: its inputs, and its outputs in addition to records, timers and answers."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.config_types import ConfigResourceType
from odradek.coordinator.runtime import decision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.coordinator.groups.group import Group
    from odradek.coordinator.groups.group_settings import ConsumerSettings, GroupSettings
    from odradek.metadata.image import MetadataImage


class TimerKind(enum.Enum):
    """Timers of a classic group as a whole, or of one member; the key tells which."""

    JOIN = "join"  # the time that members have to join a generation
    SYNC = "sync"  # the time that members have to ask for their assignment
    SESSION = "session"  # the time that a member may be silent
    REVOCATION = "revocation"  # the time that a member has to give partitions back


class TimerKey(NamedTuple):
    kind: TimerKind
    group_id: str
    member_id: str = ""


class PatternMatch(NamedTuple):
    """Patterns to match, and the permissions of the member whose heartbeat requested it."""

    group_id: str
    patterns: frozenset[str]
    may_describe: Callable[[str], bool]


class Decision(decision.Decision):
    """`image` is the cluster's metadata; `groups` are the shard's, as they are after all that was written.
    `write_limit_bytes` says how large the records of one write may be: a rule compares it with what a request brings
    before it builds a record."""

    __slots__ = ("groups", "image", "matches", "settings", "write_limit_bytes")

    def __init__(
        self,
        now_ms: int,
        settings: GroupSettings,
        image: MetadataImage,
        groups: Mapping[str, Group],
        write_limit_bytes: Callable[[], int],
    ) -> None:
        super().__init__(now_ms)
        self.settings = settings
        self.image = image
        self.groups = groups
        self.write_limit_bytes = write_limit_bytes
        self.matches: list[PatternMatch] = []

    def consumer_settings(self, group_id: str) -> ConsumerSettings:
        """The broker's settings with the group's own configuration applied."""
        return self.settings.consumer.with_overrides(self.image.configs_of(ConfigResourceType.GROUP, group_id))
