"""The addresses that the broker listens on, and those that it advertises to clients. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.config_types import ConfigError
from odradek.conventions.addresses import is_loopback
from odradek.security.protocols import SecurityProtocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

WILDCARD_HOSTS = frozenset({"", "0.0.0.0", "::", "0:0:0:0:0:0:0:0"})

_LISTENER = re.compile(r"(?P<name>\w+)://(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^\[\]:/]*)):(?P<port>-?[0-9]+)", re.ASCII)
_FORM = "expected NAME://host:port, several of them separated by commas, for example PLAINTEXT://127.0.0.1:9092"


class Listener(NamedTuple):
    """A named address. An empty host stands for every interface, port 0 for any free port."""

    name: str
    host: str
    port: int

    @property
    def is_wildcard(self) -> bool:
        return self.host in WILDCARD_HOSTS

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)


class Endpoint(NamedTuple):
    host: str
    port: int


def parse_listeners(property_name: str, entries: Sequence[str]) -> tuple[Listener, ...]:
    """The listeners of `listeners` or `advertised.listeners`, with names in upper case as in Kafka."""
    listeners: list[Listener] = []
    for entry in entries:
        match = _LISTENER.fullmatch(entry)
        if match is None:
            raise ConfigError(property_name, entry, _FORM)
        port = int(match["port"][:6])
        if not 0 <= port <= 65535:
            raise ConfigError(property_name, entry, "the port must lie between 0 and 65535")
        host = match["host"] if match["ipv6"] is None else match["ipv6"]
        listeners.append(Listener(match["name"].upper(), host, port))
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigError(property_name, ",".join(entries), "each listener must have a different name")
    return tuple(listeners)


def check_listen_addresses(listeners: Sequence[Listener], text: str) -> None:
    """Two listeners may share a port only as IPv4 and IPv6 (KIP-797), or when both are 0."""
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port != 0:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        families = {":" in listener.host for listener in sharing}
        if len(sharing) > 2 or (len(sharing) == 2 and len(families) == 1):
            raise ConfigError("listeners", text, f"each listener must have a different port, but {port} is used twice")
    if not listeners:
        raise ConfigError("listeners", text, f"there must be at least one listener for clients; {_FORM}")


def check_advertised_listeners(advertised: Sequence[Listener], listeners: Sequence[Listener], text: str) -> None:
    names = [listener.name for listener in listeners]
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(
                "advertised.listeners", text, f"{listener.name} is not one of the listeners: {', '.join(names)}"
            )
        if listener.host and listener.is_wildcard:
            raise ConfigError(
                "advertised.listeners",
                text,
                f"clients cannot connect to {listener.host}; use an address or a host name that they can reach",
            )


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """`listener.security.protocol.map`: which protocol each listener speaks."""
    protocols: dict[str, SecurityProtocol] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = (part.strip() for part in entry.rpartition(":"))
        if not separator or protocol.upper() not in SecurityProtocol.__members__:
            raise ConfigError(
                "listener.security.protocol.map",
                text,
                "expected NAME:PROTOCOL pairs separated by commas, with one of "
                f"{', '.join(SecurityProtocol.__members__)}",
            )
        protocols[name.upper()] = SecurityProtocol[protocol.upper()]
    return protocols


def listener_protocols(
    listeners: Sequence[Listener], protocols: Mapping[str, SecurityProtocol]
) -> dict[str, SecurityProtocol]:
    """The protocol of each listener. Only listeners in use matter: Kafka's sample files map many that are not."""
    chosen: dict[str, SecurityProtocol] = {}
    for listener in listeners:
        protocol = protocols.get(listener.name)
        if protocol is None:
            raise ConfigError(
                "listeners",
                listener.name,
                f"no security protocol is known for this listener; add {listener.name}:PLAINTEXT "
                "to listener.security.protocol.map",
            )
        chosen[listener.name] = protocol
    return chosen


def without_controllers(
    listeners: Sequence[Listener], controller_names: Collection[str]
) -> tuple[tuple[Listener, ...], tuple[Listener, ...]]:
    """The listeners of clients, and those of a KRaft controller, which Odradek does not use."""
    dropped = {name.upper() for name in controller_names}
    return (
        tuple(listener for listener in listeners if listener.name not in dropped),
        tuple(listener for listener in listeners if listener.name in dropped),
    )


def advertised_endpoints(
    listeners: Sequence[Listener],
    advertised: Sequence[Listener],
    bound_ports: Mapping[str, int],
    machine_name: str,
) -> dict[str, Endpoint]:
    """The addresses that clients of each listener connect to, once the sockets are bound.

    What the user says in `advertised.listeners` wins; then the host that is bound; a wildcard is no address, so the
    machine's own name stands for it. The port is the one the kernel gave, which matters when port 0 was asked for.
    """
    by_name = {listener.name: listener for listener in advertised}
    endpoints = {}
    for listener in listeners:
        chosen = by_name.get(listener.name, listener)
        host = machine_name if chosen.is_wildcard else chosen.host
        port = (
            chosen.port if listener.name in by_name and chosen.port else bound_ports.get(listener.name, listener.port)
        )
        endpoints[listener.name] = Endpoint(host, port)
    return endpoints
