"""Requests to all other brokers that show whether any of them can be reached."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from odradek.client.broker_connection import BrokerUnavailable
from odradek.metadata.broker_addresses import other_addresses
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from odradek.client.broker_address import BrokerAddress
    from odradek.client.broker_clients import BrokerClients
    from odradek.metadata.cache import MetadataCache

PURPOSE = "contact"
TIMEOUT_MS = 1000.0
PAUSE_S = 0.5


class BrokerContacts:
    """An answer is noted by `BrokerClients.last_answer_ms`."""

    def __init__(self, metadata: MetadataCache, clients: BrokerClients, listener_name: str) -> None:
        self._metadata = metadata
        self._clients = clients
        self._listener_name = listener_name
        self._requests: dict[BrokerAddress, asyncio.Task[None]] = {}

    def request_all(self) -> None:
        """One request to each broker that is not fenced, unless an earlier one may still be answered."""
        own_id = self._metadata.broker_config.node_id
        for address in other_addresses(self._metadata.image, own_id, self._listener_name):
            earlier = self._requests.get(address)
            if earlier is None or earlier.done():
                self._requests[address] = asyncio.ensure_future(self._request(address))

    async def _request(self, address: BrokerAddress) -> None:
        with contextlib.suppress(BrokerUnavailable):
            client = self._clients.to(address, PURPOSE)
            await client.call(ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=TIMEOUT_MS, version=0)
        await asyncio.sleep(PAUSE_S)

    def stop(self) -> None:
        for request in self._requests.values():
            request.cancel()
