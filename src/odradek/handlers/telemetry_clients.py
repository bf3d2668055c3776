"""What a connection says of its client, for subscriptions to client metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.telemetry.subscriptions import ClientFacts

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


LONGEST_CLIENT_ID = 256  # a client id may have 32 KiB, and thousands of instances are remembered


def client_facts(context: RequestContext) -> ClientFacts:
    connection = context.connection
    client_id = None if context.client_id is None else context.client_id[:LONGEST_CLIENT_ID]
    return ClientFacts(
        client_id, connection.software_name, connection.software_version, connection.host, connection.port
    )
