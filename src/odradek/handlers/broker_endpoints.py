"""The brokers that a client can reach: those that are not fenced and have the listener that the client is connected to,
each with its address on that listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.configuration.listeners import Endpoint
    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import BrokerImage

# Longer than a client with a socket timeout of 10 s waits for a broker that hangs.
LISTED_AFTER_FENCING_MS = 15_000.0
JAVA_CLIENT = "apache-kafka-java"


def reachable_brokers(
    context: RequestContext, *, include_fenced: bool = False
) -> dict[int, tuple[BrokerImage, Endpoint]]:
    """The brokers with this listener, by broker id, in the order of registration."""
    listener = context.connection.listener_name
    return {
        broker.node_id: (broker, broker.endpoints[listener])
        for broker in context.services.image.brokers.values()
        if listener in broker.endpoints and (include_fenced or not broker.is_fenced)
    }


def listed_brokers(context: RequestContext) -> dict[int, tuple[BrokerImage, Endpoint]]:
    """The brokers of a Metadata response: those that can be reached, and those that were fenced lately.

    librdkafka removes a broker that is missing in a response. If partitions are still assigned to it, it then finds
    their new leaders only with its next refresh, a second later. Kafka's Java clients do not need it. They get what
    Kafka answers once a broker has stopped: a broker that stops leaves the list with its leaderships, because its
    process may end before it is fenced."""
    if context.connection.software_name == JAVA_CLIENT:
        return {node_id: found for node_id, found in reachable_brokers(context).items() if found[0].is_active}
    metadata = context.services.metadata
    return {
        node_id: found
        for node_id, found in reachable_brokers(context, include_fenced=True).items()
        if not found[0].is_fenced or metadata.was_fenced_within(node_id, LISTED_AFTER_FENCING_MS)
    }


def find_endpoint(node_id: int, context: RequestContext) -> Endpoint | None:
    """The address of one broker, or None if the client cannot reach it."""
    broker = context.services.image.brokers.get(node_id)
    if broker is None or broker.is_fenced:
        return None
    return broker.endpoints.get(context.connection.listener_name)
