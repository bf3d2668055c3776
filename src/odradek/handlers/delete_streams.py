"""DeleteStreams, version 0: streams with all their topics. An API of Odradek's own. Its partitions count for the quota
of changes, as those of DeleteTopics do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import DeleteStreams
from odradek.handlers.stream_requests import describe_results, may_delete, split_by_access
from odradek.protocol.messages.delete_streams import DeleteStreamsRequest, DeleteStreamsResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: DeleteStreamsRequest, context: RequestContext) -> DeleteStreamsResponse:
    allowed, refused = split_by_access(context, request.paths, may_delete)
    paths = [path for path in dict.fromkeys(request.paths) if path in allowed]
    mutations = context.mutation_quota(strict_from=0)
    deletion = DeleteStreams(paths, mutations=mutations, timeout_ms=request.timeout_ms)
    results = await context.services.controller.ask(deletion)
    return DeleteStreamsResponse(throttle_time_ms=mutations.throttle_ms, results=describe_results([*results, *refused]))
