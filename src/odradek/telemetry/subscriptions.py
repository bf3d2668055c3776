"""Subscriptions to clients' metrics, and what they ask of one client: metrics, interval, subscription id. Pure."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple, cast

from odradek.configuration.client_metrics_configs import effective_client_metrics_values
from odradek.configuration.client_patterns import InvalidClientPattern, compile_client_pattern
from odradek.configuration.config_types import ConfigResourceType
from odradek.conventions.dataclass import dataclass
from odradek.coordinator.java_strings import java_hash
from odradek.protocol.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from odradek.metadata.image import ConfigResource

DEFAULT_INTERVAL_MS = 300_000
ALL_METRICS = "*"


class ClientFacts(NamedTuple):
    """What is known of a client without asking it; subscriptions choose clients by these."""

    client_id: str | None
    software_name: str
    software_version: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """`match` has a pattern for each attribute that must match as a whole; None matches nothing."""

    name: str
    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[tuple[str, str], ...]

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        return all(_matches(pattern, attributes.get(attribute)) for attribute, pattern in self.match)


class Requested(NamedTuple):
    """What a client is asked for."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


def read_subscriptions(configs: Mapping[ConfigResource, Mapping[str, str]]) -> tuple[Subscription, ...]:
    """The subscriptions in the order of their names. Their settings were checked when they were stored."""
    found = []
    for resource, overrides in configs.items():
        if resource.type is ConfigResourceType.CLIENT_METRICS:
            values = effective_client_metrics_values(overrides)
            pairs = (entry.split("=", 1) for entry in cast("tuple[str, ...]", values["match"]))
            found.append(
                Subscription(
                    resource.name,
                    tuple(cast("tuple[str, ...]", values["metrics"])),
                    cast("int", values["interval.ms"]),
                    tuple((name.strip(), pattern.strip()) for name, pattern in pairs),
                )
            )
    return tuple(sorted(found, key=lambda each: each.name))


def request_of(subscriptions: Iterable[Subscription], instance_id: UUID, client: ClientFacts) -> Requested:
    """The metrics of all subscriptions that match the client, at the shortest of their intervals."""
    attributes = {
        "client_instance_id": uuid_text(instance_id),
        "client_id": client.client_id,
        "client_software_name": client.software_name,
        "client_software_version": client.software_version,
        "client_source_address": client.address,
        "client_source_port": str(client.port) if client.port else None,
    }
    metrics: dict[str, None] = {}
    interval_ms = DEFAULT_INTERVAL_MS
    for subscription in subscriptions:
        if subscription.matches(attributes):
            metrics |= dict.fromkeys(subscription.metrics)
            interval_ms = min(interval_ms, subscription.interval_ms)
    chosen = (ALL_METRICS,) if ALL_METRICS in metrics else java_set_order(list(metrics))
    return Requested(chosen, interval_ms, subscription_id(chosen, interval_ms, instance_id))


def subscription_id(metrics: Sequence[str], interval_ms: int, instance_id: UUID) -> int:
    """CRC-32C of metrics and interval, XORed with the hash of the instance id: the number that Kafka computes."""
    text = f"[{', '.join(metrics)}]{interval_ms}"
    number = (crc32c(text.encode()) ^ _uuid_hash(instance_id)) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def uuid_text(value: UUID) -> str:
    """As Kafka prints ids."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def java_set_order(texts: Sequence[str]) -> tuple[str, ...]:
    """The order in which a HashSet of Java iterates: by bucket, in a bucket by insertion."""
    capacity = 16
    while len(texts) > capacity * 3 // 4:
        capacity *= 2

    def bucket(text: str) -> int:
        number = java_hash(text) & 0xFFFFFFFF
        return (number ^ number >> 16) & capacity - 1

    return tuple(sorted(texts, key=bucket))


def _uuid_hash(value: UUID) -> int:
    mixed = value.int >> 64 ^ value.int & (1 << 64) - 1
    return (mixed >> 32 ^ mixed) & 0xFFFFFFFF


def _matches(pattern: str, text: str | None) -> bool:
    """A pattern that RE2 refuses matches nothing."""
    if text is None:
        return False
    try:
        return compile_client_pattern(pattern).fullmatch(text) is not None
    except (InvalidClientPattern, UnicodeEncodeError):
        return False
