"""Addresses of brokers as users write them, and which of them only this machine reaches."""

from __future__ import annotations

import ipaddress

from odradek.conventions.failures import Failure

DEFAULT_PORT = 9092


def is_loopback(host: str) -> bool:
    """Names other than localhost may resolve to any address; an empty host is every address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """Split `host:port,[::1]:port` into pairs; Failure for an invalid address."""
    addresses = []
    for part in bootstrap_servers.split(","):
        text = part.strip()
        host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            host, port = text, str(DEFAULT_PORT)
        is_bare_ipv6 = ":" in host and not host.startswith("[")
        if not host or is_bare_ipv6 or not port.isdecimal() or not 0 < int(port) < 65536:
            raise Failure(f"{text!r} is not an address; --bootstrap-server takes HOST:PORT[,HOST:PORT…]")
        addresses.append((host.strip("[]"), int(port)))
    return addresses
