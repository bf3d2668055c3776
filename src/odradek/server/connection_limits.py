"""Limits on the broker's connections: in total, per listener and per address. Shared by the listeners."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig


class Limit(NamedTuple):
    """The name of a setting, and the number of connections that it allows."""

    name: str
    allowed: int


class ConnectionLimits:
    """Counts connections; one that exceeds a limit counts until it is closed."""

    def __init__(self) -> None:
        self._total = 0
        self._by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()

    def opened(self, listener: str, host: str, config: BrokerConfig) -> Limit | None:
        """Counts a new connection; returns the limit that it exceeds, or None."""
        self._total += 1
        self._by_listener[listener] += 1
        self._by_host[host] += 1
        if self._total > config.max_connections:
            return Limit("max.connections", config.max_connections)
        allowed = config.listener_max_connections.get(listener)
        if allowed is not None and self._by_listener[listener] > allowed:
            return Limit(f"listener.name.{listener.lower()}.max.connections", allowed)
        name, allowed = "max.connections.per.ip", config.max_connections_per_ip
        if host in config.max_connections_per_ip_overrides:
            name, allowed = f"{name}.overrides", config.max_connections_per_ip_overrides[host]
        if self._by_host[host] > allowed:
            return Limit(name, allowed)
        return None

    def closed(self, listener: str, host: str) -> None:
        self._total -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]  # so that the dictionary does not grow without bound
