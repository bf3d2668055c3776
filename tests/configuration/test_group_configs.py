"""Settings of groups, and the broker's limits on them."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.group_configs import check_group_configs, offset_reset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

CONFIG = BrokerConfig.from_properties({})


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "6000"},
        {"streams.num.standby.replicas": "1"},
        {"share.auto.offset.reset": "by_duration:PT1H30M", "share.isolation.level": "read_committed"},
        {"consumer.assignment.interval.ms": "0"},
    ],
)
def test_settings_within_the_limits_are_accepted(values: dict[str, str]) -> None:
    assert check_group_configs(values, CONFIG) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"unknown.config": "1"}, "Unknown group config name: unknown.config"),
        (
            {"streams.session.timeout.ms": "1"},
            "streams.session.timeout.ms must be greater than or equal to group.streams.min.session.timeout.ms",
        ),
        (
            {"streams.session.timeout.ms": "100000"},
            "streams.session.timeout.ms must be less than or equal to group.streams.max.session.timeout.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            {"share.delivery.count.limit": "11"},
            "share.delivery.count.limit must be less than or equal to group.share.max.delivery.count.limit",
        ),
        (
            {"consumer.assignment.interval.ms": "15001"},
            "consumer.assignment.interval.ms must be less than or equal to group.consumer.max.assignment.interval.ms",
        ),
        (
            {"share.record.lock.duration.ms": "10"},
            "Invalid value 10 for configuration share.record.lock.duration.ms: Value must be at least 1000",
        ),
    ],
)
def test_settings_beyond_the_limits_are_refused(values: dict[str, str], message: str) -> None:
    assert check_group_configs(values, CONFIG) == Refusal(ErrorCode.INVALID_CONFIG, message)


def test_session_must_outlast_the_heartbeat() -> None:
    broker = BrokerConfig.from_properties({"group.streams.max.heartbeat.interval.ms": "55000"})
    assert check_group_configs({"streams.heartbeat.interval.ms": "50000"}, broker) == Refusal(
        ErrorCode.INVALID_CONFIG, "streams.session.timeout.ms must be greater than streams.heartbeat.interval.ms"
    )


@pytest.mark.parametrize("text", ["none", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "EARLIEST"])
def test_offset_reset_strategies_that_mean_nothing(text: str) -> None:
    assert offset_reset(text) is not None
