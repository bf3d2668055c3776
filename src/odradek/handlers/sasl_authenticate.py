"""SaslAuthenticate, versions 0 to 2: one message of the chosen mechanism, and its answer.

A failure is answered after `connection.failed.authentication.delay.ms`, and the connection is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.handlers.authentication_steps import fail_authentication, take_later_step, take_step
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from odradek.handlers.context import RequestContext
    from odradek.security.sasl.authentication import AuthenticateStep
    from odradek.security.sasl.outcome import Deferred


def handle(
    request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    connection = context.connection
    if connection.authentication is None:
        message = "SaslAuthenticate request received after successful authentication"
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
    token = bytes(request.auth_bytes)
    step = take_step(connection.authentication, token, connection, context.services)
    if step.deferred is not None:
        return _answer_later(step.deferred, token, context)
    return _answer(step, context)


async def _answer_later(deferred: Deferred, token: bytes, context: RequestContext) -> SaslAuthenticateResponse:
    answer = _answer(await take_later_step(deferred, token, context.connection, context.services), context)
    return answer if isinstance(answer, SaslAuthenticateResponse) else await answer


def _answer(
    step: AuthenticateStep, context: RequestContext
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    response = SaslAuthenticateResponse(
        error_code=step.error,
        error_message=step.message,
        auth_bytes=step.data,
        session_lifetime_ms=step.session_lifetime_ms,
    )
    if step.failure is not None:
        return fail_authentication(response, step.failure, context.connection, context.services)
    return response
