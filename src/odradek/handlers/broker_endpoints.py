"""The brokers that a client can reach: those that are not fenced and have the listener that the client is connected to,
each with its address on that listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.configuration.listeners import Endpoint
    from odradek.handlers.context import RequestContext
    from odradek.metadata.entities import BrokerImage


def reachable_brokers(
    context: RequestContext, *, include_fenced: bool = False
) -> dict[int, tuple[BrokerImage, Endpoint]]:
    """By broker id, in the order of registration."""
    listener = context.connection.listener_name
    return {
        broker.node_id: (broker, broker.endpoints[listener])
        for broker in context.services.image.brokers.values()
        if listener in broker.endpoints and (include_fenced or not broker.is_fenced)
    }


def find_endpoint(node_id: int, context: RequestContext) -> Endpoint | None:
    """The address of one broker, or None if the client cannot reach it."""
    broker = context.services.image.brokers.get(node_id)
    if broker is None or broker.is_fenced:
        return None
    return broker.endpoints.get(context.connection.listener_name)
