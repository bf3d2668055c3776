"""The composition root: a node, the listeners through which clients reach it, and the order of start and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.host.network import machine_name
from odradek.metadata.listeners import advertised_endpoints
from odradek.server.listener import Listener
from odradek.server.node import Node

if TYPE_CHECKING:
    from odradek.host.host import Host
    from odradek.metadata.broker_configs import BrokerConfig

log = get_logger(__name__)

PATIENCE_S = 5.0  # how long clients have to take the answers to what is in flight at shutdown


class Broker:
    def __init__(self, config: BrokerConfig, host: Host) -> None:
        self._config = config
        self._host = host
        self._node = Node(config, host)
        self._listeners: list[Listener] = []
        self.ready_line = ""

    async def start(self) -> None:
        """Return when clients can be served; OSError, StoreError or LogDirectoryError tell why they cannot."""
        config = self._config
        for ignored in config.ignored_properties:
            log.info("property ignored", name=ignored.name, reason=ignored.reason)
        await self._node.start()
        bound_ports = {}
        for address in config.listeners:
            listener = Listener(
                address.name,
                self._node.dispatcher,
                self._host.clock,
                largest_frame_bytes=config.socket_request_max_bytes,
                idle_limit_ms=config.connections_max_idle_ms,
                connection_limit=config.max_connections,
                connection_limit_per_ip=config.max_connections_per_ip,
            )
            await listener.open(
                address.host,
                address.port,
                backlog=config.socket_listen_backlog_size,
                send_buffer_bytes=_chosen_size(config, "socket.send.buffer.bytes"),
                receive_buffer_bytes=_chosen_size(config, "socket.receive.buffer.bytes"),
            )
            self._listeners.append(listener)
            bound_ports[address.name] = listener.port
        needs_name = any(address.is_wildcard for address in config.listeners)
        name = await self._host.workers.run(machine_name) if needs_name else ""
        endpoints = advertised_endpoints(config.listeners, config.advertised_listeners, bound_ports, name)
        await self._node.serve(endpoints)
        told = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints.values())
        self.ready_line = f"odradek broker {config.node_id} is ready on {told} (data in {', '.join(config.log_dirs)})"

    async def stop(self) -> None:
        """Answer what is in flight, take nothing new, flush, leave the clean-shutdown mark."""
        self._node.release_waiting_requests()
        for listener in self._listeners:
            await listener.close(PATIENCE_S)
        await self._node.stop()
        self._host.workers.close()


def _chosen_size(config: BrokerConfig, name: str) -> int | None:
    """Kafka's default of 100 KB is for networks of 2011: only what the user chose is set, and -1 is no choice."""
    size = int(config.static_values.get(name, "-1"))
    return size if size > 0 else None
