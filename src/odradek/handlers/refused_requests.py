"""Requests that the controller could not decide: answered with an error for each resource, as their handlers do it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.controller.channel import RefusingChannel
from odradek.handlers.context import RequestContext
from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handle = Callable[[Any, RequestContext], Awaitable[Any]]

log = get_logger(__name__)


async def refuse_request(handle: Handle, request: Any, context: RequestContext, refusal: Refusal) -> Any:
    """The response to a request of which the controller refuses everything."""
    services = replace(context.services, controller=RefusingChannel(refusal))
    return await handle(
        request,
        RequestContext(services, context.connection, context.api_version, context.client_id, context.api_name),
    )


def refusing_store_failures(handle: Handle) -> Handle:
    """A handler that answers REQUEST_TIMED_OUT when the metadata cannot be written: the change may have been made, and
    clients may retry. In a cluster the forwarder retries."""

    async def handle_or_refuse(request: Any, context: RequestContext) -> Any:
        try:
            return await handle(request, context)
        except StoreError as problem:
            if context.services.forwarder is not None:
                raise
            log.error("metadata could not be written", api=context.api_name, reason=problem)
            refusal = Refusal(ErrorCode.REQUEST_TIMED_OUT, f"The metadata could not be written: {problem}")
            return await refuse_request(handle, request, context, refusal)

    return handle_or_refuse
