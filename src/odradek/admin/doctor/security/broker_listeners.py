"""The listeners of a broker, from its settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.admin.doctor.security.facts import ListenerFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.broker_requests import KnownBroker

_LISTENER = re.compile(r"\s*(\w+)://(?:\[([^\]]*)\]|([^:/]*)):(\d+)\s*", re.ASCII)
_WILDCARDS = frozenset({"", "0.0.0.0", "::", "0:0:0:0:0:0:0:0"})


def listeners_of(broker: KnownBroker, settings: Mapping[str, str]) -> list[ListenerFacts]:
    """With the address that clients use. A port that the kernel chose is known for a broker's only listener."""
    bound = _parse(settings.get("listeners", ""))
    advertised = _parse(settings.get("advertised.listeners", ""))
    protocols = {
        name.strip().upper(): protocol.strip().upper()
        for name, _, protocol in (
            entry.rpartition(":") for entry in settings.get("listener.security.protocol.map", "").split(",")
        )
    }
    controllers = {each.strip().upper() for each in settings.get("controller.listener.names", "").split(",")}
    found = []
    for name, (bound_host, bound_port) in bound.items():
        host, port = advertised.get(name, (bound_host, bound_port))
        if host in _WILDCARDS:
            host = broker.host
        if port == 0 and len(bound) == 1:
            host, port = broker.address
        protocol = protocols.get(name, name)
        is_of_controllers = name in controllers
        found.append(
            ListenerFacts(broker.broker_id, name, protocol, bound_host, host, port, settings, is_of_controllers)
        )
    return found


def _parse(text: str) -> dict[str, tuple[str, int]]:
    found = {}
    for entry in text.split(","):
        match = _LISTENER.fullmatch(entry)
        if match is not None:
            name, ipv6, host, port = match.groups()
            found[name.upper()] = (host if ipv6 is None else ipv6, int(port))
    return found
