"""A topic's settings: allowed values, rules over several settings, and their conversion to a `LogConfig`.

The table itself is in `topic_config_table`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.configuration.config_types import ConfigError, Value
from odradek.configuration.topic_config_table import TOPIC_CONFIGS
from odradek.log.log_config import NO_LIMIT_MS, LogConfig, ProduceValidation, TimestampType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.broker_configs import BrokerConfig

__all__ = ["TOPIC_CONFIGS", "check_topic_configs", "effective_topic_values", "log_config"]


def effective_topic_values(overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, Value]:
    """Every setting of a topic: its own if it has one, else the broker's, else Kafka's default."""
    return {**broker.topic_defaults, **{name: TOPIC_CONFIGS[name].parse(text) for name, text in overrides.items()}}


def check_topic_configs(overrides: Mapping[str, str], broker: BrokerConfig) -> Refusal | None:
    """Whether a topic may have this combination of settings."""
    for name in overrides:
        if name not in TOPIC_CONFIGS:
            return Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    try:
        values = effective_topic_values(overrides, broker)
    except ConfigError as error:
        return Refusal(ErrorCode.INVALID_CONFIG, str(error))
    minimum = cast("int", values["min.compaction.lag.ms"])
    maximum = cast("int", values["max.compaction.lag.ms"])
    if minimum > maximum:
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({minimum}) > max.compaction.lag.ms ({maximum})",
        )
    if values["remote.storage.enable"]:
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    return None


def log_config(topic_overrides: Mapping[str, str], broker: BrokerConfig) -> LogConfig:
    """The settings that a partition's log needs. They were checked when they were set."""
    values = effective_topic_values(topic_overrides, broker)

    def number(name: str) -> int:
        return cast("int", values[name])

    cleanup_policy = cast("tuple[str, ...]", values["cleanup.policy"])
    # The active segment is never compacted, so it is rolled before a record has waited for the longest lag allowed.
    longest_segment_ms = number("max.compaction.lag.ms") if "compact" in cleanup_policy else NO_LIMIT_MS
    return LogConfig(
        segment_bytes=cast("int", values["internal.segment.bytes"] or values["segment.bytes"]),
        segment_ms=min(number("segment.ms"), longest_segment_ms),
        segment_jitter_ms=number("segment.jitter.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        max_message_bytes=number("max.message.bytes"),
        message_timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if values["message.timestamp.type"] == "LogAppendTime"
            else TimestampType.CREATE_TIME
        ),
        message_timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        compression_type=cast("str", values["compression.type"]),
        compression_gzip_level=number("compression.gzip.level"),
        compression_lz4_level=number("compression.lz4.level"),
        compression_zstd_level=number("compression.zstd.level"),
        is_compacted="compact" in cleanup_policy,
        is_deleted="delete" in cleanup_policy,
        delete_retention_ms=number("delete.retention.ms"),
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        max_compaction_lag_ms=number("max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=cast("float", values["min.cleanable.dirty.ratio"]),
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        file_delete_delay_ms=number("file.delete.delay.ms"),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        min_insync_replicas=number("min.insync.replicas"),
        produce_validation=ProduceValidation(broker.values["produce.validation"]),
    )
