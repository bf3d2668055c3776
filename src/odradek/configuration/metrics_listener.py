"""The address of `metrics.listener`. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.configuration.listeners import Endpoint
from odradek.conventions.addresses import is_loopback

if TYPE_CHECKING:
    from odradek.configuration.config_types import Value

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\[\]:/\s]*)):(?P<port>[0-9]{1,5})", re.ASCII)
LARGEST_PORT = 65535


def metrics_address(text: str) -> Endpoint | None:
    """The host and port; None if metrics are not served. ValueError for another text."""
    if not text.strip():
        return None
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["port"]) > LARGEST_PORT:
        raise ValueError("must be host:port, for example 127.0.0.1:9644, or empty to serve no metrics over HTTP")
    return Endpoint(match["host"] if match["ipv6"] is None else match["ipv6"], int(match["port"]))


def is_exposed(text: str) -> bool:
    """Whether other machines can connect. Nobody is authenticated there."""
    address = metrics_address(text)
    return address is not None and not is_loopback(address.host)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_metrics_listener(value: Value) -> str | None:
    """A validator of settings: what is wrong with the value."""
    try:
        metrics_address(str(value or ""))
    except ValueError as problem:
        return str(problem)
    return None
