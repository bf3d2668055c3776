"""The broker's settings for groups, as plain values that rules take."""

from __future__ import annotations

import enum
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.coordinator.groups.assignors.by_name import ASSIGNORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.broker_configs import BrokerConfig

MINUTE_MS = 60_000


class MigrationPolicy(enum.Enum):
    """Whether a group may change between the classic and the consumer protocol while it has members."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_any(self) -> bool:
        return self is not MigrationPolicy.DISABLED

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Settings that a consumer group may override by its group configuration, within the broker's limits."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def with_overrides(self, overrides: Mapping[str, str]) -> ConsumerSettings:
        changes: dict[str, Any] = {}
        for name, (lowest, highest) in self.limits.items() if overrides else ():
            if f"consumer.{name}" in overrides:
                # Overrides are checked when they are set, but the limits may change afterwards.
                changes[name.replace(".", "_")] = min(max(int(overrides[f"consumer.{name}"]), lowest), highest)
        return replace(self, **changes) if changes else self


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    # A new member sends no heartbeats while its JoinGroup waits; it counts as alive for this long (Kafka's constant).
    new_member_join_timeout_ms: int = 5 * MINUTE_MS
    offset_metadata_max_length: int = 4_096
    commit_timeout_ms: int = 5_000  # how long an answer waits for its records to be committed
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")  # the first is the default
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    pattern_refresh_interval_ms: int = 10 * MINUTE_MS


def group_settings(config: BrokerConfig) -> GroupSettings:
    values: Any = config.values
    return GroupSettings(
        initial_rebalance_delay_ms=values["group.initial.rebalance.delay.ms"],
        min_session_timeout_ms=values["group.min.session.timeout.ms"],
        max_session_timeout_ms=values["group.max.session.timeout.ms"],
        max_size=values["group.max.size"],
        commit_timeout_ms=values["offsets.commit.timeout.ms"],
        offset_metadata_max_length=values["offset.metadata.max.bytes"],
        offsets_retention_ms=values["offsets.retention.minutes"] * MINUTE_MS,
        offsets_retention_check_interval_ms=values["offsets.retention.check.interval.ms"],
        consumer=_consumer_settings(values),
        consumer_max_size=values["group.consumer.max.size"],
        # A custom assignor is a Java class, which this broker cannot run.
        consumer_assignors=tuple(name for name in values["group.consumer.assignors"] if name in ASSIGNORS)
        or tuple(ASSIGNORS),
        migration_policy=MigrationPolicy(values["group.consumer.migration.policy"].lower()),
        pattern_refresh_interval_ms=values["group.consumer.regex.refresh.interval.ms"],
    )


def _consumer_settings(values: Any) -> ConsumerSettings:
    names = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    return ConsumerSettings(
        **{name.replace(".", "_"): values[f"group.consumer.{name}"] for name in names},
        limits={name: (values[f"group.consumer.min.{name}"], values[f"group.consumer.max.{name}"]) for name in names},
    )
