"""Which committed offsets are too old to keep (KIP-211). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.sentinels import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.coordinator.groups.group import Group
    from odradek.coordinator.groups.group_records import CommittedOffset
    from odradek.protocol.topic_partition import TopicPartition


def expired_offsets(
    group: Group, offsets: Iterable[tuple[TopicPartition, CommittedOffset]], now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """Offsets of topics that a member of the group subscribes to never expire."""
    base = group.expiry_base()
    if base is None:
        return []
    return [
        (topic, partition)
        for (topic, partition), committed in offsets
        if not group.is_subscribed_to(topic)
        and (
            # Clients from before KIP-211 choose the retention themselves.
            now_ms >= committed.expire_timestamp_ms
            if committed.expire_timestamp_ms != NO_TIMESTAMP
            else now_ms - base(committed) >= retention_ms
        )
    ]
