"""The right of a broker to send requests that only brokers send: ClusterAction, on the listener of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def is_broker(context: RequestContext) -> bool:
    is_broker_listener = context.connection.listener_name == context.services.config.inter_broker_listener_name
    return is_broker_listener and context.allows_on_cluster(Operation.CLUSTER_ACTION)
