"""What the console was started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from odradek.console.preparation import Preparation

DEFAULT_PORT = 8484


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    is_read_only: bool = False
    preparation: Preparation = field(default_factory=Preparation)
    sample_interval_s: float = 2.0


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. Names other than localhost may resolve to any address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()
