"""The composition root: a node, the listeners through which clients reach it, and the order of start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING

from odradek import deferred
from odradek.configuration.config_types import ConfigError
from odradek.configuration.listeners import advertised_endpoints
from odradek.configuration.metrics_listener import is_exposed
from odradek.handlers import registry
from odradek.host.logs import get_logger
from odradek.host.network import ShortAnswers, machine_name
from odradek.host.receive_budget import ReceiveBudget
from odradek.server.broker_monitoring import Monitoring
from odradek.server.certificates import Certificates
from odradek.server.connection_limits import ConnectionLimits
from odradek.server.listener import Listener
from odradek.server.node import Node

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host

log = get_logger(__name__)

# Kafka's default of 50 suits a thread that only accepts connections. A thousand clients that connect at once, as after
# a restart, would overflow it, and a client whose connection attempt is dropped retries after a second.
BACKLOG = 4096
DRAIN_TIMEOUT_S = 5.0  # at shutdown, for clients to receive the answers to requests in flight
LOADING_PAUSE_S = 1.0  # before the handlers that few clients need
LOADED_WHEN_READY = (
    "odradek.controller.requests",
    "odradek.protocol.schema",
    "odradek.handlers.context",
    "odradek.log.partition_log",
    "odradek.replica.partition",
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.groups.offset_operations",
    "odradek.coordinator.groups.group_shard",
    "odradek.coordinator.groups.group_coordinator",
    "odradek.coordinator.transactions.transaction_coordinator",
    "odradek.replica.compaction",
    "odradek.telemetry.client_telemetry",
    "odradek.server.connection",
    "odradek.server.serving",
    "odradek.handlers.api_versions",
    "odradek.handlers.metadata",
    "odradek.handlers.produce",
    "odradek.handlers.fetch",
)
"""The modules that requests need, each with a few others, so that loading one delays a request by up to tens of
milliseconds."""


def load_whole_broker() -> None:
    """For a process that is forked for each broker."""
    for name in (*LOADED_WHEN_READY, "odradek.server.cluster_member"):
        deferred.load(name)
    for api in registry.build_cluster_registry().values():
        api.load(api)
    with contextlib.suppress(ImportError):  # only members of a cluster need it
        deferred.load("odradek.host.kazoo_client")


class Broker:
    def __init__(self, config: BrokerConfig, host: Host) -> None:
        self._config = config
        self._host = host
        self._certificates = Certificates(config, host)
        self._receive_budget = ReceiveBudget(config.queued_max_request_bytes)
        self._node = Node(
            config,
            host,
            self._certificates.broker_network,
            self._certificates.refusal,
            receive_budget=self._receive_budget,
        )
        self._listeners: list[Listener] = []
        self._monitoring = Monitoring(config, host, self._node, self._listeners)
        self._loading: asyncio.Task[None] | None = None
        self.ready_line = ""
        self.ready_facts: dict[str, object] = {}

    async def start(self) -> None:
        """Return when clients can be served; OSError, StoreError, StoreProblem or LogDirectoryError when the start
        failed.

        Addresses are bound first, so that a port that is in use leaves the data unchanged. Connections are accepted
        last, so that the first client finds this broker and its endpoints in the metadata."""
        config = self._config
        for name, protocol in config.listener_protocols.items():
            if protocol.has_tls and not config.listener_tls(name).key_store.is_set:
                reason = "a listener with TLS needs a key and a certificate: set ssl.keystore.location"
                raise ConfigError("listeners", name, reason)
        for ignored in config.ignored_properties:
            log.info("property ignored", name=ignored.name, reason=ignored.reason)
        limits, short_answers = ConnectionLimits(), ShortAnswers()
        for address in config.listeners:
            listener = Listener(
                address.name,
                self._host.clock,
                limits,
                short_answers,
                self._budget_of(address.name),
                largest_frame_bytes=config.socket_request_max_bytes,
                idle_limit_ms=config.connections_max_idle_ms,
                tls=self._certificates.of_listener(address.name),
                needs_authentication=config.listener_protocols[address.name].has_sasl,
            )
            await listener.bind(
                address.host,
                address.port,
                backlog=_explicit_size(config, "socket.listen.backlog.size") or BACKLOG,
                send_buffer_bytes=_explicit_size(config, "socket.send.buffer.bytes"),
                receive_buffer_bytes=_explicit_size(config, "socket.receive.buffer.bytes"),
            )
            self._listeners.append(listener)
        try:
            await self._monitoring.start()
            await self._node.start()
        except BaseException:
            self._monitoring.close()
            raise
        try:
            await self._accept_clients()
        except BaseException:
            await self.stop()
            raise

    def _budget_of(self, listener: str) -> ReceiveBudget:
        """Requests of brokers do not wait for those of clients: in a cluster, a listener that only brokers use has a
        budget of its own. A broker without a cluster has no other brokers, whatever its listeners are called."""
        config = self._config
        if config.zookeeper_connect and config.is_for_brokers_only(listener):
            return ReceiveBudget(config.queued_max_request_bytes)
        return self._receive_budget

    async def _accept_clients(self) -> None:
        config, node = self._config, self._node
        self._monitoring.joining()
        await self._certificates.load(lambda: node.broker_config)
        advertised = {listener.name: listener for listener in config.advertised_listeners}
        needs_name = any(advertised.get(each.name, each).is_wildcard for each in config.listeners)
        name = await self._host.workers.run(machine_name) if needs_name else ""
        bound_ports = {listener.name: listener.port for listener in self._listeners}
        endpoints = advertised_endpoints(config.listeners, config.advertised_listeners, bound_ports, name)
        await node.serve(endpoints)
        for listener in self._listeners:
            await listener.serve(
                lambda: node.compose_serving().dispatcher,
                lambda: node.broker_config,
                lambda: node.compose_serving().quotas.connections,
            )
        node.follow_settings(self._certificates.refresh)
        node.follow_isolation(self._refuse_clients)
        if exposed := config.open_listeners():
            log.warning(
                "anyone who reaches this machine can read, write and delete: clients are not authenticated",
                listeners=", ".join(exposed),
                advice="see docs/security.md, or listen on 127.0.0.1",
            )
        if is_exposed(config.metrics_listener):
            log.warning(
                "anyone who reaches this machine can read the metrics: names of topics, traffic, versions",
                setting=f"metrics.listener={config.metrics_listener}",
                advice="set metrics.listener=127.0.0.1:9644, or let a firewall admit the machine of Prometheus only",
            )
        self._monitoring.serving()
        addresses = ", ".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints.values())
        log_dirs = ", ".join(config.log_dirs)
        metrics_url = self._monitoring.url
        metrics = f"; metrics on {metrics_url}" if metrics_url else ""
        self.ready_line = f"odradek broker {config.node_id} is ready on {addresses} (data in {log_dirs}{metrics})"
        self.ready_facts = {
            "event": "ready",
            "node_id": config.node_id,
            "endpoints": [
                {"listener": name, "host": endpoint.host, "port": endpoint.port} for name, endpoint in endpoints.items()
            ],
            "log_dirs": [self._host.disk.absolute_path(path) for path in config.log_dirs],
            "metrics": metrics_url or None,
        }
        self._loading = asyncio.ensure_future(self._load_modules())
        self._loading.add_done_callback(self._loading_ended)

    async def _load_modules(self) -> None:
        """Load and compose what no client has needed, so that later requests need not wait for it: a little at a time,
        with clients' requests between. At the end no module is left that this process would read from the disk later,
        when another version may be there."""
        for name in LOADED_WHEN_READY:
            deferred.load(name)
            await asyncio.sleep(0)
        serving = self._node.compose_serving()
        await asyncio.sleep(LOADING_PAUSE_S)
        for _ in itertools.chain(serving.dispatcher.load_handlers(), deferred.load_bound()):
            await asyncio.sleep(0)

    def _loading_ended(self, loading: asyncio.Task[None]) -> None:
        if not loading.cancelled() and (problem := loading.exception()) is not None:
            self._node.cannot_serve(problem)

    def _refuse_clients(self, is_refusing: bool) -> None:
        """Close the connections of clients and refuse new ones, or accept clients again."""
        self._node.compose_serving().dispatcher.serves_no_clients = is_refusing
        if is_refusing:
            for listener in self._listeners:
                listener.close_connections()

    async def wait_for_failure(self) -> str:
        """Return the reason when the broker cannot continue."""
        return await self._node.fatal_failure

    async def stop(self) -> None:
        """Accept no more requests, answer those in flight, flush, write the clean-shutdown files."""
        self._monitoring.stopping()
        if self._loading is not None:
            self._loading.cancel()
        await self._node.hand_over()
        for listener in self._listeners:
            listener.finish()
        self._node.release_waiting_requests()
        await asyncio.gather(*(listener.close(DRAIN_TIMEOUT_S) for listener in self._listeners))
        await self._node.stop()
        self._monitoring.close()
        self._certificates.close()
        self._host.workers.close()


def _explicit_size(config: BrokerConfig, name: str) -> int | None:
    """The size that the user has set; None for -1 or no value. Kafka's defaults of 100 KB limit the throughput of fast
    networks, so the default is the operating system's."""
    size = int(config.static_values.get(name, "-1"))
    return size if size > 0 else None
