"""Metrics subscriptions."""

import pytest

from odradek.configuration.client_metrics_configs import check_client_metrics_configs
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"metrics": "org.apache.kafka.producer.", "interval.ms": "6000"},
        {"metrics": "*", "match": "client_software_name=Java, client_software_version=11.1.*"},
    ],
)
def test_subscriptions_are_accepted(values: dict[str, str]) -> None:
    assert check_client_metrics_configs("cm", values) is None


@pytest.mark.parametrize(
    ("name", "values", "error", "message"),
    [
        ("", {}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ("cm", {"unknown": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: unknown"),
        (
            "cm",
            {"interval.ms": "99"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("cm", {"match": "color=red"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: color=red"),
        ("cm", {"match": "client_id=("}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=("),
        (
            "cm",
            {"match": "client_id=(?!a)b"},
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=(?!a)b",
        ),
        (
            "cm",
            {"interval.ms": "often"},
            ErrorCode.INVALID_CONFIG,
            "Invalid value often for configuration interval.ms: Not a number of type INT",
        ),
    ],
)
def test_refusals(name: str, values: dict[str, str], error: ErrorCode, message: str) -> None:
    assert check_client_metrics_configs(name, values) == Refusal(error, message)
