"""EditStreams, version 0: defaults, settings and permissions of streams. An API of Odradek's own. An edit applies to
all topics of the stream in one commit, whatever their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.requests import EditStreams
from odradek.handlers.stream_requests import (
    describe_results,
    may_administer,
    may_change_permissions,
    read_change,
    split_by_access,
)
from odradek.protocol.messages.edit_streams import EditStreamsRequest, EditStreamsResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: EditStreamsRequest, context: RequestContext) -> EditStreamsResponse:
    with_permissions = {stream.path for stream in request.streams if stream.permissions}

    def may_edit(context: RequestContext, path: str) -> bool:
        return may_administer(context, path) and (path not in with_permissions or may_change_permissions(context, path))

    allowed, refused = split_by_access(context, [stream.path for stream in request.streams], may_edit)
    results = await context.services.controller.ask(
        EditStreams(
            [read_change(stream) for stream in request.streams if stream.path in allowed],
            validate_only=request.validate_only,
            timeout_ms=request.timeout_ms,
        )
    )
    return EditStreamsResponse(results=describe_results([*results, *refused]))
