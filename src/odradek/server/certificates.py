"""The TLS contexts of this broker: those of its listeners, and that of its connections to other brokers.

Every few seconds a worker looks whether a file has changed, and a change of settings is followed at once, so that
certificates that were replaced on disk, or with `kafka-configs`, apply to new connections.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host import tls_connection, tls_network
from odradek.host.logs import get_logger
from odradek.security.tls import contexts
from odradek.security.tls.store_problem import StoreProblem
from odradek.server import listener_tls
from odradek.server.tls_context import RefreshedContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.clock import Timer
    from odradek.host.connecting import Network
    from odradek.host.host import Host
    from odradek.server.listener_tls import ListenerTls

log = get_logger(__name__)

CHECK_INTERVAL_MS = 3_000.0


class Certificates:
    def __init__(self, config: BrokerConfig, host: Host) -> None:
        self._host = host
        between_brokers = config.inter_broker_listener_name
        names = [name for name, protocol in config.listener_protocols.items() if protocol.has_tls]
        is_for_brokers_only = len(names) > 1  # with one listener, clients use it too
        # Of clients, and of brokers, whose handshakes do not wait for those of clients.
        self._resources = [tls_connection.TlsResources() for _ in ("clients", "brokers")] if names else []
        self._listeners = {
            name: listener_tls.ListenerTls(
                name,
                config,
                host,
                self._resources[name == between_brokers and is_for_brokers_only],
            )
            for name in names
        }
        self._contexts = [(name, listener.context) for name, listener in self._listeners.items()]
        self.broker_network: Network | None = None
        """TLS for connections to other brokers; None if their listener has none, or if there are no others."""
        if config.zookeeper_connect and between_brokers in self._listeners:
            context = RefreshedContext("other brokers", host, contexts.client_context)
            self._contexts.append((between_brokers, context))
            self.broker_network = tls_network.TlsNetwork(host.network, lambda: context.current, self._resources[1])
        self._timer: Timer | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()  # a check with the settings before a change must not undo the change
        self._config: Callable[[], BrokerConfig] = lambda: config

    async def load(self, config: Callable[[], BrokerConfig]) -> None:
        """Make the contexts, and keep them up to date until `close`. `StoreProblem` if a key or a certificate of the
        properties file cannot be used. One of a dynamic setting is replaced by that of the file, and tried again."""
        self._config = config
        for listener, context in self._contexts:
            await self._load(listener, context, config())
        if self._contexts:
            self._schedule()

    async def _load(self, listener: str, context: RefreshedContext, config: BrokerConfig) -> None:
        settings, static = config.listener_tls(listener), config.with_dynamic({}, {}).listener_tls(listener)
        try:
            await context.load(settings)
        except StoreProblem as problem:
            if settings == static:
                raise
            await context.load(static)
            log.error(
                "the dynamic settings of a certificate cannot be used: the properties file applies",
                listener=listener,
                reason=problem,
            )

    def of_listener(self, name: str) -> ListenerTls | None:
        return self._listeners.get(name)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._refreshing is not None:
            self._refreshing.cancel()
        for resources in self._resources:
            resources.close()

    async def refresh(self) -> None:
        async with self._one_at_a_time:
            for listener, context in self._contexts:
                await context.refresh(self._config().listener_tls(listener))

    async def refusal(self, config: BrokerConfig) -> str | None:
        """Why a context cannot be made with these settings; None if all can, or are the present ones."""
        for listener, context in self._contexts:
            reason = await context.refusal(config.listener_tls(listener))
            if reason is not None:
                return reason
        return None

    def _schedule(self) -> None:
        self._timer = self._host.clock.call_after(CHECK_INTERVAL_MS, self._check)

    def _check(self) -> None:
        self._refreshing = asyncio.ensure_future(self._refresh_and_schedule())

    async def _refresh_and_schedule(self) -> None:
        try:
            await self.refresh()
        except Exception as problem:
            log.error("certificates could not be checked for changes; retrying", exc_info=problem)
        self._schedule()
