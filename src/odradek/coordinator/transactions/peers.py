"""Other brokers as a transaction coordinator, or the leader of a partition, reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.client.broker_address import BrokerAddress

if TYPE_CHECKING:
    from odradek.client.broker_client import BrokerClient
    from odradek.client.broker_clients import BrokerClients
    from odradek.metadata.cache import MetadataCache


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
        endpoint = None if broker is None else broker.endpoints.get(self.listener_name)
        if broker is None or endpoint is None or broker.is_fenced:
            return None
        return BrokerAddress(node_id, broker.broker_epoch, endpoint.host, endpoint.port)

    def client(self, address: BrokerAddress, purpose: str) -> BrokerClient:
        """`BrokerUnavailable` if the broker has registered again."""
        return self.clients.to(address, purpose)
