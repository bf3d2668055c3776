"""SaslHandshake, versions 0 and 1: the client chooses a mechanism. After version 0, tokens come without headers.

On a listener without SASL, and after authentication, it is answered with ILLEGAL_SASL_STATE, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.authentication_steps import fail_authentication, times
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext


def handle(
    request: SaslHandshakeRequest, context: RequestContext
) -> SaslHandshakeResponse | Awaitable[SaslHandshakeResponse]:
    connection = context.connection
    authentication = connection.authentication
    if authentication is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    step = authentication.handshake(request.mechanism, context.api_version, times(context.services.host.clock))
    response = SaslHandshakeResponse(error_code=step.error, mechanisms=list(step.mechanisms))
    if step.failure is not None:
        return fail_authentication(response, step.failure, connection, context.services)
    if step.error is ErrorCode.NONE:
        connection.is_restricted = True  # also in a re-authentication
    return response
