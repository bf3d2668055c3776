"""CreateStreams, version 0: streams of topics. An API of Odradek's own. It needs Create on the cluster, or on the names
of the stream's topics. The client is the stream's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import CreateStreams
from odradek.handlers.stream_requests import describe_results, read_change, split_by_access
from odradek.metadata.streams import TOPIC_SEPARATOR
from odradek.protocol.messages.create_streams import CreateStreamsRequest, CreateStreamsResponse
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: CreateStreamsRequest, context: RequestContext) -> CreateStreamsResponse:
    allowed, refused = split_by_access(context, [stream.path for stream in request.streams], _may_create)
    results = await context.services.controller.ask(
        CreateStreams(
            [read_change(stream) for stream in request.streams if stream.path in allowed],
            owner=context.connection.principal.name,
            validate_only=request.validate_only,
            timeout_ms=request.timeout_ms,
        )
    )
    return CreateStreamsResponse(results=describe_results([*results, *refused]))


def _may_create(context: RequestContext, path: str) -> bool:
    if context.allows_on_cluster(Operation.CREATE, logs=False):
        return True
    return context.allows_on_topic(Operation.CREATE, path + TOPIC_SEPARATOR)
