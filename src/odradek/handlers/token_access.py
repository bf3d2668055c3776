"""Who may create, renew, expire and describe delegation tokens: clients that have authenticated, but not by a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.security.audit.events import Action
from odradek.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from odradek.controller.decisions.delegation_tokens import TokenResult
    from odradek.handlers.context import RequestContext


_UNLOGGED = (ErrorCode.NOT_CONTROLLER, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)  # retried; a denial


def log_token_action(context: RequestContext, operation: str, result: TokenResult) -> None:
    """A line of the audit log. The HMAC, with which a client names a token, is a secret: the line has the id."""
    if not context.services.audit.is_on or result.error in _UNLOGGED:
        return
    token, error = result.token, None if result.error is ErrorCode.NONE else result.error.name
    details: dict[str, object] | None = None if token is None else {"owner": str(token.owner)}
    name = "(unknown)" if token is None else token.token_id
    is_open = result.error is ErrorCode.REQUEST_TIMED_OUT
    action = Action(operation, "DelegationToken", name, error, details, is_open=is_open)
    context.services.audit.performed(context.actor, action)


def may_use_tokens(context: RequestContext) -> bool:
    """Clients of listeners without authentication are anonymous."""
    principal = context.connection.principal
    return principal != ANONYMOUS and not principal.is_token_authenticated
