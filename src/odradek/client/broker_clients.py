"""All connections of this broker to others: one for each broker and purpose.

A broker handles the requests of a connection one after another, so that long polls of replication and short requests
need connections of their own.
"""

from __future__ import annotations

import asyncio
import enum
from typing import TYPE_CHECKING

from odradek.client.broker_client import BrokerClient
from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.frame_buffer import ReceiveBuffers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.client.broker_address import BrokerAddress
    from odradek.client.login import Login
    from odradek.host.connecting import Network
    from odradek.host.host import Host


class Reachability(enum.Enum):
    REACHED = "accepts connections"
    REFUSED = "refuses connections"  # its process has ended, or it has not started to listen
    SILENT = "does not answer"  # it hangs, or the network is cut


class BrokerClients:
    """Invariant: of the registrations of one broker, only the newest that was asked for has clients."""

    def __init__(
        self, host: Host, client_id: str, secured_network: Network | None = None, login: Login | None = None
    ) -> None:
        """`secured_network` has TLS, if the listener of brokers does, and `login` SASL."""
        self._network = host.network
        self._secured_network = secured_network or host.network
        self._login = login
        self._client_id = client_id
        self._buffers = ReceiveBuffers()
        self._clients: dict[tuple[int, str], BrokerClient] = {}
        self._newest: dict[int, BrokerAddress] = {}
        self._reached: dict[int, BrokerAddress] = {}  # the last registrations that have accepted connections
        self._is_closed = False
        self._clock = host.clock
        self.last_answer_ms = host.clock.monotonic_ms()
        """When a broker last answered a request."""

    def to(self, address: BrokerAddress, purpose: str) -> BrokerClient:
        """The client for this registration of a broker. A newer registration closes the clients of the older one;
        BrokerUnavailable for an older one."""
        if self._is_closed:
            raise BrokerUnavailable("this broker is stopping")
        node_id = address.node_id
        newest = self._newest.get(node_id)
        if newest is not None and newest != address:
            if address.broker_epoch < newest.broker_epoch:
                raise BrokerUnavailable(f"{address} has registered again since")
            self.forget(node_id)
        self._newest[node_id] = address
        key = node_id, purpose
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = BrokerClient(
                address,
                self._secured_network,
                self._client_id,
                self._buffers,
                self._login,
                self._note_reached,
                self._note_answer,
            )
        return client

    def _note_answer(self) -> None:
        self.last_answer_ms = self._clock.monotonic_ms()

    def _note_reached(self, address: BrokerAddress) -> None:
        self._reached[address.node_id] = address

    def has_reached(self, address: BrokerAddress) -> bool:
        """Whether this registration has ever accepted a connection: it then refuses connections only after its end."""
        return self._reached.get(address.node_id) == address

    def forget(self, node_id: int) -> None:
        """Close the connections to a broker, for example because its registration has ended."""
        self._newest.pop(node_id, None)
        for key in [key for key in self._clients if key[0] == node_id]:
            self._clients.pop(key).close("the broker's registration has ended")

    def give_up(self, node_id: int, purposes: Iterable[str]) -> None:
        """Requests for these purposes on their way to a broker fail at once; later ones use a new connection."""
        for purpose in purposes:
            client = self._clients.pop((node_id, purpose), None)
            if client is not None:
                client.close("the broker may not answer any more")

    def close(self) -> None:
        self._is_closed = True
        for node_id in tuple(self._newest):
            self.forget(node_id)

    async def probe(self, address: BrokerAddress, *, timeout_ms: float) -> Reachability:
        """Open a connection and close it: a refused one shows that the broker's process has ended."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._network.connect(_Probe, address.host, address.port)
        except TimeoutError:
            return Reachability.SILENT
        except ConnectionRefusedError:
            return Reachability.REFUSED
        except OSError:
            return Reachability.SILENT
        self._note_reached(address)
        return Reachability.REACHED


class _Probe(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
