"""Subscriptions to clients' metrics (KIP-714): checked, stored and described. `telemetry/` uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from odradek.configuration.client_patterns import InvalidClientPattern, compile_client_pattern
from odradek.configuration.config_table import read_table
from odradek.configuration.config_types import ConfigError, list_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.config_types import Value

_MATCHABLE = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

CLIENT_METRICS_CONFIGS = read_table(
    """
interval.ms INT 300000 - -
    How often clients push their metrics.
match LIST "" any-list -
    Which clients are meant: name=pattern pairs over what a client says of itself; none means all.
metrics LIST "" any-list -
    Prefixes of the metrics that clients push; '*' means all, none means nothing.
""",
    {"any-list": list_of()},
)


def effective_client_metrics_values(overrides: Mapping[str, str]) -> dict[str, Value]:
    return {
        name: definition.parse(overrides[name]) if name in overrides else definition.default
        for name, definition in CLIENT_METRICS_CONFIGS.items()
    }


def check_client_metrics_configs(subscription: str, overrides: Mapping[str, str]) -> Refusal | None:
    if not subscription:
        return Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for name in overrides:
        if name not in CLIENT_METRICS_CONFIGS:
            return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    try:
        values = effective_client_metrics_values(overrides)
    except ConfigError as error:
        return Refusal(ErrorCode.INVALID_CONFIG, str(error))
    interval_ms = cast("int", values["interval.ms"])
    if not 100 <= interval_ms <= 3_600_000:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    for pattern in cast("tuple[str, ...]", values["match"]):
        if not _is_legal_pattern(pattern):
            return Refusal(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
    return None


def _is_legal_pattern(pattern: str) -> bool:
    parts = pattern.split("=")
    if len(parts) != 2 or parts[0].strip() not in _MATCHABLE:
        return False
    try:
        compile_client_pattern(parts[1].strip())
    except InvalidClientPattern:
        return False
    return True
