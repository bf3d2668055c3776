"""DescribeDelegationToken, versions 1 to 3: the tokens of the given owners that the client may see."""

from __future__ import annotations

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


def handle(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
    secret = context.services.config.delegation_token_secret_key
    if not may_use_tokens(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not secret:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {Principal(each.principal_type, each.principal_name) for each in request.owners}
    tokens = [
        each for each in context.services.image.users.delegation_tokens.values() if _is_visible(each, owners, context)
    ]
    return DescribeDelegationTokenResponse(tokens=[_describe(token, secret) for token in tokens])


def _is_visible(token: DelegationToken, owners: set[Principal] | None, context: RequestContext) -> bool:
    if owners is not None and not any(map(token.may_be_renewed_by, owners)):
        return False
    return (
        token.may_be_renewed_by(context.connection.principal)
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
