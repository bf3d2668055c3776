"""What every kind of group can be asked, whatever its protocol: a shard holds groups of several kinds."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group_records import CommittedOffset, CoordinatorRecord
    from odradek.protocol.errors import ErrorCode

NO_MEMBER_ID = ""
NO_GENERATION = -1


class GroupKind(enum.Enum):
    """The names are the protocol's (ListGroups)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(Protocol):
    group_id: str

    @property
    def kind(self) -> GroupKind: ...

    @property
    def state_name(self) -> str: ...

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def is_empty(self) -> bool: ...

    def check_commit(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether this member, or nobody in particular, may commit offsets now."""

    def check_offset_deletion(self) -> ErrorCode: ...

    def check_deletion(self) -> ErrorCode: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def expiry_base(self) -> Callable[[CommittedOffset], int] | None:
        """From when on an offset's retention counts; None while no offset of the group may expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """What removes the group from the log."""
