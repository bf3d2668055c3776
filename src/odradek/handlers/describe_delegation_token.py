"""DescribeDelegationToken, versions 1 to 3: the tokens of the given owners that the client may see."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.handlers.token_access import may_use_tokens
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.security.authorizer import Operation, ResourceType
from odradek.security.delegation_tokens import token_hmac
from odradek.security.principals import Principal

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext
    from odradek.security.delegation_tokens import DelegationToken

TOKENS_AT_ONCE = 250  # others get their turn after a millisecond or two


async def handle(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
    secret = context.services.config.delegation_token_secret_key
    if not may_use_tokens(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not secret:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {Principal(each.principal_type, each.principal_name) for each in request.owners}
    described = []
    for index, token in enumerate(context.services.image.users.delegation_tokens.values(), 1):
        if (owners is None or token.concerns(owners)) and _is_visible(token, context):
            described.append(_describe(token, secret))
        if not index % TOKENS_AT_ONCE:
            await asyncio.sleep(0)
    return DescribeDelegationTokenResponse(tokens=described)


def _is_visible(token: DelegationToken, context: RequestContext) -> bool:
    return (
        token.concerns({context.connection.principal})
        or context.allows(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, logs=False)
        or context.allows(Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner), logs=False)
    )


def _describe(token: DelegationToken, secret: str) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in token.renewers
        ],
    )
