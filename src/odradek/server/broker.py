"""The composition root: a node, the listeners through which clients reach it, and the order of start and stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.configuration.listeners import advertised_endpoints
from odradek.host.logs import get_logger
from odradek.host.network import ShortAnswers, machine_name
from odradek.server.connection_limits import ConnectionLimits
from odradek.server.listener import Listener
from odradek.server.node import Node

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host

log = get_logger(__name__)

# Kafka's 50 suits a thread that does nothing but accept. Here a thousand clients who come at once (every restart) would
# overflow it, and whose call is dropped tries again after a second.
BACKLOG = 4096
PATIENCE_S = 5.0  # how long clients have to take the answers to what is in flight at shutdown


class Broker:
    def __init__(self, config: BrokerConfig, host: Host) -> None:
        self._config = config
        self._host = host
        self._node = Node(config, host)
        self._listeners: list[Listener] = []
        self.ready_line = ""
        self.ready_facts: dict[str, object] = {}

    async def start(self) -> None:
        """Return when clients can be served; OSError, StoreError or LogDirectoryError tell why they cannot.

        Addresses come first: a port that is in use must leave no trace in the data. Clients come last: whoever is let
        in is told where this broker is."""
        config = self._config
        for ignored in config.ignored_properties:
            log.info("property ignored", name=ignored.name, reason=ignored.reason)
        limits, short_answers = ConnectionLimits(), ShortAnswers()
        for address in config.listeners:
            listener = Listener(
                address.name,
                self._host.clock,
                limits,
                short_answers,
                largest_frame_bytes=config.socket_request_max_bytes,
                idle_limit_ms=config.connections_max_idle_ms,
            )
            await listener.bind(
                address.host,
                address.port,
                backlog=_chosen_size(config, "socket.listen.backlog.size") or BACKLOG,
                send_buffer_bytes=_chosen_size(config, "socket.send.buffer.bytes"),
                receive_buffer_bytes=_chosen_size(config, "socket.receive.buffer.bytes"),
            )
            self._listeners.append(listener)
        await self._node.start()
        try:
            await self._let_clients_in()
        except BaseException:
            await self.stop()
            raise

    async def _let_clients_in(self) -> None:
        config, node = self._config, self._node
        told_by_user = {listener.name: listener for listener in config.advertised_listeners}
        needs_name = any(told_by_user.get(each.name, each).is_wildcard for each in config.listeners)
        name = await self._host.workers.run(machine_name) if needs_name else ""
        bound_ports = {listener.name: listener.port for listener in self._listeners}
        endpoints = advertised_endpoints(config.listeners, config.advertised_listeners, bound_ports, name)
        await node.serve(endpoints)
        for listener in self._listeners:
            await listener.serve(node.dispatcher, lambda: node.broker_config)
        told = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints.values())
        self.ready_line = f"odradek broker {config.node_id} is ready on {told} (data in {', '.join(config.log_dirs)})"
        self.ready_facts = {
            "event": "ready",
            "node_id": config.node_id,
            "endpoints": [
                {"listener": name, "host": endpoint.host, "port": endpoint.port} for name, endpoint in endpoints.items()
            ],
            "log_dirs": [self._host.disk.absolute_path(path) for path in config.log_dirs],
        }

    async def wait_for_failure(self) -> str:
        """Return when the broker can serve nobody any more, with the reason."""
        return await self._node.fatal_failure

    async def stop(self) -> None:
        """Answer what is in flight, take nothing new, flush, leave the clean-shutdown mark."""
        for listener in self._listeners:
            listener.finish()
        self._node.release_waiting_requests()
        await asyncio.gather(*(listener.close(PATIENCE_S) for listener in self._listeners))
        await self._node.stop()
        self._host.workers.close()


def _chosen_size(config: BrokerConfig, name: str) -> int | None:
    """Kafka's defaults of 100 KB are for networks of 2011: only what the user chose is set, and -1 is no choice."""
    size = int(config.static_values.get(name, "-1"))
    return size if size > 0 else None
