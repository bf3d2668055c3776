"""The end of a controlled shutdown: the other brokers must know the new leaders before this one closes its connections.

A client that loses its connection asks any broker for the new leader. With an old answer it would try the closed
broker again, and refresh its metadata only after a second or more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.logs import get_logger
from odradek.metadata.broker_addresses import broker_address
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from odradek.client.broker_address import BrokerAddress
    from odradek.client.broker_clients import BrokerClients
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage

log = get_logger(__name__)

PURPOSE = "hand-over"
METADATA_VERSION = 12
TIMEOUT_S = 2.0  # a broker that has not applied the commit by then is suspended or cut off
PAUSE_S = 0.01


def last_led_topic(image: MetadataImage, node_id: int) -> str | None:
    """The topic whose leaders are the last to change: repairs follow the order of topics, and may take several
    commits."""
    led = (
        topic.name
        for topic in reversed(tuple(image.topics.values()))
        if any(partition.leader == node_id for partition in topic.partitions)
    )
    return next(led, None)


async def wait_until_replaced(topic: str, metadata: MetadataCache, clients: BrokerClients, listener_name: str) -> None:
    """Return when all active brokers, this one included, know other leaders in place of this one, or after a while."""
    node_id = metadata.broker_config.node_id
    others = [
        address
        for broker in metadata.image.brokers.values()
        if broker.node_id != node_id
        and broker.is_active
        and (address := broker_address(broker, listener_name)) is not None
    ]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(
                _wait_for_own_metadata(topic, metadata, node_id),
                *(_wait_for_broker(topic, address, clients, node_id) for address in others),
            )
    except TimeoutError:
        log.warning("not all brokers know the new leaders of what this broker led", topic=topic)


async def _wait_for_own_metadata(topic: str, metadata: MetadataCache, node_id: int) -> None:
    while (known := metadata.image.topics.get(topic)) is not None:
        if all(partition.leader != node_id for partition in known.partitions):
            return
        await asyncio.sleep(PAUSE_S)


async def _wait_for_broker(topic: str, address: BrokerAddress, clients: BrokerClients, node_id: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    while True:
        try:
            client = clients.to(address, PURPOSE)
            response = await client.call(
                request, MetadataResponse, timeout_ms=TIMEOUT_S * 1000, version=METADATA_VERSION
            )
        except BrokerUnavailable:
            return  # clients do not reach it either
        partitions = [partition for found in response.topics for partition in found.partitions]
        if all(partition.leader_id != node_id for partition in partitions):
            return
        await asyncio.sleep(PAUSE_S)
