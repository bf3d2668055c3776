"""What a connection says of its client, for subscriptions to client metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.telemetry.subscriptions import ClientFacts

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def client_facts(context: RequestContext) -> ClientFacts:
    connection = context.connection
    return ClientFacts(
        context.client_id, connection.software_name, connection.software_version, connection.host, connection.port
    )
