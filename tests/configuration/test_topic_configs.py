"""A topic's settings: what may be set, and the log's view of them."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.topic_configs import TOPIC_CONFIGS, check_topic_configs, log_config
from odradek.log.log_config import LogConfig, TimestampType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

CONFIG = BrokerConfig.from_properties({})


def test_all_of_kafkas_settings_are_there() -> None:
    assert len(TOPIC_CONFIGS) == 34
    assert [name for name, definition in TOPIC_CONFIGS.items() if definition.is_internal] == ["internal.segment.bytes"]


def test_defaults_are_those_of_the_log() -> None:
    assert log_config({}, CONFIG) == LogConfig()


def test_topic_wins_over_broker_wins_over_default() -> None:
    broker = BrokerConfig.from_properties({"log.segment.bytes": "2000000", "log.retention.hours": "2"})
    ours = log_config({"segment.bytes": "3000000"}, broker)
    assert ours.segment_bytes == 3_000_000
    assert ours.retention_ms == 7_200_000
    assert ours.index_interval_bytes == 4096


def test_words_become_values() -> None:
    ours = log_config(
        {
            "cleanup.policy": "compact, delete",
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "internal.segment.bytes": "100",
        },
        CONFIG,
    )
    assert ours.is_compacted
    assert ours.is_deleted
    assert ours.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert ours.compression_type == "zstd"
    assert ours.segment_bytes == 100
    assert not log_config({"cleanup.policy": "compact"}, CONFIG).is_deleted


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"invalid": "2"}, "Unknown topic config name: invalid"),
        (
            {"retention.ms": "-2"},
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        (
            {"cleanup.policy": "shrink"},
            "Invalid value shrink for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            {"compression.gzip.level": "0"},
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
        ),
        (
            {"remote.storage.enable": "true"},
            (
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            ),
        ),
    ],
)
def test_refusals_in_kafkas_words(values: dict[str, str], message: str) -> None:
    assert check_topic_configs(values, CONFIG) == Refusal(ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize("text", ["", "*", "0:1,1:2"])
def test_throttled_replicas(text: str) -> None:
    assert check_topic_configs({"leader.replication.throttled.replicas": text}, CONFIG) is None


def test_malformed_throttled_replicas() -> None:
    refusal = check_topic_configs({"leader.replication.throttled.replicas": "0-1"}, CONFIG)
    assert refusal is not None
    assert "[partitionId]:[brokerId]" in str(refusal.message)
