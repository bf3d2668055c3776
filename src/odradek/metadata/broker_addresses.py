"""The addresses at which brokers reach the other brokers of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client.broker_address import BrokerAddress

if TYPE_CHECKING:
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.image import MetadataImage


def broker_address(broker: BrokerImage | None, listener_name: str) -> BrokerAddress | None:
    """None for a broker that is not registered, or has no such listener."""
    endpoint = None if broker is None else broker.endpoints.get(listener_name)
    if broker is None or endpoint is None:
        return None
    return BrokerAddress(broker.node_id, broker.broker_epoch, endpoint.host, endpoint.port)


def other_addresses(image: MetadataImage, own_id: int, listener_name: str) -> list[BrokerAddress]:
    """The addresses of the other brokers that are not fenced."""
    return [
        address
        for broker in image.brokers.values()
        if broker.node_id != own_id
        and not broker.is_fenced
        and (address := broker_address(broker, listener_name)) is not None
    ]
