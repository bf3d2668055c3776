"""ExpireDelegationToken, versions 1 and 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.delegation_tokens import NO_TIME, TokenExpiry
from odradek.controller.requests import ChangeDelegationToken
from odradek.handlers.token_access import log_token_action, may_use_tokens
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
    if not may_use_tokens(context):
        return ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
        )
    services, principal = context.services, context.connection.principal
    expiry = TokenExpiry(bytes(request.hmac), principal, request.expiry_time_period_ms, services.host.clock.now_ms())
    result = await services.controller.ask(ChangeDelegationToken(expiry))
    log_token_action(context, "Expire", result)
    return ExpireDelegationTokenResponse(error_code=result.error, expiry_timestamp_ms=result.expires_ms)
