"""Other brokers as a transaction coordinator, or the leader of a partition, reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.client.broker_connection import BrokerUnavailable
from odradek.metadata.broker_addresses import broker_address

if TYPE_CHECKING:
    from odradek.client.broker_address import BrokerAddress
    from odradek.client.broker_client import BrokerClient
    from odradek.client.broker_clients import BrokerClients
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage

# Markers of a partition whose replicas are slow have others behind them on the same connection: there are several, and
# one for markers that are repeated.
MARKERS = ("markers-0", "markers-1", "markers-2")
REPEATED_MARKERS = "repeated-markers"
CONFIRMATIONS = "transactions"
PURPOSES = (*MARKERS, REPEATED_MARKERS, CONFIRMATIONS)


class Peers(NamedTuple):
    """`listener_name` is the listener between brokers."""

    metadata: MetadataCache
    clients: BrokerClients
    listener_name: str

    def is_own(self, node_id: int) -> bool:
        return node_id == self.metadata.broker_config.node_id

    def address(self, node_id: int) -> BrokerAddress | None:
        """None for a broker that is not registered, or fenced."""
        broker = self.metadata.image.brokers.get(node_id)
        return None if broker is None or broker.is_fenced else broker_address(broker, self.listener_name)

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """A broker that was fenced may not answer for long: what it led has other leaders, which are asked instead."""
        for node_id, broker in after.brokers.items():
            earlier = before.brokers.get(node_id)
            if broker.is_fenced and earlier is not None and not earlier.is_fenced:
                self.clients.give_up(node_id, PURPOSES)

    def client(self, address: BrokerAddress, purpose: str) -> BrokerClient:
        """`BrokerUnavailable` if the broker has registered again, or is fenced."""
        if self.address(address.node_id) != address:
            raise BrokerUnavailable(f"{address} does not take part in the cluster")
        return self.clients.to(address, purpose)
