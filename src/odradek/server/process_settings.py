"""The settings of several broker processes on one machine, made from those of one broker. Pure.

The processes have consecutive node ids and ports, and each has a subdirectory of each log directory and of the
directory of the audit log. A subdirectory stays on the disk of its log directory when that is a mount point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from odradek.configuration.metrics_listener import address_text, metrics_address
from odradek.conventions.properties_file import PropertiesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.configuration.listeners import Listener

LARGEST_PORT = 65535


class ProcessSettings(NamedTuple):
    node_id: int
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    log_dirs: tuple[str, ...]
    metrics_listener: str = ""
    audit_log_path: str = ""

    def overrides(self) -> list[str]:
        """Properties as `name=value`."""
        properties = {
            "node.id": str(self.node_id),
            "broker.id": str(self.node_id),
            "listeners": _listener_text(self.listeners),
            "log.dirs": ",".join(self.log_dirs),
            "metrics.listener": self.metrics_listener,
        }
        if self.advertised_listeners:
            properties["advertised.listeners"] = _listener_text(self.advertised_listeners)
        if self.audit_log_path:
            properties["audit.log.path"] = self.audit_log_path
        return [f"{name}={value}" for name, value in properties.items()]

    def with_ports(self, ports: dict[str, int]) -> ProcessSettings:
        """Ports by listener that the kernel has chosen: a process that is started again keeps its addresses."""
        advertised = {listener.name for listener in self.advertised_listeners}
        listeners = tuple(
            each._replace(port=ports.get(each.name, 0)) if not each.port and each.name not in advertised else each
            for each in self.listeners
        )
        return self._replace(listeners=listeners)


def process_settings(config: BrokerConfig, count: int) -> list[ProcessSettings]:
    """Settings of `count` processes; PropertiesError if the configuration does not allow several brokers."""
    if not config.zookeeper_connect:
        raise PropertiesError(
            f"--processes {count} needs zookeeper.connect, through which the brokers agree: run `odradek zookeeper`, "
            "and add --override zookeeper.connect=127.0.0.1:2181"
        )
    _check_ports("listeners", config.listeners, count)
    _check_ports("advertised.listeners", config.advertised_listeners, count)
    return [
        ProcessSettings(
            config.node_id + number,
            _shifted(config.listeners, number),
            _shifted(config.advertised_listeners, number),
            tuple(process_directory(path, config.node_id + number) for path in config.log_dirs),
            _shifted_metrics_listener(config.metrics_listener, number),
            _audit_log_path(cast("str | None", config.values["audit.log.path"]), config.node_id + number),
        )
        for number in range(count)
    ]


def _shifted_metrics_listener(text: str, number: int) -> str:
    """The next port for each process, as for listeners; 0 stays one that the kernel picks."""
    address = metrics_address(text)
    if address is None or not address.port:
        return text
    if address.port + number > LARGEST_PORT:
        raise PropertiesError(
            f"metrics.listener: process {number + 1} needs port {address.port + number}: choose a lower one"
        )
    return address_text(address.host, address.port + number)


def _audit_log_path(path: str | None, node_id: int) -> str:
    """Processes must not share the file: each writes at the position that it knows as the end."""
    if not path:
        return ""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}broker-{node_id}/{name}"


def process_directory(log_dir: str, node_id: int) -> str:
    return f"{log_dir.rstrip('/')}/broker-{node_id}"


def _check_ports(name: str, listeners: Sequence[Listener], count: int) -> None:
    used: dict[tuple[str, int], str] = {}
    for listener in listeners:
        for port in range(listener.port, listener.port + count) if listener.port else ():
            if port > LARGEST_PORT:
                raise PropertiesError(
                    f"{name}: {count} processes need the ports {listener.port} to {listener.port + count - 1}, and "
                    f"the largest is {LARGEST_PORT}: choose a lower one"
                )
            other = used.setdefault((listener.host, port), listener.name)
            if other != listener.name:
                raise PropertiesError(
                    f"{name}: each of {count} processes takes the next port, and {other} and {listener.name} would "
                    f"both use {port}: leave at least {count} ports between them"
                )


def _shifted(listeners: Sequence[Listener], number: int) -> tuple[Listener, ...]:
    return tuple(each._replace(port=each.port + number) if each.port else each for each in listeners)


def _listener_text(listeners: Sequence[Listener]) -> str:
    return ",".join(
        f"{each.name}://[{each.host}]:{each.port}" if ":" in each.host else f"{each.name}://{each.host}:{each.port}"
        for each in listeners
    )
