"""The broker's settings for groups, as plain numbers that rules can take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.metadata.broker_configs import BrokerConfig

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    # A new member cannot send heartbeats while its JoinGroup waits; this is how long it is believed (Kafka's constant).
    new_member_join_timeout_ms: int = 5 * MINUTE_MS
    offset_metadata_max_length: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS


def group_settings(config: BrokerConfig) -> GroupSettings:
    values: Any = config.values
    return GroupSettings(
        initial_rebalance_delay_ms=values["group.initial.rebalance.delay.ms"],
        min_session_timeout_ms=values["group.min.session.timeout.ms"],
        max_session_timeout_ms=values["group.max.session.timeout.ms"],
        max_size=values["group.max.size"],
        offset_metadata_max_length=values["offset.metadata.max.bytes"],
        offsets_retention_ms=values["offsets.retention.minutes"] * MINUTE_MS,
        offsets_retention_check_interval_ms=values["offsets.retention.check.interval.ms"],
    )
