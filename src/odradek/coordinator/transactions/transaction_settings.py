"""The broker's settings for transactions, as plain values that rules take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    max_timeout_ms: int = 900_000
    expiration_ms: int = 7 * 24 * 60 * 60_000  # of transactional ids that are not used
    expiry_check_interval_ms: int = 60 * 60_000
    verifies_partitions: bool = True
    commit_timeout_ms: int = 5_000  # how long an answer waits for its records to be committed


def transaction_settings(config: BrokerConfig) -> TransactionSettings:
    values: Any = config.values
    return TransactionSettings(
        max_timeout_ms=values["transaction.max.timeout.ms"],
        expiration_ms=values["transactional.id.expiration.ms"],
        expiry_check_interval_ms=values["transaction.remove.expired.transaction.cleanup.interval.ms"],
        verifies_partitions=values["transaction.partition.verification.enable"],
    )
