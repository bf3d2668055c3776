"""RenewDelegationToken, versions 1 and 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.delegation_tokens import NO_TIME, TokenRenewal
from odradek.controller.requests import ChangeDelegationToken
from odradek.handlers.token_access import log_token_action, may_use_tokens
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
    if not may_use_tokens(context):
        return RenewDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
        )
    services, principal = context.services, context.connection.principal
    renewal = TokenRenewal(bytes(request.hmac), principal, request.renew_period_ms, services.host.clock.now_ms())
    result = await services.controller.ask(ChangeDelegationToken(renewal))
    log_token_action(context, "Renew", result)
    return RenewDelegationTokenResponse(error_code=result.error, expiry_timestamp_ms=result.expires_ms)
