"""Notices brokers that have ended by their closed sockets: the kernel closes those of a killed process at once.

The controller holds a connection to every other broker. When one closes, it connects again; a broker that refuses this
connection is fenced, so that its partitions get other leaders before its ZooKeeper session expires. A broker that hangs
or is cut off refuses nothing, and one that starts has had no connection: for these the session decides.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.client.broker_address import BrokerAddress
from odradek.client.broker_clients import Reachability
from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.client.broker_client import BrokerClient
    from odradek.client.broker_clients import BrokerClients
    from odradek.controller.controller import Controller
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage

log = get_logger(__name__)

PURPOSE = "liveness"
CONNECT_TIMEOUT_MS = 5_000.0
RETRY_PAUSE_S = 0.2


class FailureDetector:
    """Runs on every broker of a cluster, and watches the others while this broker is the controller."""

    def __init__(
        self,
        cache: MetadataCache,
        clients: BrokerClients,
        listener_name: str,
        find_controller: Callable[[], Controller | None],
    ) -> None:
        self._cache = cache
        self._clients = clients
        self._listener_name = listener_name
        self._find_controller = find_controller
        self._watched: dict[BrokerAddress, asyncio.Task[None]] = {}

    def start(self) -> None:
        self._cache.subscribe(self._follow)
        self._follow(self._cache.image, self._cache.image)

    def stop(self) -> None:
        self._cache.unsubscribe(self._follow)
        for task in self._watched.values():
            task.cancel()
        self._watched.clear()

    def _follow(self, _before: MetadataImage, after: MetadataImage) -> None:
        wanted = set(self._others(after)) if after.controller_id == self._node_id else set()
        for address in [each for each in self._watched if each not in wanted]:
            self._watched.pop(address).cancel()
        for address in wanted - self._watched.keys():
            self._watched[address] = asyncio.ensure_future(self._watch(address))

    @property
    def _node_id(self) -> int:
        return self._cache.broker_config.node_id

    def _others(self, image: MetadataImage) -> list[BrokerAddress]:
        """The registrations of other brokers that are not fenced."""
        return [
            BrokerAddress(broker.node_id, broker.broker_epoch, endpoint.host, endpoint.port)
            for broker in image.brokers.values()
            if broker.node_id != self._node_id
            and not broker.is_fenced
            and (endpoint := broker.endpoints.get(self._listener_name)) is not None
        ]

    async def _watch(self, address: BrokerAddress) -> None:
        """Until the broker refuses a connection after it has accepted one, or is not watched any more."""
        while True:
            try:
                await self._until_closed(self._clients.to(address, PURPOSE))
            except BrokerUnavailable:
                await asyncio.sleep(RETRY_PAUSE_S)
                continue
            if await self._clients.probe(address, timeout_ms=CONNECT_TIMEOUT_MS) is Reachability.REFUSED:
                log.warning("a broker refuses connections; it is fenced", broker=address.node_id)
                await self._fence(address)
                return

    async def _until_closed(self, client: BrokerClient) -> None:
        closed = asyncio.Event()
        forget = client.on_closed(lambda _client, _reason: closed.set())
        try:
            await client.version_of(ApiVersionsRequest, timeout_ms=CONNECT_TIMEOUT_MS)
            if client.is_connected:
                await closed.wait()
        finally:
            forget()

    async def _fence(self, address: BrokerAddress) -> None:
        controller = self._find_controller()
        if controller is None or not controller.is_active:
            return
        try:
            await controller.cluster.fence_brokers({address.node_id: address.broker_epoch})
        except StoreError as problem:
            log.warning("a broker could not be fenced", broker=address.node_id, reason=str(problem))
