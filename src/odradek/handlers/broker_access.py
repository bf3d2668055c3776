"""The right of a broker to send what only brokers send: ClusterAction, on the listener of brokers.

Without access control lists every client has ClusterAction. A listener of its own (`inter.broker.listener.name`) that
clients cannot reach is then what keeps them from pretending to be brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def is_broker(context: RequestContext, *, logs: bool = True) -> bool:
    return is_on_broker_listener(context) and context.allows_on_cluster(Operation.CLUSTER_ACTION, logs=logs)


def is_broker_request(context: RequestContext, *, logs: bool = True) -> bool:
    """The same for a request that only brokers send: it is exempt from the quotas of clients. Its connection is not: on
    a plain cluster brokers and clients have the same principal, User:ANONYMOUS, and may use the same listener."""
    if not is_broker(context, logs=logs):
        return False
    if context.meter is not None:
        context.meter.exempt()
    return True


def is_on_broker_listener(context: RequestContext) -> bool:
    return context.connection.listener_name == context.services.config.inter_broker_listener_name
