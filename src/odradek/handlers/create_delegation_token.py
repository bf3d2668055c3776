"""CreateDelegationToken, versions 1 to 3.

Departures from Kafka: more than 1000 renewers are refused, and so are more than 1,000 tokens of an owner and 10,000 in
all (POLICY_VIOLATION).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.delegation_tokens import NO_TIME, NewToken, TokenResult
from odradek.controller.requests import ChangeDelegationToken
from odradek.handlers.token_access import log_token_action, may_use_tokens
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.security.authorizer import Operation, ResourceType
from odradek.security.principals import Principal

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


async def handle(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse:
    requester = owner = context.connection.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    result = await _create(request, context, owner)
    log_token_action(context, "Create", result)
    token = result.token
    return CreateDelegationTokenResponse(
        error_code=result.error,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIME if token is None else token.issued_ms,
        expiry_timestamp_ms=NO_TIME if token is None else token.expires_ms,
        max_timestamp_ms=NO_TIME if token is None else token.max_ms,
        token_id="" if token is None else token.token_id,
        hmac=result.hmac,
    )


async def _create(request: CreateDelegationTokenRequest, context: RequestContext, owner: Principal) -> TokenResult:
    requester = context.connection.principal
    if not may_use_tokens(context):
        return TokenResult(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if owner != requester and not context.allows(Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return TokenResult(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    renewers = tuple(Principal(each.principal_type, each.principal_name) for each in request.renewers)
    now_ms = context.services.host.clock.now_ms()
    return await context.services.controller.ask(
        ChangeDelegationToken(NewToken(owner, requester, renewers, request.max_lifetime_ms, now_ms))
    )
