"""The quota of a consumer: its response, or an empty one in its place while the consumer is over its quota."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.handlers.fetch_sessions import FetchSession
    from odradek.handlers.quota_enforcement import RequestMeter

PARTITION_RESPONSE_BYTES = 60  # of a response without its records, for each partition


def charge_consumer(
    context: RequestContext, meter: RequestMeter, session: FetchSession, records_bytes: int, partition_count: int
) -> FetchResponse | None:
    """Charges the consumer for a response; returns None if it may have it. Otherwise returns the empty response that it
    gets, so that it fetches the same again after its throttle time."""
    if not meter.charge_fetch(records_bytes + partition_count * PARTITION_RESPONSE_BYTES):
        return None
    if session.is_incremental:
        return FetchResponse(error_code=ErrorCode.NONE, session_id=session.session_id, responses=[])
    # The first response of a session contains all its partitions, so the session does not begin with this one.
    context.services.fetch_sessions.end(session)
    return FetchResponse(error_code=ErrorCode.NONE, responses=[])
