"""DeleteStreams, version 0: streams with all their topics. An API of Odradek's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import DeleteStreams
from odradek.handlers.stream_requests import describe_results, may_administer, split_by_access
from odradek.protocol.messages.delete_streams import DeleteStreamsRequest, DeleteStreamsResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: DeleteStreamsRequest, context: RequestContext) -> DeleteStreamsResponse:
    allowed, refused = split_by_access(context, request.paths, may_administer)
    paths = [path for path in dict.fromkeys(request.paths) if path in allowed]
    results = await context.services.controller.ask(DeleteStreams(paths, timeout_ms=request.timeout_ms))
    return DeleteStreamsResponse(results=describe_results([*results, *refused]))
